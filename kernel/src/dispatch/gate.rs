// SPDX-License-Identifier: Apache-2.0
//! Events on their way into a partition: a vCPU that waits at the gate is woken, and a VM has an interrupt.
//!
//! The interrupt of a VM's gate is a level: high while the gate holds events. Raising and consuming happen on
//! any pCPU and take no lock. So the level may be out of date for a moment, but never for good:
//!
//! - Raiser: (1) raise the events, (2) fence, (3) level high. Consumer: (a) take the events, (b) level low,
//!   (c) fence, (d) look again, and if there are events, level high. Events that (d) did not see were raised
//!   after (c), so their (3) comes after (b).
//! - A level can be high without events, because (3) came after another consumer's (a). Such a level ends
//!   with the guest's next look at the gate.

use super::Pcpu;
use bulkhead_arch_api::{Arch, Drivers, PartitionId};
use bulkhead_sched::PcpuPolicy;

impl<A: Arch, D: Drivers, P: PcpuPolicy> Pcpu<'_, '_, A, D, P> {
    /// Raises events at a partition's gate.
    #[inline(never)]
    pub(crate) fn raise(&mut self, partition: PartitionId, events: u64) {
        let mut due = self.shared.partition(partition).gate.raise(events);
        if let Some(line) = self.system.gate_line_of(partition) {
            due.insert_all(self.machine.inject(partition, line));
        }
        self.wake_all(due);
    }

    /// Ends the interrupt of a partition's gate after its events were consumed, unless there are new events.
    ///
    /// New events can wake a vCPU that waits for them, and that brings control here again. Each time the wait
    /// of one vCPU ends, so it is no deeper than the partition has vCPUs.
    #[inline]
    pub(crate) fn events_taken(&mut self, partition: PartitionId) {
        if let Some(line) = self.system.gate_line_of(partition) {
            self.machine.withdraw(partition, line);
            if self.shared.partition(partition).gate.has_events() {
                let due = self.machine.inject(partition, line);
                self.wake_all(due);
            }
        }
    }
}
