// SPDX-License-Identifier: Apache-2.0
//! Policy `fixed-priority`: the highest ready priority with budget runs. Equals take turns.
//!
//! **Model.** vCPUs run by priority and share turns of a quantum with their equals ([`RunQueue`]). A vCPU may
//! have a budget as a deferrable or sporadic server (`server.rs`). While the budget is used up, the vCPU does
//! not run, and it keeps its readiness. Preemptive fixed priorities are as in Liu and Layland, "Scheduling
//! Algorithms for Multiprogramming in a Hard-Real-Time Environment", 1973.
//!
//! **Timer.** A decision ends with the turn, with the budget, or when a vCPU that is at least as important
//! has budget again. The policy ignores changes of less important vCPUs until the next decision. Alone and
//! without a budget, a vCPU runs without a deadline.
//!
//! **Cost.** Choosing is O(1). Waiting for budget is O(log n): a tournament of times in the order of
//! importance. A decision first takes note of the budgets that are back, each of them once per replenishment.
//!
//! **Not here.** Priority 31 without a budget can starve the rest. This priority is meant for that.

use crate::run_queue::{Band, Pick, RunQueue, all_slots};
use crate::server::Budget;
use crate::table::{Table, bit};
use crate::timers::Timers;
use crate::{
    Decision, FixedPriorityParameters, InForce, MAX_SLOTS, PRIORITIES, Policy, PolicyError, Signals, Slot,
    SlotSet, StopReason, Ticks, VcpuParameters,
};

/// The policy. The fields that every decision touches come first.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[repr(C)]
pub struct FixedPriority {
    /// The slots that are ready, if there are budgets. Without budgets, the ready slots are the members of
    /// the queue.
    ready: u32,
    /// The answer of `interested` about the decision in force.
    interested: SlotSet,
    /// The slots that are ready and have budget.
    queue: RunQueue,
    /// True if no slot has a budget. Then the ready slots are the members of the queue.
    is_unlimited: bool,
    /// All slots.
    all: Band,
    /// The slots that were found without budget and have not been seen with some since.
    exhausted: u32,
    signals: Signals,
    budgets: Table<Budget>,
    /// By rank: the time at which a ready slot without budget has some again.
    replenishments: Timers,
}

/// Returns no budgets. The function stands alone, so that the budgets are written where they stay.
#[inline(never)]
const fn unlimited() -> Table<Budget> {
    // A constant is copied to its place. An array that is made here would be on the stack first.
    const ALL: Table<Budget> = Table::new(Budget::Unlimited);
    ALL
}

impl FixedPriority {
    /// Returns the policy of a pCPU with these vCPUs, slot 0 first.
    ///
    /// # Errors
    /// [`PolicyError::TooManyVcpus`] if there are too many vCPUs. [`PolicyError::BadParameter`] for a
    /// priority above 31, a quantum of 0, a budget of 0 or above the period, or a server that is `edf`'s.
    pub fn new(vcpus: &[VcpuParameters], parameters: FixedPriorityParameters) -> Result<Self, PolicyError> {
        let mut policy = Self::blank(parameters.quantum);
        policy.fill(vcpus)?;
        Ok(policy)
    }

    /// Returns a policy without slots.
    pub(crate) const fn blank(quantum: Ticks) -> Self {
        Self {
            queue: RunQueue::new(quantum),
            all: Band::NONE,
            budgets: unlimited(),
            replenishments: Timers::new(),
            ready: 0,
            exhausted: 0,
            interested: SlotSet(0),
            signals: Signals::NONE,
            is_unlimited: true,
        }
    }

    /// Gives a blank policy its slots. After an error the policy must not be used.
    pub(crate) fn fill(&mut self, vcpus: &[VcpuParameters]) -> Result<(), PolicyError> {
        check(vcpus, self.queue.quantum())?;
        for (slot, vcpu) in (0..).zip(vcpus) {
            *self.budgets.at_mut(slot) = Budget::new(vcpu.server)?;
            self.is_unlimited &= vcpu.server.is_none();
        }
        self.queue.sort(vcpus, &Table::new(0));
        self.interested = all_slots(vcpus.len());
        self.all = self.queue.band(self.interested.0);
        Ok(())
    }

    /// Puts a ready slot where its budget says.
    fn place(&mut self, slot: u8, now: Ticks) {
        let from = self.budgets.at_mut(slot).available_from(now);
        if from <= now {
            self.queue.add(slot);
            self.signals.replenished.0 |= self.forget(slot);
        } else {
            self.replenishments.set(self.queue.rank(slot), from);
            self.queue.remove(slot);
            self.signals.exhausted.0 |= !self.exhausted & bit(slot);
            self.exhausted |= bit(slot);
        }
    }

    /// Stops the wait of `slot` for budget. Returns the bit of the slot if it did wait.
    fn forget(&mut self, slot: u8) -> u32 {
        let waited = self.exhausted & bit(slot);
        if waited != 0 {
            self.replenishments.set(self.queue.rank(slot), Ticks::MAX);
            self.exhausted &= !waited;
        }
        waited
    }

    fn unready(&mut self, slot: u8) {
        self.ready &= !bit(slot);
        self.queue.remove(slot);
        if self.is_unlimited {
            return;
        }
        if self.exhausted & bit(slot) != 0 {
            self.replenishments.set(self.queue.rank(slot), Ticks::MAX);
        }
        self.budgets.at_mut(slot).deactivate();
    }

