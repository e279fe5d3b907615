// SPDX-License-Identifier: Apache-2.0
//! A policy of one's own: weighted turns.
//!
//! Every vCPU has a weight, its priority plus one. A vCPU runs for that many quanta, then the next ready vCPU
//! runs. No vCPU waits longer than all the other turns together, so none starves. No vCPU is preempted within
//! its turn. The documentation of `Policy` says what a policy must keep.
#![no_std]
#![forbid(unsafe_code)]

use bulkhead_sched::{
    Decision, OwnPolicy, Policy, PolicyError, Slot, SlotSet, StopReason, Ticks, VcpuParameters,
};

// ANCHOR: policy
/// Turns of `weight` quanta, one vCPU after the other.
#[derive(Clone, Debug)]
pub struct WeightedTurns {
    quantum: Ticks,
    weights: [u8; 32],
    ready: u32,
    /// The slot that has the turn, and the rest of the turn.
    turn: u32,
    left: Ticks,
}

impl OwnPolicy for WeightedTurns {
    fn new(vcpus: &[VcpuParameters], quantum: Ticks) -> Result<Self, PolicyError> {
        let mut weights = [0; 32];
        for (weight, vcpu) in weights.iter_mut().zip(vcpus) {
            *weight = vcpu.priority.saturating_add(1);
        }
        let (ready, turn, left) = (0, 0, 0);
        Ok(Self {
            quantum,
            weights,
            ready,
            turn,
            left,
        })
    }
}

impl Policy for WeightedTurns {
    fn ready(&mut self, slot: Slot, _now: Ticks) {
        self.ready |= 1 << (slot.0 % 32);
    }

    fn withdraw(&mut self, slot: Slot, _now: Ticks) {
        self.ready &= !(1 << (slot.0 % 32));
    }

    fn stopped(&mut self, slot: Slot, why: StopReason, ran: Ticks, now: Ticks) {
        self.left = self.left.saturating_sub(ran);
        if why == StopReason::Blocked {
            self.withdraw(slot, now);
        }
    }

    fn next(&mut self, now: Ticks) -> Decision {
        if self.ready == 0 {
            return Decision::Idle(Ticks::MAX);
        }
        if self.left == 0 || self.ready >> self.turn & 1 == 0 {
            // The next ready slot after the turn has a whole turn. O(1): the set is a bitmap.
            let behind = self.ready.rotate_right(self.turn + 1).trailing_zeros();
            self.turn = (self.turn + 1 + behind) % 32;
            self.left = self.quantum * Ticks::from(self.weights[self.turn as usize]);
        }
        Decision::Run(Slot(self.turn as u8), now.saturating_add(self.left))
    }

    fn ready_slots(&self) -> SlotSet {
        SlotSet(self.ready)
    }

    /// While a slot runs, no readiness changes that. While none runs, each slot's does.
    fn interested(&self) -> SlotSet {
        SlotSet(if self.ready == 0 { u32::MAX } else { 0 })
    }
}
// ANCHOR_END: policy
