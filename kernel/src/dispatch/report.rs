// SPDX-License-Identifier: Apache-2.0
//! The registers behind a health report, a line at a time.
//!
//! All lines at once would keep this pCPU from everybody's interrupts for as long as ten lines take. So the registers
//! are copied when the fault happens, and formatted later: in the time of the vCPU that faulted if it goes on, while the pCPU is
//! idle, or else one line per period. After each line interrupts are taken and a waiting vCPU of more importance
//! gets its turn. One report is kept per pCPU; what is left of an earlier one is finished when the next begins, and before
//! the system ends.

use super::Pcpu;
use crate::console::DRAIN_PERIOD_NS;
use crate::local::Activity;
use crate::log::Line;
use bulkhead_arch_api::{Arch, Dump, VcpuId};
use bulkhead_sched::Slot;

/// General registers of a line.
const PER_LINE: usize = 4;
/// Lines of a report.
const LINES: usize = 31_usize.div_ceil(PER_LINE) + 1;

/// Registers that are still to be written to the log.
#[derive(Clone, Copy, Debug)]
pub struct Pending {
    vcpu: VcpuId,
    dump: Dump,
    written: usize,
}

impl<A: Arch> Pcpu<'_, '_, A> {
    /// Keeps the vCPU's registers, to be reported.
    pub(super) fn keep_registers(&mut self, vcpu: VcpuId) {
        self.finish_report();
        let dump = self.machine.dump(vcpu);
        self.local.report = Some(Pending {
            vcpu,
            dump,
            written: 0,
        });
        self.come_back();
    }

    /// The vCPU in `slot`, if it goes on, does so after its report.
    pub(super) fn report_first(&mut self, slot: Slot, vcpu: VcpuId) {
        let its_own = self
            .local
            .report
            .as_ref()
            .is_some_and(|pending| pending.vcpu == vcpu);
        let state = self.local.slot_mut(slot);
        if its_own && state.activity == Activity::Ready {
            state.activity = Activity::Reporting;
        }
    }

    /// One line, in the time of whoever runs: the vCPU in `slot`, or nobody.
    pub(super) fn report_in_turn(&mut self, slot: Option<Slot>) {
        self.report_line();
        if self.local.report.is_none()
            && let Some(slot) = slot
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
        if self.local.report.is_some() {
            self.come_back();
        }
    }

    /// All that is left. Bounded by the lines of a report.
    pub(super) fn finish_report(&mut self) {
        for _ in 0..LINES {
            self.report_line();
        }
    }

    fn come_back(&mut self) {
        let due = self
            .machine
            .now()
            .plus(self.system.time.duration(DRAIN_PERIOD_NS));
        self.local.drain_due = Some(self.local.drain_due.map_or(due, |earlier| earlier.min(due)));
        self.local.reschedule = true;
    }

    fn report_line(&mut self) {
        let Some(mut pending) = self.local.report.take() else {
            return;
        };
        let binding = self.system.binding(pending.vcpu);
        let mut line = Line::of("registers: partition=");
        line.text(self.system.name(binding.partition))
            .key("vcpu")
            .decimal(u64::from(binding.index));
        let row = pending.dump.general.chunks(PER_LINE).nth(pending.written);
        let first = pending.written.saturating_mul(PER_LINE) as u64;
        match row {
            Some(row) => {
                for (value, number) in row.iter().zip(first..) {
                    line.text(" r").decimal(number).text("=").hex(*value);
                }
                pending.written = pending.written.saturating_add(1);
                self.local.report = Some(pending);
            }
            None => {
                let Dump { sp, pc, state, .. } = pending.dump;
                line.key("sp").hex(sp).key("pc").hex(pc).key("state").hex(state);
            }
        }
        self.log(&line);
    }
}
