// SPDX-License-Identifier: Apache-2.0
//! Entries of the log about partitions, and the work that is done between two decisions: output for the
//! transmitter, and watchers that are still to be told of a state.
//!
//! An entry is stored when something happens. Its text is written later ([`crate::console`]), in steps of
//! their own: while the pCPU is idle, or once per period. Before and after each step interrupts are taken,
//! and a waiting vCPU of more importance gets its turn.
//!
//! **Registers** that find no room in the log are left out, and the log says so.

use super::Pcpu;
use crate::console::{DRAIN_PERIOD_NS, Log};
use crate::local::Chore;
use bulkhead_abi::log::entry::{self, packed};
use bulkhead_abi::log::{Entry, Kind};
use bulkhead_abi::{PartitionState, StartMode};
use bulkhead_arch_api::{Arch, Drivers, Dump, PartitionId, VcpuId};
use bulkhead_sched::{PcpuPolicy, Slot};

/// Partitions that are told of a state at a time. The others follow in steps of their own.
pub(crate) const TOLD_AT_ONCE: usize = 4;
/// Registers of a line.
const PER_LINE: usize = 2 * entry::REGISTERS;
/// Registers that every report has: stack pointer, program counter, processor state.
const COMMON: [&str; 3] = ["sp", "pc", "state"];

impl<A: Arch, D: Drivers, P: PcpuPolicy> Pcpu<'_, '_, A, D, P> {
    /// Returns an entry about a vCPU, or about its partition, at this time.
    pub(crate) fn entry(&self, kind: Kind, vcpu: VcpuId) -> Entry {
        let binding = self.system.binding(vcpu);
        let mut entry = Entry::new(kind, self.now_ns());
        entry.partition = binding.partition.0;
        entry.vcpu = binding.index;
        entry
    }

    /// Stores an entry in the log. The transmitter gets its text in a step of its own, with a look at
    /// interrupts before and after the step.
    pub(crate) fn log(&mut self, entry: &Entry) {
        self.log_line(core::slice::from_ref(entry));
    }

    fn log_line(&mut self, entries: &[Entry]) {
        self.shared.recorder.entries(&mut self.machine, entries);
        self.local.has_line = true;
        self.come_at_once();
    }

    /// Logs the vCPU's registers.
    pub(crate) fn log_registers(&mut self, vcpu: VcpuId) {
        let dump = self.machine.dump(vcpu);
        let count = dump.numbered.saturating_add(dump.names.len());
        let lines = count.saturating_add(COMMON.len()).div_ceil(PER_LINE);
        if (self.shared.recorder.room() as usize) < lines.saturating_mul(2) {
            let entry = self.entry(Kind::LeftOut, vcpu);
            return self.log(&entry);
        }
        for line in 0..lines {
            self.log_some(&dump, vcpu, line.saturating_mul(PER_LINE), count);
        }
    }

    /// Logs a line of registers, from register `first` on. The registers that every report has follow the
    /// `count` others.
    fn log_some(&mut self, dump: &Dump, vcpu: VcpuId, first: usize, count: usize) {
        let mut line = [self.entry(Kind::Registers, vcpu), self.entry(Kind::MoreRegisters, vcpu)];
        let last = count.saturating_add(COMMON.len());
        for (entry, first) in line.iter_mut().zip([first, first.saturating_add(entry::REGISTERS)]) {
            let numbers = first..last.min(first.saturating_add(entry::REGISTERS));
            let (values, names) = entry.facts.split_at_mut(entry::REGISTERS);
            for ((value, name), number) in values.iter_mut().zip(names).zip(numbers) {
                (*name, *value) = register(dump, number, count);
                entry.detail = entry.detail.saturating_add(1);
            }
        }
        let [head, rest] = &mut line;
        if rest.detail == 0 {
            return self.log(head);
        }
        head.flags = entry::MORE;
        self.log_line(&line);
    }

    /// Logs a state that the partition has entered.
    pub(crate) fn log_state(&mut self, partition: PartitionId, state: PartitionState) {
        let first = self.system.facts_of(partition).first;
        let mut entry = self.entry(Kind::State, first);
        entry.detail = state as u8;
        if state == PartitionState::Loading {
            let start = self.shared.partition(partition).control(|control| control.start());
            if let Some(name) = self.system.alternative_name(partition, start.alternative) {
                entry.put_bytes(name.as_bytes());
                entry.flags |= entry::IS_NAMED;
            }
            if start.starts != 0 {
                entry.flags |= entry::IS_AGAIN;
            }
            if start.mode == StartMode::Warm {
                entry.flags |= entry::IS_WARM;
            }
            let [.., number, _] = &mut entry.facts;
            *number = start.starts.into();
        }
        self.log(&entry);
    }

    /// Lets the work that is due be done before anything runs, in steps of its own.
    pub(crate) fn come_at_once(&mut self) {
        let now = self.machine.now();
        self.local.drain_by(now);
        self.local.reschedule = true;
    }

    /// Plans the output that is due. The slot `before` ran before the decision. If another slot runs now, that
    /// slot comes first, but not twice.
    pub(crate) fn plan_chore(&mut self, before: Option<Slot>) {
        let running = self.local.running();
        self.local.chore = match self.local.chore {
            Chore::None if running.is_some() && running != before => self.put_off(),
            Chore::None => Chore::Due,
            _ => Chore::Owed,
        };
    }

    /// Sees to it that the output is due in a drain period.
    fn put_off(&mut self) -> Chore {
        let period = self.system.time.duration(DRAIN_PERIOD_NS);
        let due = self.machine.now().plus(period);
        self.local.drain_by(due);
        Chore::PutOff
    }

    /// Tells some watchers, or hands one call's part of the output to the transmitter, between two looks at
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
        if self.tell_watchers() {
            // The output that this chore was planned for is still here.
            self.come_at_once();
        } else {
            self.local.has_line = false;
            self.pump();
        }
        self.look();
    }

    /// Tells some of the watchers of a partition. Returns whether there were any.
    fn tell_watchers(&mut self) -> bool {
        let mut told = false;
        for _ in 0..TOLD_AT_ONCE {
            let Some((watcher, events)) = self.local.untold.take() else {
                break;
            };
            told = true;
            self.raise(watcher, events);
        }
        told
    }
}

/// Returns the name and the value of a register. Those that every report has follow the `count` others.
fn register(dump: &Dump, number: usize, count: usize) -> (u64, u64) {
    if let Some(common) = number.checked_sub(count) {
        let value = [dump.sp, dump.pc, dump.state].get(common).copied().unwrap_or(0);
        let name = COMMON.get(common).copied().unwrap_or("?");
        return (packed(name.as_bytes()), wide(value));
    }
    let value = dump.general.get(number).copied().unwrap_or(0);
    let name = match number.checked_sub(dump.numbered) {
        Some(named) => packed(dump.names.get(named).copied().unwrap_or("?").as_bytes()),
        None => numbered(number),
    };
    (name, wide(value))
}

/// Returns the name `r` and a number below 100.
fn numbered(number: usize) -> u64 {
    let digit = |value: usize| b'0'.wrapping_add((value % 10) as u8);
    match number {
        0..10 => packed(&[b'r', digit(number)]),
        _ => packed(&[b'r', digit(number / 10), digit(number)]),
    }
}

/// Returns a register as the log has it, for a register of any width.
fn wide(register: impl Into<u64>) -> u64 {
    register.into()
}
