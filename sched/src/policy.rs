// SPDX-License-Identifier: Apache-2.0
//! The trait every policy implements.
//!
//! A policy is told what happened and asked what to do; it never acts. A decision stands until its own end or
//! until a slot of [`Policy::interested`] becomes ready, whichever is first: the timer behind it is one-shot.
//! A policy may be asked late, by whatever the hypervisor spends around it: `now` is then past the end of the
//! decision, and `ran` is what the vCPU really ran. Budgets are charged by `ran`, boundaries are computed from
//! where they should have been; so being late neither loses nor makes time.

use crate::{Signals, Slot, SlotSet, Ticks};

/// Why a running vCPU does not go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StopReason {
    /// Still ready: a decision is wanted (an event, or `until` has come).
    Preempted,
    /// Nothing to do before it is made ready again.
    Blocked,
    /// Still ready, and gives the rest of its turn to its equals. For kernels that have such a call; Bulkhead's has none.
    Yielded,
}

/// What to do, and how long that decision stands if nothing happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Decision {
    /// Run this slot until then.
    Run(Slot, Ticks),
    /// Run nothing until then.
    Idle(Ticks),
}

/// What [`Policy::decide`] and [`Policy::follow`] answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Outcome {
    /// The decision.
    pub decision: Decision,
    /// The slots whose `ready` would change it.
    pub interested: SlotSet,
    /// What it has brought about; `None` is nothing.
    pub signals: Option<Signals>,
}

/// Why a policy refuses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PolicyError {
    /// More vCPUs than the policy can hold.
    TooManyVcpus,
    /// A parameter is out of range.
    BadParameter,
    /// This policy has no such operation.
    NotSupported,
    /// The donation would come back to the vCPU it started from.
    DonationCycle,
}

/// Which schedule a policy with several follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct ScheduleStatus {
    /// The schedule in force.
    pub current: u8,
    /// The one that begins at the next boundary; the same as `current` if no change is pending.
    pub next: u8,
    /// When the schedule in force began.
    pub since: Ticks,
}

/// A scheduling policy of one pCPU.
///
/// Protocol: slots start blocked. `ready` may come at any time, also for a slot that is ready. After
/// `next` returned `Run(slot, _)`, exactly one `stopped(slot, ..)` comes before the following `next`.
/// Times never go back.
pub trait Policy {
    /// `slot` has something to do.
    fn ready(&mut self, slot: Slot, now: Ticks);
    /// The slot that ran stops; it ran for `ran` ticks up to `now`.
    fn stopped(&mut self, slot: Slot, why: StopReason, ran: Ticks, now: Ticks);
    /// `slot`, which is not running, is taken out of the ready set (its partition is stopped).
    fn withdraw(&mut self, slot: Slot, now: Ticks);
    /// The decision at `now`.
    fn next(&mut self, now: Ticks) -> Decision;
    /// The slots whose `ready` would change the decision made last. Others need not interrupt it:
    /// what happens to them is noticed at the next decision.
    fn interested(&self) -> SlotSet;
    /// What the decisions since the last call have brought about; taken after `next`, and cleared by it.
    fn signals(&mut self) -> Signals {
        Signals::default()
    }
    /// [`Policy::next`], and what [`Policy::interested`] and [`Policy::signals`] say afterwards.
    #[inline]
    fn decide(&mut self, now: Ticks) -> Outcome {
        let decision = self.next(now);
        Outcome {
            decision,
            interested: self.interested(),
            signals: Some(self.signals()),
        }
    }
    /// [`Policy::stopped`] and [`Policy::decide`] in one step, which is what nearly every decision consists of.
    #[inline]
    fn follow(&mut self, slot: Slot, why: StopReason, ran: Ticks, now: Ticks) -> Outcome {
        self.stopped(slot, why, ran, now);
        self.decide(now)
    }
    /// Whether the policy is one that [`crate::PcpuPolicy::blocked`] has a way for; that never changes.
    fn has_short_way(&self) -> bool {
        false
    }
    /// A critical interrupt made `slot` ready: it is served with precedence until it blocks, if the
    /// policy has such a thing. A decision is wanted afterwards, whether `interested` has the slot or not.
    fn critical(&mut self, slot: Slot, now: Ticks) {
        self.ready(slot, now);
    }
    /// `from`, which is not running, blocks on `to` and lends it its place until `return_donation`.
    ///
    /// # Errors
    /// [`PolicyError::NotSupported`] unless the policy has donation, [`PolicyError::DonationCycle`] if `to`
    /// lends its own place to `from`, also through others, [`PolicyError::BadParameter`] for a slot that does not exist and
    /// for a `from` that lends its place already. Nothing has changed then.
    fn donate(&mut self, _from: Slot, _to: Slot, _now: Ticks) -> Result<(), PolicyError> {
        Err(PolicyError::NotSupported)
    }
    /// Ends what `donate(from, ..)` began; `from` is ready.
    ///
    /// # Errors
    /// [`PolicyError::NotSupported`] unless the policy has donation, [`PolicyError::BadParameter`] if `from` does
    /// not lend its place.
    fn return_donation(&mut self, _from: Slot, _now: Ticks) -> Result<(), PolicyError> {
        Err(PolicyError::NotSupported)
    }
    /// Switches to another of the policy's schedules at its next boundary; the last call before it counts.
    ///
    /// # Errors
    /// [`PolicyError::NotSupported`] unless the policy has schedules, [`PolicyError::BadParameter`] if it has no
    /// such schedule.
    fn change_schedule(&mut self, _schedule: u8, _now: Ticks) -> Result<(), PolicyError> {
        Err(PolicyError::NotSupported)
    }
    /// The schedule in force, as of the last decision.
    fn schedule(&self) -> ScheduleStatus {
        ScheduleStatus::default()
    }
}
