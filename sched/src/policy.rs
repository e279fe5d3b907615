// SPDX-License-Identifier: Apache-2.0
//! The trait that every policy implements.
//!
//! The kernel tells a policy about events and asks it for decisions. A policy never acts. A decision stands
//! until its own end or until a slot of [`Policy::interested`] becomes ready, whichever is first. The timer
//! after the decision is one-shot.
//!
//! The kernel may ask late, because the hypervisor spends time around a policy. Then `now` is past the end of
//! the decision, and `ran` is the time that the vCPU really ran. Budgets are charged by `ran`. Boundaries are
//! computed from where they should have been. So a late call neither loses nor makes time.

use crate::{Signals, Slot, SlotSet, Ticks};

/// The reason why a running vCPU does not go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StopReason {
    /// The vCPU is still ready. The kernel wants a decision, because of an event or because `until` has come.
    Preempted,
    /// The vCPU has nothing to do before it is made ready again.
    Blocked,
    /// The vCPU is still ready, and gives the rest of its turn to its equals. This reason is for kernels that
    /// have such a call. The kernel of Bulkhead has none.
    Yielded,
}

/// The slot to run, and how long the decision stands if nothing happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Decision {
    /// The policy runs this slot until then.
    Run(Slot, Ticks),
    /// The policy runs nothing until then.
    Idle(Ticks),
}

/// The decision in force on a pCPU. The kernel owns it, and [`Policy::decide`] replaces it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(C)]
pub struct InForce {
    /// The end of the decision.
    pub until: Ticks,
    /// The slots whose `ready` would change the decision.
    pub interested: SlotSet,
    /// The slot that runs, or [`InForce::NOBODY`].
    pub slot: Slot,
    /// True if [`Policy::signals`] has something to report.
    pub has_signals: bool,
}

impl InForce {
    /// The slot of a pCPU that idles.
    pub const NOBODY: Slot = Slot(u8::MAX);
    /// The state before any decision has been taken.
    pub const NONE: Self = Self {
        until: Ticks::MAX,
        interested: SlotSet(0),
        slot: Self::NOBODY,
        has_signals: false,
    };

    /// Replaces the decision. The caller sets `has_signals`.
    #[inline(always)]
    pub const fn set(&mut self, decision: Decision, interested: SlotSet) {
        (self.slot, self.until) = match decision {
            Decision::Run(slot, until) => (slot, until),
            Decision::Idle(until) => (Self::NOBODY, until),
        };
        self.interested = interested;
    }

    /// Returns the decision in the form in which a policy answers.
    #[inline]
    #[must_use]
    pub fn decision(&self) -> Decision {
        match self.slot {
            Self::NOBODY => Decision::Idle(self.until),
            slot => Decision::Run(slot, self.until),
        }
    }
}

/// The reason why a policy refuses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PolicyError {
    /// There are more vCPUs than the policy can hold.
    TooManyVcpus,
    /// A parameter is out of range.
    BadParameter,
    /// The policy has no such operation.
    NotSupported,
    /// The donation would come back to the vCPU where it started.
    DonationCycle,
}

/// The schedule that a policy with several schedules follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct ScheduleStatus {
    /// The schedule in force.
    pub current: u8,
    /// The schedule that begins at the next boundary. It is the same as `current` if no change is pending.
    pub next: u8,
    /// The moment at which the schedule in force began.
    pub since: Ticks,
}

