// SPDX-License-Identifier: Apache-2.0
//! The registers behind a health report, a line at a time.
//!
//! All lines at once would keep this pCPU from everybody's interrupts for as long as ten lines take. So the registers
//! are copied when the fault happens, and formatted later: in the time of the vCPU that faulted if it goes on, while the pCPU is
//! idle, or else one line per period. After each line interrupts are taken and a waiting vCPU of more importance
//! gets its turn. A pCPU keeps [`KEPT`] reports; the registers of a fault that finds no place are left out, which the log
//! says: finishing an earlier report at once would be the delay that all this avoids. Before the system ends all are finished.

use super::Pcpu;
use crate::console::DRAIN_PERIOD_NS;
use crate::local::Activity;
use crate::log::Line;
use crate::system::System;
use bulkhead_abi::size::limit;
use bulkhead_arch_api::{Arch, DUMP_REGISTERS, Dump, VcpuId};
use bulkhead_sched::{PcpuPolicy, Slot};

/// General registers of a line.
const PER_LINE: usize = 4;
/// Reports that wait at a time.
const KEPT: usize = limit(2, 4);
/// Lines of a report.
const LINES: usize = DUMP_REGISTERS.div_ceil(PER_LINE) + 1;

/// Registers that are still to be written to the log.
#[derive(Clone, Copy, Debug)]
pub struct Pending {
    vcpu: VcpuId,
    dump: Dump,
    written: usize,
}

/// The reports of a pCPU whose registers are still to be written, the oldest first.
#[derive(Clone, Copy, Debug)]
pub struct Reports {
    waiting: [Option<Pending>; KEPT],
}

impl Reports {
    /// None.
    #[must_use]
    pub(crate) const fn new() -> Self {
        Self {
            waiting: [None; KEPT],
        }
    }

    /// Whether all is written.
    #[inline]
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        let [first, ..] = &self.waiting;
        first.is_none()
    }

    /// Whether registers of this vCPU are among them.
    fn has(&self, vcpu: VcpuId) -> bool {
        self.waiting.iter().flatten().any(|pending| pending.vcpu == vcpu)
    }

    /// Where the next one goes, if there is a place.
    fn free(&mut self) -> Option<&mut Option<Pending>> {
        self.waiting.iter_mut().find(|place| place.is_none())
    }

    const fn oldest(&mut self) -> Option<&mut Pending> {
        let [first, ..] = &mut self.waiting;
        first.as_mut()
    }

    /// The oldest one is written.
    fn drop_oldest(&mut self) {
        let [first, ..] = &mut self.waiting;
        *first = None;
        self.waiting.rotate_left(1);
    }
}

impl<A: Arch, P: PcpuPolicy> Pcpu<'_, '_, A, P> {
    /// Keeps the vCPU's registers, to be reported.
    pub(super) fn keep_registers(&mut self, vcpu: VcpuId) {
        let Some(place) = self.local.reports.free() else {
            return self.leave_out(vcpu);
        };
        *place = Some(Pending {
            vcpu,
            dump: self.machine.dump(vcpu),
            written: 0,
        });
        self.come_back();
    }

    #[inline(never)]
    fn leave_out(&mut self, vcpu: VcpuId) {
        let mut line = registers_of(self.system, vcpu);
        line.text(" left out, others are being written");
        self.log(&line);
    }

    /// The vCPU in `slot`, if it goes on, does so after its report.
    pub(super) fn report_first(&mut self, slot: Slot, vcpu: VcpuId) {
        let its_own = self.local.reports.has(vcpu);
        let state = self.local.slot_mut(slot);
        if its_own && state.activity == Activity::Ready {
            state.activity = Activity::Reporting;
        }
    }

    /// One line, in the time of whoever runs: the vCPU in `slot`, or nobody.
    pub(super) fn report_in_turn(&mut self, slot: Option<Slot>) {
        self.report_line();
        if let Some(slot) = slot
            && !self.local.reports.has(self.local.slot(slot).vcpu)
        {
            self.local.slot_mut(slot).activity = Activity::Ready;
        }
        if let Some(exit) = self.machine.poll() {
            self.handle_common(&exit);
        }
    }

    /// One line, because its time has come.
    pub(super) fn report_in_time(&mut self) {
        self.report_line();
        if !self.local.reports.is_empty() {
            self.come_back();
        }
    }

    /// All that is left. Bounded by the lines of the reports kept.
    pub(super) fn finish_reports(&mut self) {
        for _ in 0..LINES.saturating_mul(KEPT) {
            self.report_line();
        }
    }

    fn come_back(&mut self) {
        let due = self
            .machine
            .now()
            .plus(self.system.time.duration(DRAIN_PERIOD_NS));
        self.local.drain_by(due);
        self.local.reschedule = true;
    }

    fn report_line(&mut self) {
        let Some(Pending { vcpu, dump, written }) = self.local.reports.oldest() else {
            return;
        };
        let mut line = registers_of(self.system, *vcpu);
        let row = *written;
        *written = row.saturating_add(1);
        match dump.general.chunks(PER_LINE).nth(row) {
            Some(values) => {
                let first = row.saturating_mul(PER_LINE) as u64;
                for (value, number) in values.iter().zip(first..) {
                    match dump.names.get(number as usize) {
                        Some(name) => line.text(" ").text(name),
                        None => line.text(" r").decimal(number),
                    }
                    .text("=")
                    .hex(wide(*value));
                }
            }
            None => {
                let Dump { sp, pc, state, .. } = *dump;
                line.key("sp").hex(wide(sp));
                line.key("pc").hex(wide(pc)).key("state").hex(wide(state));
                self.local.reports.drop_oldest();
            }
        }
        self.log(&line);
    }
}

/// A register as the log prints it, however wide it is.
fn wide(register: impl Into<u64>) -> u64 {
    register.into()
}

fn registers_of(system: &System<'_>, vcpu: VcpuId) -> Line {
    let binding = system.binding(vcpu);
    let mut line = Line::of("registers: partition=");
    line.text(system.name(binding.partition))
        .key("vcpu")
        .decimal(u64::from(binding.index));
    line
}