    /// Does [`Policy::ready`], with budgets.
    #[inline(never)]
    fn activate(&mut self, slot: u8, now: Ticks) {
        if self.ready & bit(slot) == 0 {
            self.ready |= bit(slot);
            self.budgets.at_mut(slot).activate(now);
            self.place(slot, now);
        }
    }

    /// Does [`Policy::stopped`], with budgets.
    #[inline(never)]
    fn charge(&mut self, slot: u8, why: StopReason, ran: Ticks, now: Ticks) {
        if self.ready & bit(slot) == 0 {
            return;
        }
        self.budgets.at_mut(slot).charge(ran, now);
        self.place(slot, now);
        if why == StopReason::Blocked {
            self.unready(slot);
        }
    }

    /// Puts a choice in force, without budgets.
    #[inline(always)]
    fn choose(&mut self, pick: Option<Pick>, now: Ticks, in_force: &mut InForce) {
        let Some(pick) = pick else {
            return self.idle(in_force);
        };
        self.interested = SlotSet(pick.interested);
        *in_force = InForce {
            slot: pick.slot,
            until: now.saturating_add(pick.left),
            interested: self.interested,
            has_signals: false,
        };
    }

    #[inline(never)]
    const fn idle(&mut self, in_force: &mut InForce) {
        self.interested = SlotSet(self.all.slots);
        *in_force = InForce {
            interested: self.interested,
            ..InForce::NONE
        };
    }

    #[inline(never)]
    fn block_with_budget(&mut self, slot: Slot, ran: Ticks, now: Ticks, in_force: &mut InForce) {
        self.stopped(slot, StopReason::Blocked, ran, now);
        self.decide(now, in_force);
    }

    /// Does [`Policy::next`], with budgets.
    #[inline(never)]
    fn next_with_budgets(&mut self, now: Ticks) -> Decision {
        self.replenish(now);
        let Some(pick) = self.queue.pick(Band::EVERYONE) else {
            self.interested = SlotSet(self.all.slots & !self.ready);
            return Decision::Idle(self.replenishments.earliest());
        };
        self.interested = SlotSet(pick.interested & !self.ready);
        let until = now
            .saturating_add(pick.left)
            .min(self.budgets.at_mut(pick.slot.0).lasts_until(now))
            .min(self.replenishments.earliest_from(pick.interested_from));
        Decision::Run(pick.slot, until)
    }

    /// Takes note of the budgets that are back. Each slot has one time, and the time is in the future
    /// afterwards.
    fn replenish(&mut self, now: Ticks) {
        while self.replenishments.earliest() <= now {
            let Some(rank) = self.replenishments.first() else {
                return;
            };
            self.place(self.queue.slot(rank), now);
        }
    }
}

/// Checks the demands of all policies with priorities and turns.
pub fn check(vcpus: &[VcpuParameters], quantum: Ticks) -> Result<(), PolicyError> {
    if vcpus.len() > MAX_SLOTS {
        return Err(PolicyError::TooManyVcpus);
    }
    let is_bad = |vcpu: &VcpuParameters| usize::from(vcpu.priority) >= PRIORITIES;
    if quantum == 0 || vcpus.iter().any(is_bad) {
        return Err(PolicyError::BadParameter);
    }
    Ok(())
}

impl Policy for FixedPriority {
    #[inline(always)]
    fn ready(&mut self, slot: Slot, now: Ticks) {
        let slot = slot.0;
        if self.all.slots & bit(slot) == 0 || usize::from(slot) >= MAX_SLOTS {
            return;
        }
        if self.is_unlimited {
            self.queue.add(slot);
        } else {
            self.activate(slot, now);
        }
    }

    #[inline(never)]
    fn stopped(&mut self, slot: Slot, why: StopReason, ran: Ticks, now: Ticks) {
        self.queue.stopped(slot.0, why, ran);
        if !self.is_unlimited {
            self.charge(slot.0, why, ran, now);
        } else if why == StopReason::Blocked {
            self.queue.remove(slot.0);
        }
    }

    fn withdraw(&mut self, slot: Slot, _now: Ticks) {
        if usize::from(slot.0) < MAX_SLOTS {
            self.unready(slot.0);
        }
    }

    fn next(&mut self, now: Ticks) -> Decision {
        let mut in_force = InForce::NONE;
        self.decide(now, &mut in_force);
        in_force.decision()
    }

    #[inline]
    fn decide(&mut self, now: Ticks, in_force: &mut InForce) {
        if self.is_unlimited {
            let pick = self.queue.pick(Band::EVERYONE);
            self.choose(pick, now, in_force);
        } else {
            let decision = self.next_with_budgets(now);
            in_force.set(decision, self.interested);
            in_force.has_signals = !self.signals.is_none();
        }
    }

    #[inline(always)]
    fn block(&mut self, slot: Slot, ran: Ticks, now: Ticks, in_force: &mut InForce) {
        if self.is_unlimited {
            let pick = self.queue.blocked(slot.0, ran, Band::EVERYONE);
            self.choose(pick, now, in_force);
        } else {
            self.block_with_budget(slot, ran, now, in_force);
        }
    }

    fn ready_slots(&self) -> SlotSet {
        SlotSet(if self.is_unlimited {
            self.queue.ready()
        } else {
            self.ready
        })
    }

    fn interested(&self) -> SlotSet {
        self.interested
    }

    fn has_signals(&self) -> bool {
        !self.is_unlimited && !self.signals.is_none()
    }

    fn signals(&mut self) -> Signals {
        core::mem::take(&mut self.signals)
    }
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