/// A scheduling policy of one pCPU.
///
/// Protocol: slots start blocked. `ready` may come at any time, also for a slot that is ready. After `next`
/// returned `Run(slot, _)`, exactly one `stopped(slot, ..)` comes before the following `next`. Times never go
/// back.
pub trait Policy {
    /// Takes note that `slot` has something to do.
    fn ready(&mut self, slot: Slot, now: Ticks);
    /// Takes note that the slot that ran stops. The slot ran for `ran` ticks up to `now`.
    fn stopped(&mut self, slot: Slot, why: StopReason, ran: Ticks, now: Ticks);
    /// Takes `slot` out of the ready set, because its partition is stopped. The slot is not running.
    fn withdraw(&mut self, slot: Slot, now: Ticks);
    /// Returns the decision at `now`.
    fn next(&mut self, now: Ticks) -> Decision;
    /// Returns the slots that are ready: `ready` named them, and they have neither blocked nor been withdrawn
    /// since.
    fn ready_slots(&self) -> SlotSet;
    /// Returns the slots whose `ready` would change the last decision. Other slots need not interrupt that
    /// decision. The policy takes note of them at the next decision.
    fn interested(&self) -> SlotSet;
    /// Takes the effects of the decisions since the last call. The caller asks after `next`. The call clears
    /// the effects.
    fn signals(&mut self) -> Signals {
        Signals::default()
    }
    /// Tells whether [`Policy::signals`] has something to report.
    fn has_signals(&self) -> bool {
        true
    }
    /// Puts [`Policy::next`] in force, with the answer of [`Policy::interested`] afterwards.
    #[inline(always)]
    fn decide(&mut self, now: Ticks, in_force: &mut InForce) {
        let decision = self.next(now);
        in_force.set(decision, self.interested());
        in_force.has_signals = self.has_signals();
    }
    /// Does [`Policy::stopped`] of a slot that blocks and [`Policy::decide`] in one step. Most switches
    /// consist of this step.
    #[inline(always)]
    fn block(&mut self, slot: Slot, ran: Ticks, now: Ticks, in_force: &mut InForce) {
        self.stopped(slot, StopReason::Blocked, ran, now);
        self.decide(now, in_force);
    }
    /// Takes note that a critical interrupt made `slot` ready. If the policy has such a thing, it serves the
    /// slot with precedence until the slot blocks. The kernel asks for a decision afterwards, even if
    /// `interested` does not have the slot.
    fn critical(&mut self, slot: Slot, now: Ticks) {
        self.ready(slot, now);
    }
    /// Tells whether [`Policy::donate`] would succeed. `from` may run.
    ///
    /// # Errors
    /// The error of [`Policy::donate`].
    fn check_donation(&self, _from: Slot, _to: Slot) -> Result<(), PolicyError> {
        Err(PolicyError::NotSupported)
    }
    /// Blocks `from`, which is not running, on `to`. Until `return_donation`, `from` lends `to` its place.
    ///
    /// # Errors
    /// [`PolicyError::NotSupported`] unless the policy has donation. [`PolicyError::DonationCycle`] if `to`
    /// lends its own place to `from`, also through others. [`PolicyError::BadParameter`] for a slot that does
    /// not exist, and for a `from` that lends its place already. An error changes nothing.
    fn donate(&mut self, _from: Slot, _to: Slot, _now: Ticks) -> Result<(), PolicyError> {
        Err(PolicyError::NotSupported)
    }
    /// Ends the donation that `donate(from, ..)` began. Then `from` is ready.
    ///
    /// # Errors
    /// [`PolicyError::NotSupported`] unless the policy has donation. [`PolicyError::BadParameter`] if `from`
    /// does not lend its place.
    fn return_donation(&mut self, _from: Slot, _now: Ticks) -> Result<(), PolicyError> {
        Err(PolicyError::NotSupported)
    }
    /// Ends the donation that `donate(from, ..)` began. Then `from` waits on, in its own place: it is not
    /// ready. A slot that lends its place to `from` still does. No slot is running.
    ///
    /// # Errors
    /// As [`Policy::return_donation`].
    fn retract_donation(&mut self, _from: Slot, _now: Ticks) -> Result<(), PolicyError> {
        Err(PolicyError::NotSupported)
    }
    /// Hands the place that `from` runs in over to `to`, without a decision. `from` runs, and blocks on
    /// `to`, which is not ready. From then on `to` runs, as after [`Policy::donate`], until the same end.
    /// `from` ran for `ran` ticks up to `now`. The next [`Policy::stopped`] names `to`, with the time since
    /// `now`. Returns false if the policy has to decide. Then nothing has changed.
    fn hand_over(
        &mut self,
        (_from, _to): (Slot, Slot),
        _ran: Ticks,
        _now: Ticks,
        _in_force: &mut InForce,
    ) -> bool {
        false
    }
    /// Hands the place that `to` runs in back to `from`, which lent it, without a decision. `to` runs, and
    /// blocks. From then on `from` runs, as after [`Policy::return_donation`], until the same end. The rest
    /// is as for [`Policy::hand_over`].
    fn hand_back(
        &mut self,
        (_from, _to): (Slot, Slot),
        _ran: Ticks,
        _now: Ticks,
        _in_force: &mut InForce,
    ) -> bool {
        false
    }
    /// Switches to another schedule of the policy at the next boundary. The last call before the boundary
    /// counts.
    ///
    /// # Errors
    /// [`PolicyError::NotSupported`] unless the policy has schedules. [`PolicyError::BadParameter`] if it has
    /// no such schedule.
    fn change_schedule(&mut self, _schedule: u8, _now: Ticks) -> Result<(), PolicyError> {
        Err(PolicyError::NotSupported)
    }
    /// Returns the schedule in force, as of the last decision.
    fn schedule(&self) -> ScheduleStatus {
        ScheduleStatus::default()
    }
}
