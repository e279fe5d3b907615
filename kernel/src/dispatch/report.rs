// SPDX-License-Identifier: Apache-2.0
//! What the log is told a line at a time: the states that partitions enter, and the registers behind a health report.
//!
//! All lines at once would keep this pCPU from everybody's interrupts for as long as they take. So the facts are kept when
//! something happens, and formatted later: in the time of the vCPU concerned if it goes on or is loaded, while the pCPU is
//! idle, or else one line per period. After each line interrupts are taken and a waiting vCPU of more importance
//! gets its turn.
//!
//! **States.** Only where there is one pCPU: the lines of several would lose their order. They come before whatever else is logged
//! after them, so nothing overtakes them; one that finds no place makes the oldest be written at once.
//!
//! **Registers.** A pCPU keeps [`KEPT`] reports; the registers of a fault that finds no place are left out, which the log
//! says: finishing an earlier report at once would be the delay that all this avoids. They wait for room in the log.
//!
//! Before the system ends all are finished.

use super::Pcpu;
use crate::console::{DRAIN_PERIOD_NS, PUMP_BYTES};
use crate::local::Activity;
use crate::log::{LINE_LEN, Line};
use crate::system::System;
use bulkhead_abi::size::limit;
use bulkhead_abi::status::StartWord;
use bulkhead_abi::{PartitionState, StartMode};
use bulkhead_arch_api::{Arch, DUMP_REGISTERS, Dump, PartitionId, Ticks, VcpuId};
use bulkhead_sched::{PcpuPolicy, Slot};

/// General registers of a line.
const PER_LINE: usize = 4;
/// Reports that wait at a time.
const KEPT: usize = limit(2, 4);
/// States that wait at a time.
const STATES: usize = 2;
/// Lines of a report.
const LINES: usize = DUMP_REGISTERS.div_ceil(PER_LINE) + 1;

/// Calls that send a line of any length, if the transmitter is free.
const PUMPS_PER_LINE: usize = LINE_LEN.div_ceil(PUMP_BYTES);

/// Registers that are still to be written to the log.
#[derive(Clone, Copy, Debug)]
pub struct Pending {
    vcpu: VcpuId,
    dump: Dump,
    written: usize,
}

/// A state that a partition has entered, still to be told.
#[derive(Clone, Copy, Debug)]
struct Entered {
    at: Ticks,
    partition: PartitionId,
    state: PartitionState,
    start: StartWord,
}

/// What of a pCPU is still to be written, the oldest first.
#[derive(Clone, Copy, Debug)]
pub struct Reports {
    states: [Option<Entered>; STATES],
    waiting: [Option<Pending>; KEPT],
}

impl Reports {
    /// None.
    #[must_use]
    pub(crate) const fn new() -> Self {
        Self {
            states: [None; STATES],
            waiting: [None; KEPT],
        }
    }

    /// Whether all is written.
    #[inline]
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        let [first, ..] = &self.waiting;
        first.is_none() && self.has_told_states()
    }

    /// Whether all states are written.
    #[inline]
    #[must_use]
    pub const fn has_told_states(&self) -> bool {
        let [first, ..] = &self.states;
        first.is_none()
    }

    /// The oldest state, which is to be written now.
    fn take_state(&mut self) -> Option<Entered> {
        let [first, ..] = &mut self.states;
        let taken = first.take();
        self.states.rotate_left(1);
        taken
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
        let mut line = Line::new();
        registers_of(&mut line, self.system, vcpu);
        line.text(" left out, others are being written");
        self.log(&line);
    }

    /// The partition has entered a state, which the log is to be told.
    pub(super) fn keep_state(&mut self, partition: PartitionId, state: PartitionState) {
        let entered = Entered {
            at: self.machine.now(),
            partition,
            state,
            start: self
                .shared
                .partition(partition)
                .control(|control| control.start()),
        };
        if self.system.pcpus().count() != 1 {
            return self.tell_state(&entered);
        }
        let [.., last] = &self.local.reports.states;
        if last.is_some() {
            self.tell_oldest_state();
        }
        if let Some(place) = self.local.reports.states.iter_mut().find(|place| place.is_none()) {
            *place = Some(entered);
        }
        let binding = self.system.binding_of(partition, 0);
        let slot = self.local.slot_mut(binding.slot);
        if slot.activity == Activity::Ready {
            slot.activity = Activity::Reporting;
        }
        self.come_back();
    }

    /// What was kept before something else is logged.
    #[inline]
    pub(super) fn tell_states(&mut self) {
        while !self.local.reports.has_told_states() {
            self.tell_oldest_state();
        }
    }

    /// Whether there was a state to tell.
    #[inline(never)]
    fn tell_oldest_state(&mut self) -> bool {
        let state = self.local.reports.take_state();
        if let Some(entered) = &state {
            self.tell_state(entered);
        }
        state.is_some()
    }

    #[inline(never)]
    fn tell_state(&mut self, entered: &Entered) {
        let Entered {
            partition,
            state,
            start,
            at,
        } = *entered;
        let mut line = Line::of("partition ");
        line.text(self.system.name(partition))
            .text(": ")
            .text(state.name());
        if state == PartitionState::Loading {
            if start.starts != 0 {
                line.text(", start ")
                    .decimal(u64::from(start.starts).saturating_add(1));
            }
            if start.mode == StartMode::Warm {
                line.text(", warm");
            }
            if let Some(name) = self.system.alternative_name(partition, start.alternative) {
                line.text(", alternative ").text(name);
            }
        }
        self.log_at(&line, at);
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
        // What has led here may have taken as long as the line will.
        if let Some(exit) = self.machine.poll() {
            return self.handle_common(&exit);
        }
        self.report_line();
        if let Some(slot) = slot
            && self.local.slot(slot).activity == Activity::Reporting
            && self.local.reports.has_told_states()
            && !self.local.reports.has(self.local.slot(slot).vcpu)
        {
            self.local.slot_mut(slot).activity = Activity::Ready;
        }
        self.look();
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
        self.tell_states();
        for _ in 0..LINES.saturating_mul(KEPT) {
            for _ in 0..PUMPS_PER_LINE {
                self.pump();
            }
            self.write_registers();
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
        if self.tell_oldest_state() {
            return;
        }
        if self.shared.terminal.output.has_log_room() {
            self.write_registers();
        } else {
            self.pump();
        }
    }

    fn write_registers(&mut self) {
        let Some(Pending { vcpu, dump, written }) = self.local.reports.oldest() else {
            return;
        };
        let mut line = Line::new();
        registers_of(&mut line, self.system, *vcpu);
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

fn registers_of(line: &mut Line, system: &System<'_>, vcpu: VcpuId) {
    let binding = system.binding(vcpu);
    line.text("registers: partition=")
        .text(system.name(binding.partition))
        .key("vcpu")
        .decimal(u64::from(binding.index));
}
