// SPDX-License-Identifier: Apache-2.0
//! Policy `fixed-priority`: the highest ready priority runs; equals take turns.
//!
//! **Model.** Each priority is a level with a set of ready slots, one of which has the turn. A turn lasts one
//! quantum of running time and then passes to the next ready slot of the level in cyclic order. It is only
//! used up while an equal waits: alone on its level, a vCPU runs without a deadline, so a level with one
//! vCPU never costs a timer interrupt. A vCPU that is preempted by a higher level keeps its turn and the
//! rest of its quantum. A vCPU that blocks keeps the turn only if it is ready again before any equal ran.
//!
//! **Cost.** All sets are bitmaps of at most 32 slots and 32 levels: every operation is O(1), whatever the
//! number of vCPUs.
//!
//! **Not here.** Priority 31 can starve the rest: that is what it is for. Budgets are another policy's.

use crate::{
    Decision, FixedPriorityParameters, MAX_SLOTS, PRIORITIES, Policy, PolicyError, Slot, SlotSet, StopReason,
    Ticks, VcpuParameters,
};

/// One priority.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
struct Level {
    /// All slots with this priority.
    members: u32,
    /// All slots with a higher priority.
    above: u32,
    /// The ready ones among the members.
    ready: u32,
    /// The slot that has the turn, if it is ready.
    turn: u8,
    /// What is left of the turn.
    left: Ticks,
}

/// The policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FixedPriority {
    quantum: Ticks,
    priorities: [u8; MAX_SLOTS],
    levels: [Level; PRIORITIES],
    /// Bit n: level n has a ready slot.
    occupied: u32,
    /// What `interested` answers about the decision in force.
    interested: SlotSet,
    /// Whether the running slot's turn is being used up.
    is_shared: bool,
}

impl FixedPriority {
    /// A pCPU with these vCPUs, slot 0 first.
    ///
    /// # Errors
    /// [`PolicyError::TooManyVcpus`], or [`PolicyError::BadParameter`] for a priority above 31 or a quantum of 0.
    pub fn new(vcpus: &[VcpuParameters], parameters: FixedPriorityParameters) -> Result<Self, PolicyError> {
        if vcpus.len() > MAX_SLOTS {
            return Err(PolicyError::TooManyVcpus);
        }
        if parameters.quantum == 0 {
            return Err(PolicyError::BadParameter);
        }
        let mut priorities = [0; MAX_SLOTS];
        let mut levels = [Level {
            left: parameters.quantum,
            ..Level::default()
        }; PRIORITIES];
        for ((slot, vcpu), priority) in (0_u8..).zip(vcpus).zip(&mut priorities) {
            let level = levels
                .get_mut(usize::from(vcpu.priority))
                .ok_or(PolicyError::BadParameter)?;
            level.members |= bit(slot);
            *priority = vcpu.priority;
        }
        let mut above = 0;
        for level in levels.iter_mut().rev() {
            level.above = above;
            above |= level.members;
        }
        let interested = SlotSet(above);
        Ok(Self {
            quantum: parameters.quantum,
            priorities,
            levels,
            occupied: 0,
            interested,
            is_shared: false,
        })
    }

    /// The level of a slot; `None` for a slot that does not exist.
    fn level_of(&mut self, slot: Slot) -> Option<(u8, &mut Level)> {
        let priority = *self.priorities.get(usize::from(slot.0))?;
        let level = self.levels.get_mut(usize::from(priority))?;
        (level.members & bit(slot.0) != 0).then_some((priority, level))
    }

    fn unready(&mut self, slot: Slot) {
        if let Some((priority, level)) = self.level_of(slot) {
            level.ready &= !bit(slot.0);
            if level.ready == 0 {
                self.occupied &= !bit(priority);
            }
        }
    }
}

impl Level {
    /// Gives the turn to the next ready slot in cyclic order; to the same one if there is no other.
    fn pass_turn(&mut self, quantum: Ticks) {
        let behind = u32::from(self.turn).wrapping_add(1);
        let steps = self.ready.rotate_right(behind).trailing_zeros();
        if steps < u32::BITS {
            self.turn = (behind.wrapping_add(steps) % u32::BITS) as u8;
        }
        self.left = quantum;
    }
}

impl Policy for FixedPriority {
    fn ready(&mut self, slot: Slot, _now: Ticks) {
        if let Some((priority, level)) = self.level_of(slot) {
            level.ready |= bit(slot.0);
            self.occupied |= bit(priority);
        }
    }

    fn stopped(&mut self, slot: Slot, why: StopReason, ran: Ticks, _now: Ticks) {
        let (quantum, is_shared) = (self.quantum, self.is_shared);
        let Some((priority, level)) = self.level_of(slot) else {
            return;
        };
        if level.turn == slot.0 {
            if is_shared {
                level.left = level.left.saturating_sub(ran);
            }
            if level.left == 0 || why == StopReason::Yielded {
                level.pass_turn(quantum);
            }
        }
        if why == StopReason::Blocked {
            level.ready &= !bit(slot.0);
            if level.ready == 0 {
                self.occupied &= !bit(priority);
            }
        }
    }

    fn withdraw(&mut self, slot: Slot, _now: Ticks) {
        self.unready(slot);
    }

