// SPDX-License-Identifier: Apache-2.0
//! Events on their way into a partition: whoever waits at its gate is woken, and a VM has an interrupt.
//!
//! The interrupt of a VM's gate is a level: high while the gate holds events. Raising and consuming happen on any pCPU
//! and take no lock, so the level may stay behind for a moment, but never for good:
//!
//! - Raiser: (1) raise the events, (2) fence, (3) level high. Consumer: (a) take the events, (b) level low, (c) fence, (d) look again, and
//!   if there are events, level high. Events that (d) did not see were raised after (c), so their (3) comes after (b).
//! - A level that is high without events, because (3) came after another's (a), ends with the guest's next look at the gate.

use super::Pcpu;
use bulkhead_arch_api::{Arch, PartitionId};
use bulkhead_sched::PcpuPolicy;

impl<A: Arch, P: PcpuPolicy> Pcpu<'_, '_, A, P> {
    /// Raises events at a partition's gate.
    #[inline(never)]
    pub(super) fn raise(&mut self, partition: PartitionId, events: u64) {
        let mut due = self.shared.partition(partition).gate.raise(events);
        if let Some(line) = self.system.facts_of(partition).gate_line {
            due.insert_all(self.machine.inject(partition, line));
        }
        self.wake_all(due);
    }

    /// Somebody has consumed the events of a partition's gate: its interrupt ends, unless there are new ones.
    #[inline]
    pub(super) fn events_taken(&mut self, partition: PartitionId) {
        if let Some(line) = self.system.facts_of(partition).gate_line {
            self.machine.withdraw(partition, line);
            if self.shared.partition(partition).gate.has_events() {
                let due = self.machine.inject(partition, line);
                self.wake_all(due);
            }
        }
    }
}
