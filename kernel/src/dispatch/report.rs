// SPDX-License-Identifier: Apache-2.0
//! Lines that wait for the log: the states that partitions enter, and the registers behind a health report.
//!
//! All lines at once would keep this pCPU from all interrupts for as long as the lines take. So the facts are
//! kept when something happens, and formatted later, a line at a time. A line is written in the time of the
//! vCPU concerned if this vCPU goes on or is loaded, or while the pCPU is idle, or else once per period.
//! After each line interrupts are taken, and a waiting vCPU of more importance gets its turn.
//!
//! **States.** States are written as soon as interrupts have been looked at: at the next step of the
//! partition's own vCPU or, where several pCPUs tell of one partition, at the next step of any vCPU. Lines
//! that others log meanwhile may come first, with a later time. A state that finds no place makes the oldest
//! state be written at once.
//!
//! **Registers.** A pCPU keeps [`KEPT`] reports. The registers of a fault that finds no place are left out,
//! and the log says so: to finish an earlier report at once would cause the very delay that this file avoids.
//! The registers wait for room in the log.
//!
//! Before the system ends all reports are finished.

use super::Pcpu;
use crate::console::{DRAIN_PERIOD_NS, PUMP_BYTES};
use crate::local::{Activity, Chore};
use crate::log::{LINE_LEN, LogLine};
use crate::reports::{Entered, KEPT, Pending, STATES};
use crate::system::System;
use bulkhead_abi::{PartitionState, StartMode};
use bulkhead_arch_api::{Arch, DUMP_REGISTERS, Drivers, Dump, PartitionId, VcpuId};
use bulkhead_sched::{PcpuPolicy, Slot};

/// General registers of a line.
const PER_LINE: usize = 4;
/// Partitions that are told of a state at a time. The others follow in steps of their own.
pub(crate) const TOLD_AT_ONCE: usize = 4;
/// Lines of a report.
const LINES: usize = DUMP_REGISTERS.div_ceil(PER_LINE) + 1;

/// Calls that send a line of any length, if the transmitter is free.
const PUMPS_PER_LINE: usize = LINE_LEN.div_ceil(PUMP_BYTES);

impl<A: Arch, D: Drivers, P: PcpuPolicy> Pcpu<'_, '_, A, D, P> {
    /// Keeps the vCPU's registers, to be reported.
    pub(crate) fn keep_registers(&mut self, vcpu: VcpuId) {
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
        let mut line = LogLine::new();
        registers_of(&mut line, self.system, vcpu);
        line.text(" left out, others are being written");
        self.log(&line);
    }

    /// Keeps a state that the partition has entered, to be told to the log.
    pub(crate) fn keep_state(&mut self, partition: PartitionId, state: PartitionState) {
        let entered = Entered {
            at: self.machine.now(),
            partition,
            state,
            start: self
                .shared
                .partition(partition)
                .control(|control| control.start()),
        };
        let [.., last] = &self.local.reports.states;
        if last.is_some() {
            self.tell_oldest_state();
        }
        if let Some(place) = self.local.reports.states.iter_mut().find(|place| place.is_none()) {
            *place = Some(entered);
        }
        // Lines of one partition may come from several pCPUs, and none of the lines must be late.
        if self.system.pcpus().count() != 1 {
            return self.come_at_once();
        }
        let binding = self.system.binding_of(partition, 0);
        let slot = self.local.slot_mut(binding.slot);
        if slot.activity == Activity::Ready {
            slot.activity = Activity::Reporting;
        }
        self.come_back();
    }

    /// Lets the work that is due be done before anything runs, in steps of its own.
    pub(crate) fn come_at_once(&mut self) {
        let now = self.machine.now();
        self.local.drain_by(now);
        self.local.reschedule = true;
    }

    /// Writes the line of the oldest state. Returns whether there was a state to tell.
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
        let mut line = LogLine::of("partition ");
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

    /// Holds the vCPU in `slot` back, if the vCPU is ready, until its report is written.
    pub(crate) fn report_first(&mut self, slot: Slot, vcpu: VcpuId) {
        let its_own = self.local.reports.has(vcpu);
        let state = self.local.slot_mut(slot);
        if its_own && state.activity == Activity::Ready {
            state.activity = Activity::Reporting;
        }
    }