    fn next(&mut self, now: Ticks) -> Decision {
        let quantum = self.quantum;
        let highest = self.occupied.checked_ilog2().unwrap_or(0) as usize;
        let Some(level) = self.levels.get_mut(highest).filter(|level| level.ready != 0) else {
            self.interested = SlotSet(self.levels.iter().fold(0, |all, level| all | level.members));
            self.is_shared = false;
            return Decision::Idle(Ticks::MAX);
        };
        if level.ready & bit(level.turn) == 0 {
            level.pass_turn(quantum);
        }
        self.is_shared = level.ready != bit(level.turn);
        if self.is_shared {
            self.interested = SlotSet(level.above);
            return Decision::Run(Slot(level.turn), now.saturating_add(level.left));
        }
        // The first equal to become ready starts the clock.
        self.interested = SlotSet(level.above | level.members & !level.ready);
        Decision::Run(Slot(level.turn), Ticks::MAX)
    }

    fn interested(&self) -> SlotSet {
        self.interested
    }
}

/// The bit of a slot or level; numbers are below 32.
const fn bit(number: u8) -> u32 {
    1_u32.rotate_left(number as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy(priorities: &[u8]) -> FixedPriority {
        let mut vcpus = [VcpuParameters::default(); MAX_SLOTS];
        for (vcpu, priority) in vcpus.iter_mut().zip(priorities) {
            vcpu.priority = *priority;
        }
        FixedPriority::new(
            &vcpus[..priorities.len()],
            FixedPriorityParameters { quantum: 10 },
        )
        .unwrap()
    }

    #[test]
    fn the_more_important_runs_first_and_without_a_deadline() {
        let mut policy = policy(&[3, 7]);
        policy.ready(Slot(0), 0);
        assert_eq!(policy.next(0), Decision::Run(Slot(0), Ticks::MAX));
        assert_eq!(policy.interested(), SlotSet(0b10));
        policy.ready(Slot(1), 4);
        policy.stopped(Slot(0), StopReason::Preempted, 4, 4);
        assert_eq!(policy.next(4), Decision::Run(Slot(1), Ticks::MAX));
        assert_eq!(policy.interested(), SlotSet(0));
    }

    #[test]
    fn equals_take_turns_of_one_quantum() {
        let mut policy = policy(&[5, 5, 5]);
        (0..3).for_each(|slot| policy.ready(Slot(slot), 0));
        for (turn, slot) in [0, 1, 2, 0].into_iter().enumerate() {
            let now = turn as Ticks * 10;
            assert_eq!(policy.next(now), Decision::Run(Slot(slot), now + 10));
            policy.stopped(Slot(slot), StopReason::Preempted, 10, now + 10);
        }
    }

    #[test]
    fn a_preempted_vcpu_keeps_its_turn_and_the_rest_of_it() {
        let mut policy = policy(&[5, 5, 9]);
        policy.ready(Slot(0), 0);
        policy.ready(Slot(1), 0);
        assert_eq!(policy.next(0), Decision::Run(Slot(0), 10));
        policy.ready(Slot(2), 4);
        policy.stopped(Slot(0), StopReason::Preempted, 4, 4);
        assert_eq!(policy.next(4), Decision::Run(Slot(2), Ticks::MAX));
        policy.stopped(Slot(2), StopReason::Blocked, 3, 7);
        assert_eq!(policy.next(7), Decision::Run(Slot(0), 13));
    }

    #[test]
    fn time_alone_does_not_use_up_the_turn() {
        let mut policy = policy(&[5, 5]);
        policy.ready(Slot(1), 0);
        assert_eq!(policy.next(0), Decision::Run(Slot(1), Ticks::MAX));
        assert_eq!(policy.interested(), SlotSet(0b01));
        policy.ready(Slot(0), 1000);
        policy.stopped(Slot(1), StopReason::Preempted, 1000, 1000);
        assert_eq!(policy.next(1000), Decision::Run(Slot(1), 1010));
        assert_eq!(policy.interested(), SlotSet(0));
    }

    #[test]
    fn who_yields_goes_behind_its_equals() {
        let mut policy = policy(&[5, 5]);
        policy.ready(Slot(0), 0);
        policy.ready(Slot(1), 0);
        assert_eq!(policy.next(0), Decision::Run(Slot(0), 10));
        policy.stopped(Slot(0), StopReason::Yielded, 1, 1);
        assert_eq!(policy.next(1), Decision::Run(Slot(1), 11));
    }

    #[test]
    fn bad_parameters_are_refused() {
        let quantum = |quantum| FixedPriorityParameters { quantum };
        let vcpu = |priority| {
            [VcpuParameters {
                priority,
                ..VcpuParameters::default()
            }]
        };
        assert_eq!(
            FixedPriority::new(&vcpu(0), quantum(0)),
            Err(PolicyError::BadParameter)
        );
        assert_eq!(
            FixedPriority::new(&vcpu(32), quantum(1)),
            Err(PolicyError::BadParameter)
        );
        let many = [VcpuParameters::default(); MAX_SLOTS + 1];
        assert_eq!(
            FixedPriority::new(&many, quantum(1)),
            Err(PolicyError::TooManyVcpus)
        );
    }
}
