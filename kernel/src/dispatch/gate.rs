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
use super::basis::WATCHES;
use crate::event::EventWait;
use crate::local::Activity;
use crate::parts::{PartOf, each_part};
use crate::wait::verbs::{Facts, Rest, Verbs};
use crate::wait::{Outcome, Wait};
use bulkhead_abi::Error;
use bulkhead_abi::trace::BlockReason;
use bulkhead_arch_api::{Arch, Drivers, PartitionId, Ticks, VcpuId};
use bulkhead_sched::{PcpuPolicy, Slot};

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

    /// Consumes the events of a gate, or blocks the vCPU until there are some.
    pub(crate) fn wait_for_events(
        &mut self,
        slot: Slot,
        vcpu: VcpuId,
        wait: EventWait,
        until: Option<u64>,
    ) -> Option<Outcome> {
        let gate = wait.gate;
        let until = until.map_or(Ticks::NEVER, |nanoseconds| self.system.time.at(nanoseconds));
        each_part!(self, part => part.vcpu_is_quiet(slot, vcpu));
        let events = self.shared.partition(gate).gate.wait(vcpu);
        // Also if there are no events: the level may still be high, and would end this wait and the next one.
        self.events_taken(gate);
        if events != 0 {
            return Some(Ok([events, 0, 0, 0]));
        }
        let Some(timer) = self.interruption(vcpu) else {
            return Some(wait.give_up(self, vcpu, Error::Interrupted));
        };
        self.local
            .block(slot, Activity::waiting(Wait::Events(wait), until, timer));
        None
    }
}

impl Facts for EventWait {
    const REASON: BlockReason = BlockReason::Waiting;

    #[inline(always)]
    fn rests_on(self) -> Option<Rest> {
        Some(Rest {
            index: self.index,
            right: WATCHES,
            object: self.gate.0,
        })
    }
}

impl<A: Arch, D: Drivers, P: PcpuPolicy> Verbs<A, D, P> for EventWait {
    #[inline(always)]
    fn outcome(self, pcpu: &mut Pcpu<'_, '_, A, D, P>, vcpu: VcpuId) -> Option<Outcome> {
        let gate = &pcpu.shared.partition(self.gate).gate;
        if !pcpu.stands(vcpu, self.index, WATCHES, self.gate.0) {
            gate.leave(vcpu);
            return Some(Err(pcpu.meet_revoked(vcpu, self.index)));
        }
        let events = gate.take();
        if events == 0 {
            return None;
        }
        gate.leave(vcpu);
        pcpu.events_taken(self.gate);
        Some(Ok([events, 0, 0, 0]))
    }

    #[inline(never)]
    fn give_up(self, pcpu: &mut Pcpu<'_, '_, A, D, P>, vcpu: VcpuId, error: Error) -> Outcome {
        let events = pcpu.shared.partition(self.gate).gate.give_up(vcpu);
        pcpu.events_taken(self.gate);
        events.map(|events| [events, 0, 0, 0]).ok_or(error)
    }

    #[inline(always)]
    fn leave(self, pcpu: &mut Pcpu<'_, '_, A, D, P>, vcpu: VcpuId) {
        pcpu.shared.partition(self.gate).gate.leave(vcpu);
    }
}