    /// Writes one line, in the time of the vCPU in `slot`, or in the idle time of the pCPU.
    pub(crate) fn report_in_turn(&mut self, slot: Option<Slot>) {
        // The steps that have led here may have taken as long as the line will take.
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
            self.look_for_upcall(slot);
        }
        self.look();
    }

    /// Plans the lines or the output that are due. The slot `before` ran before the decision. If another slot
    /// runs now, that slot comes first, but not twice.
    pub(crate) fn plan_chore(&mut self, before: Option<Slot>) {
        let running = self.local.running();
        self.local.chore = match self.local.chore {
            Chore::None if running.is_some() && running != before => self.put_off(),
            Chore::None => Chore::Due,
            _ => Chore::Owed,
        };
    }

    fn put_off(&mut self) -> Chore {
        self.drain_later();
        Chore::PutOff
    }

    /// Sees to it that lines and output are due in a drain period.
    fn drain_later(&mut self) {
        let period = self.system.time.duration(DRAIN_PERIOD_NS);
        let due = self.machine.now().plus(period);
        self.local.drain_by(due);
    }

    /// Writes one line, or hands one call's part of the output to the transmitter, between two looks at
    /// interrupts.
    #[inline(never)]
    pub(crate) fn do_chore(&mut self) {
        let chore = core::mem::replace(&mut self.local.chore, Chore::None);
        if let Some(exit) = self.machine.poll() {
            self.handle_common(&exit);
            if chore == Chore::Due {
                self.local.chore = self.put_off();
                // The decision is behind: only the next one arms the clock for the new time.
                self.local.reschedule = true;
                return;
            }
        }
        let has_line = core::mem::replace(&mut self.local.has_line, false);
        if self.tell_watchers() {
            // The line and the output that this chore was planned for are still here.
            self.local.has_line = has_line;
            self.come_at_once();
        } else if has_line || self.local.reports.is_empty() || !self.shared.terminal.output.has_log_room() {
            self.pump();
        } else {
            self.report_line();
        }
        if !self.local.reports.has_told_states() && self.local.running().is_none() {
            self.come_at_once();
        } else if !self.local.reports.is_empty() {
            self.come_back();
        }
        self.look();
    }

    /// Writes all reports that are left. Bounded by the lines of the reports kept.
    pub(crate) fn finish_reports(&mut self) {
        for _ in 0..STATES {
            self.tell_oldest_state();
        }
        for _ in 0..LINES.saturating_mul(KEPT) {
            for _ in 0..PUMPS_PER_LINE {
                self.pump();
            }
            self.write_registers();
        }
    }

    fn come_back(&mut self) {
        self.drain_later();
        self.local.reschedule = true;
    }

    /// Tells some of the watchers of a partition. Returns whether there were any.
    pub(crate) fn tell_watchers(&mut self) -> bool {
        let mut told = false;
        for _ in 0..TOLD_AT_ONCE {
            let Some((watcher, events)) = self.local.reports.take_events() else {
                break;
            };
            told = true;
            self.raise(watcher, events);
        }
        told
    }

    fn report_line(&mut self) {
        if self.tell_watchers() || self.tell_oldest_state() {
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
        let mut line = LogLine::new();
        registers_of(&mut line, self.system, *vcpu);
        let row = *written;
        *written = row.saturating_add(1);
        let count = dump.numbered.saturating_add(dump.names.len());
        let registers = dump.general.get(..count).unwrap_or(&dump.general);
        match registers.chunks(PER_LINE).nth(row) {
            Some(values) => {
                let first = row.saturating_mul(PER_LINE);
                for (value, number) in values.iter().zip(first..) {
                    match number
                        .checked_sub(dump.numbered)
                        .and_then(|named| dump.names.get(named))
                    {
                        Some(name) => line.text(" ").text(name),
                        None => line.text(" r").decimal(number as u64),
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

/// Returns a register as the log prints it, for a register of any width.
fn wide(register: impl Into<u64>) -> u64 {
    register.into()
}

fn registers_of(line: &mut LogLine, system: &System<'_>, vcpu: VcpuId) {
    let binding = system.binding(vcpu);
    line.text("registers: partition=")
        .text(system.name(binding.partition))
        .key("vcpu")
        .decimal(u64::from(binding.index));
}
