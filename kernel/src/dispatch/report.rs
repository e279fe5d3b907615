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
use bulkhead_abi::log::entry;
use bulkhead_abi::log::{Entry, Kind};
use bulkhead_abi::{PartitionState, StartMode};
use bulkhead_arch_api::{Arch, Drivers, PartitionId, VcpuId};
use bulkhead_sched::{PcpuPolicy, Slot};

/// Partitions that are told of a state at a time. The others follow in steps of their own.
pub(crate) const TOLD_AT_ONCE: usize = 4;
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
        self.shared.recorder.entry(&mut self.machine, entry);
        self.local.output.has_line = true;
        self.come_at_once();
    }

    /// Logs the vCPU's registers.
    pub(crate) fn log_registers(&mut self, vcpu: VcpuId) {
        let dump = self.machine.dump(vcpu);
        let total = dump.file.total();
        let count = total.div_ceil(entry::REGISTERS);
        let mut entry = self.entry(Kind::LeftOut, vcpu);
        if (self.shared.recorder.room() as usize) < count {
            return self.log(&entry);
        }
        entry.kind = Kind::Registers;
        let (file, own) = (u32::from(dump.file.number), dump.file.count());
        let common = [dump.sp, dump.pc, dump.state];
        self.shared
            .recorder
            .entries(&mut self.machine, count, |index, place| {
                let first = index.wrapping_mul(entry::REGISTERS);
                entry.line = file | (first as u32) << 8;
                entry.detail = total.saturating_sub(first).min(entry::REGISTERS) as u8;
                for (fact, number) in entry.facts.iter_mut().zip(first..) {
                    let register = match number.checked_sub(own) {
                        None => dump.general.get(number),
                        Some(number) => common.get(number),
                    };
                    *fact = register.map_or(0, |register| wide(*register));
                }
                entry.store(place);
            });
        self.come_at_once();
    }

    /// Logs a state that the partition has entered.
    pub(crate) fn log_state(&mut self, partition: PartitionId, state: PartitionState) {
        let first = self.system.facts_of(partition).first;
        let mut entry = self.entry(Kind::State, first);
        entry.detail = (state as u8).wrapping_add(1);
        if state == PartitionState::Loading {
            let start = self
                .shared
                .partition(partition)
                .control(|control| control.start());
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

    /// Plans the output that is due. The slot `before` ran before the decision. If another slot runs now,
    /// that slot comes first, but not twice.
    pub(crate) fn plan_chore(&mut self, before: Option<Slot>) {
        let running = self.local.running();
        self.local.output.chore = match self.local.output.chore {
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
        let chore = core::mem::replace(&mut self.local.output.chore, Chore::None);
        if let Some(exit) = self.machine.poll() {
            self.handle_common(&exit);
            if chore == Chore::Due {
                self.local.output.chore = self.put_off();
                // The decision is over: only the next decision arms the clock for the new time.
                self.local.reschedule = true;
                return;
            }
        }
        if self.tell_watchers() {
            // The output that this chore was planned for is still here.
            self.come_at_once();
        } else {
            self.local.output.has_line = false;
            self.pump();
            self.go_on_with_output();
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

/// Returns a register as the log has it, for a register of any width.
fn wide(register: impl Into<u64>) -> u64 {
    register.into()
}
