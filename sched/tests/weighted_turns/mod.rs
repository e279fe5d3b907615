// SPDX-License-Identifier: Apache-2.0
//! A policy of one's own, in one file: weighted turns.
//!
//! Every vCPU has a weight, its priority plus one. A vCPU runs for that many slices, then the next ready vCPU
//! runs. No vCPU waits longer than all the other turns together, so none starves. No vCPU is preempted within
//! its turn. The file needs `bulkhead_sched` and nothing else. The documentation of `Policy` says what the
//! file must keep.

use bulkhead_sched::{
    Decision, PcpuPolicy, Policy, PolicyError, PolicyParameters, Slot, SlotSet, StopReason, Ticks,
    VcpuParameters,
};

// ANCHOR: policy
/// Turns of `weight` slices, one vCPU after the other.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct WeightedTurns {
    slice: Ticks,
    weights: [u8; 32],
    count: u8,
    ready: u32,
    /// The slot that has the turn, and the rest of the turn.
    turn: u8,
    left: Ticks,
}

impl WeightedTurns {
    pub fn new(vcpus: &[VcpuParameters], slice: Ticks) -> Self {
        let mut weights = [0; 32];
        for (weight, vcpu) in weights.iter_mut().zip(vcpus) {
            *weight = vcpu.priority + 1;
        }
        Self {
            slice,
            weights,
            count: vcpus.len().min(32) as u8,
            ready: 0,
            turn: 0,
            left: 0,
        }
    }

    /// Gives the next ready slot after the turn a whole turn. O(1): the set is a bitmap.
    fn pass_turn(&mut self) {
        let behind = self.ready.rotate_right(u32::from(self.turn) + 1).trailing_zeros();
        self.turn = ((u32::from(self.turn) + 1 + behind) % 32) as u8;
        self.left = self.slice * Ticks::from(self.weights[usize::from(self.turn)]);
    }
}

impl Policy for WeightedTurns {
    fn ready(&mut self, slot: Slot, _now: Ticks) {
        if slot.0 < self.count {
            self.ready |= 1 << slot.0;
        }
    }

    fn stopped(&mut self, slot: Slot, why: StopReason, ran: Ticks, _now: Ticks) {
        self.left = self.left.saturating_sub(ran);
        match why {
            StopReason::Preempted => {}
            StopReason::Yielded => self.left = 0,
            StopReason::Blocked => self.withdraw(slot, 0),
        }
    }

    fn withdraw(&mut self, slot: Slot, _now: Ticks) {
        self.ready &= !(1 << (slot.0 % 32));
    }

    fn next(&mut self, now: Ticks) -> Decision {
        if self.ready == 0 {
            return Decision::Idle(Ticks::MAX);
        }
        if self.left == 0 || self.ready >> self.turn & 1 == 0 {
            self.pass_turn();
        }
        Decision::Run(Slot(self.turn), now.saturating_add(self.left))
    }

    fn ready_slots(&self) -> SlotSet {
        SlotSet(self.ready)
    }

    /// While a slot runs, no readiness changes that. While none runs, each slot's does.
    fn interested(&self) -> SlotSet {
        SlotSet(if self.ready == 0 { u32::MAX } else { 0 })
    }
}

/// Under the kernel, where the manifest says `fixed-priority`: a slice is the quantum.
impl PcpuPolicy for WeightedTurns {
    fn nobody() -> Self {
        Self::new(&[], 0)
    }

    fn install(
        &mut self,
        vcpus: &[VcpuParameters],
        parameters: &PolicyParameters<'_>,
    ) -> Result<(), PolicyError> {
        let PolicyParameters::FixedPriority(parameters) = parameters else {
            return Err(PolicyError::NotSupported);
        };
        *self = Self::new(vcpus, parameters.quantum);
        Ok(())
    }
}
// ANCHOR_END: policy
