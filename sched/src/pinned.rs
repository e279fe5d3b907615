// SPDX-License-Identifier: Apache-2.0
//! Policy `pinned`: one vCPU owns its pCPU.
//!
//! The vCPU runs whenever it is ready, without a deadline. The clock is never armed for the vCPU, and no
//! decision is ever taken while it runs. All operations are O(1).

use crate::{Decision, Policy, PolicyError, Slot, SlotSet, StopReason, Ticks, VcpuParameters};

/// The policy. Its only slot is slot 0. Without a vCPU the pCPU idles.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Pinned {
    occupied: bool,
    ready: bool,
}

impl Pinned {
    /// Returns the policy of a pCPU with at most one vCPU.
    ///
    /// # Errors
    /// [`PolicyError::TooManyVcpus`] if there are more.
    pub fn new(vcpus: &[VcpuParameters]) -> Result<Self, PolicyError> {
        let mut policy = Self::blank();
        policy.fill(vcpus)?;
        Ok(policy)
    }

    /// Returns a policy without a slot.
    pub(crate) const fn blank() -> Self {
        Self {
            occupied: false,
            ready: false,
        }
    }

    /// Gives a blank policy its slot. After an error the policy must not be used.
    pub(crate) const fn fill(&mut self, vcpus: &[VcpuParameters]) -> Result<(), PolicyError> {
        if vcpus.len() > 1 {
            return Err(PolicyError::TooManyVcpus);
        }
        self.occupied = !vcpus.is_empty();
        Ok(())
    }

    fn is_mine(&self, slot: Slot) -> bool {
        self.occupied && slot == Slot(0)
    }
}

impl Policy for Pinned {
    fn ready(&mut self, slot: Slot, _now: Ticks) {
        self.ready |= self.is_mine(slot);
    }

    fn stopped(&mut self, slot: Slot, why: StopReason, _ran: Ticks, _now: Ticks) {
        if self.is_mine(slot) && why == StopReason::Blocked {
            self.ready = false;
        }
    }

    fn withdraw(&mut self, slot: Slot, _now: Ticks) {
        if self.is_mine(slot) {
            self.ready = false;
        }
    }

    fn next(&mut self, _now: Ticks) -> Decision {
        if self.ready {
            Decision::Run(Slot(0), Ticks::MAX)
        } else {
            Decision::Idle(Ticks::MAX)
        }
    }

    fn ready_slots(&self) -> SlotSet {
        SlotSet(u32::from(self.ready))
    }

    fn interested(&self) -> SlotSet {
        SlotSet(u32::from(self.occupied && !self.ready))
    }

    fn has_signals(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_only_vcpu_runs_whenever_it_is_ready_and_for_ever() {
        let mut policy = Pinned::new(&[VcpuParameters::default()]).unwrap();
        assert_eq!(policy.next(0), Decision::Idle(Ticks::MAX));
        assert_eq!(policy.interested(), SlotSet(1));
        policy.ready(Slot(0), 5);
        assert_eq!(policy.next(5), Decision::Run(Slot(0), Ticks::MAX));
        assert_eq!(policy.interested(), SlotSet(0));
        policy.stopped(Slot(0), StopReason::Preempted, 10, 15);
        assert_eq!(policy.next(15), Decision::Run(Slot(0), Ticks::MAX));
        policy.stopped(Slot(0), StopReason::Blocked, 10, 25);
        assert_eq!(policy.next(25), Decision::Idle(Ticks::MAX));
    }

    #[test]
    fn a_second_vcpu_is_refused_and_a_foreign_slot_ignored() {
        assert_eq!(
            Pinned::new(&[VcpuParameters::default(); 2]),
            Err(PolicyError::TooManyVcpus)
        );
        let mut policy = Pinned::new(&[]).unwrap();
        policy.ready(Slot(0), 0);
        assert_eq!(policy.next(0), Decision::Idle(Ticks::MAX));
        assert_eq!(policy.interested(), SlotSet(0));
    }
}
