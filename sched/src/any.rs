// SPDX-License-Identifier: Apache-2.0
//! The policy a manifest chose, as one type without dynamic dispatch, with donation around it.

use crate::donation::Donating;
use crate::run_queue::all_slots;
use crate::table::bit;
use crate::types::HAS_SHORT_WAYS;
use crate::{
    Arinc653, Arinc653Parameters, Decision, Domains, DomainsParameters, Edf, EdfParameters, FixedPriority,
    FixedPriorityParameters, Outcome, PcpuPolicy, Pinned, Policy, PolicyError, ScheduleStatus, Signals, Slot,
    SlotSet, StopReason, Successor, Ticks, VcpuParameters,
};

/// One of the policies, with donation.
pub type AnyPolicy = Donating<Kind>;

/// One of the policies.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[allow(
    clippy::large_enum_variant,
    reason = "one per pCPU, in place; there is no heap to put the large ones on"
)]
pub enum Kind {
    /// One vCPU owns the pCPU.
    Pinned(Pinned),
    /// The highest ready priority runs.
    FixedPriority(FixedPriority),
    /// The earliest deadline runs.
    Edf(Edf),
    /// Windows in a frame.
    Arinc653(Arinc653),
    /// Time domains take turns.
    Domains(Domains),
}

/// Which policy, with its parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PolicyParameters<'a> {
    /// [`Pinned`].
    Pinned,
    /// [`FixedPriority`].
    FixedPriority(FixedPriorityParameters),
    /// [`Edf`].
    Edf(EdfParameters),
    /// [`Arinc653`].
    Arinc653(Arinc653Parameters<'a>),
    /// [`Domains`].
    Domains(DomainsParameters<'a>),
}

impl Kind {
    /// Gives a blank policy its slots, and what the parameters say besides.
    fn fill(
        &mut self,
        vcpus: &[VcpuParameters],
        parameters: &PolicyParameters<'_>,
    ) -> Result<(), PolicyError> {
        match (self, parameters) {
            (Self::Arinc653(policy), PolicyParameters::Arinc653(parameters)) => {
                policy.fill(vcpus, parameters)
            }
            (Self::Domains(policy), PolicyParameters::Domains(parameters)) => policy.fill(vcpus, parameters),
            (Self::FixedPriority(policy), PolicyParameters::FixedPriority(_)) => policy.fill(vcpus),
            (Self::Edf(policy), PolicyParameters::Edf(_)) => policy.fill(vcpus),
            (Self::Pinned(policy), PolicyParameters::Pinned) => policy.fill(vcpus),
            _ => Err(PolicyError::BadParameter),
        }
    }
}

impl AnyPolicy {
    /// [`PcpuPolicy::nobody`], as a constant.
    #[inline(always)]
    #[must_use]
    pub const fn nobody() -> Self {
        Self::new(Kind::Pinned(Pinned::blank()), SlotSet(0))
    }

    /// [`PcpuPolicy::blank`]. It is made where it stays: it is up to 5 KiB, and on its way through results and callers it would be
    /// copied again and again.
    #[inline(never)]
    #[must_use]
    pub fn blank(parameters: &PolicyParameters<'_>) -> Self {
        match *parameters {
            PolicyParameters::Pinned => Self::nobody(),
            PolicyParameters::FixedPriority(FixedPriorityParameters { quantum }) => {
                Self::made(|| Kind::FixedPriority(FixedPriority::blank(quantum)))
            }
            PolicyParameters::Edf(EdfParameters { quantum }) => Self::made(|| Kind::Edf(Edf::blank(quantum))),
            PolicyParameters::Arinc653(Arinc653Parameters { quantum, .. }) => {
                Self::made(|| Kind::Arinc653(Arinc653::blank(quantum)))
            }
            PolicyParameters::Domains(DomainsParameters { quantum, .. }) => {
                Self::made(|| Kind::Domains(Domains::blank(quantum)))
            }
        }
    }

    /// On its own for each of them, so that the stack holds what one needs.
    #[inline(never)]
    fn made(blank: impl FnOnce() -> Kind) -> Self {
        Self::new(blank(), SlotSet(0))
    }

    /// A policy with these vCPUs, slot 0 first.
    ///
    /// # Errors
    /// As `new` of the policy: [`Pinned::new`], [`FixedPriority::new`], [`Edf::new`], [`Arinc653::new`], [`Domains::new`].
    pub fn of(vcpus: &[VcpuParameters], parameters: &PolicyParameters<'_>) -> Result<Self, PolicyError> {
        let mut policy = Self::blank(parameters);
        policy.install(vcpus, parameters)?;
        Ok(policy)
    }

    /// Policy `pinned`.
    ///
    /// # Errors
    /// As [`Pinned::new`].
    pub fn pinned(vcpus: &[VcpuParameters]) -> Result<Self, PolicyError> {
        Self::of(vcpus, &PolicyParameters::Pinned)
    }

    /// Policy `fixed-priority`.
    ///
    /// # Errors
    /// As [`FixedPriority::new`].
    pub fn fixed_priority(
        vcpus: &[VcpuParameters],
        parameters: FixedPriorityParameters,
    ) -> Result<Self, PolicyError> {
        Self::of(vcpus, &PolicyParameters::FixedPriority(parameters))
    }

    /// Policy `edf`.
    ///
    /// # Errors
    /// As [`Edf::new`].
    pub fn edf(vcpus: &[VcpuParameters], parameters: EdfParameters) -> Result<Self, PolicyError> {
        Self::of(vcpus, &PolicyParameters::Edf(parameters))
    }

    /// Policy `arinc653`.
    ///
    /// # Errors
    /// As [`Arinc653::new`].
    pub fn arinc653(
        vcpus: &[VcpuParameters],
        parameters: Arinc653Parameters<'_>,
    ) -> Result<Self, PolicyError> {
        Self::of(vcpus, &PolicyParameters::Arinc653(parameters))
    }

    /// Policy `domains`.
    ///
    /// # Errors
    /// As [`Domains::new`].
    pub fn domains(vcpus: &[VcpuParameters], parameters: DomainsParameters<'_>) -> Result<Self, PolicyError> {
        Self::of(vcpus, &PolicyParameters::Domains(parameters))
    }
}

/// The usual case is `fixed-priority` without budgets while nobody lends. Then only the queue matters, and what is frequent has a
/// short way through all layers, without a call in it, that does what they would. `signals` has nothing new to say then.
impl PcpuPolicy for AnyPolicy {
    // The model checker and the random lives of `sched/tests` have seen to that.
    const IS_TRUSTED: bool = true;

    #[inline(always)]
    fn nobody() -> Self {
        Self::nobody()
    }

    #[inline(always)]
    fn blank(parameters: &PolicyParameters<'_>) -> Self {
        Self::blank(parameters)
    }

    fn install(
        &mut self,
        vcpus: &[VcpuParameters],
        parameters: &PolicyParameters<'_>,
    ) -> Result<(), PolicyError> {
        self.all = all_slots(vcpus.len()).0;
        self.policy.fill(vcpus, parameters)
    }

    #[inline]
    fn blocked(&mut self, slot: Slot, ran: Ticks, now: Ticks) -> Successor {
        if HAS_SHORT_WAYS {
            self.blocked_shortly(slot, ran, now)
        } else {
            Successor::NONE
        }
    }

    #[inline(always)]
    fn blocked_at_once(&mut self, slot: Slot, ran: Ticks, now: Ticks) -> Option<(Decision, SlotSet)> {
        if !HAS_SHORT_WAYS {
            return None;
        }
        let (true, Kind::FixedPriority(policy)) = (self.is_short, &mut self.policy) else {
            return None;
        };
        self.ready &= !bit(slot.0);
        let answer = policy.blocked(slot.0, ran, now);
        if let Decision::Run(slot, _) = answer.0 {
            self.place = slot.0;
        }
        Some(answer)
    }

    #[inline]
    fn woken_at_once(
        &mut self,
        slot: Slot,
        running: Option<Slot>,
        ran: Ticks,
        now: Ticks,
    ) -> Option<(Decision, SlotSet)> {
        let (true, Kind::FixedPriority(policy)) = (self.is_short, &mut self.policy) else {
            return None;
        };
        if !policy.wake(slot.0) {
            return None;
        }
        self.ready |= bit(slot.0);
        let answer = match running {
            Some(running) => policy.preempted(running.0, ran, now),
            None => policy.choose(now),
        };
        if let Decision::Run(slot, _) = answer.0 {
            self.place = slot.0;
        }
        Some(answer)
    }

    #[inline]
    fn preempted(&mut self, slot: Slot, ran: Ticks, now: Ticks) -> Successor {
        if HAS_SHORT_WAYS {
            self.preempted_shortly(slot, ran, now)
        } else {
            Successor::NONE
        }
    }

    #[inline]
    fn resumed(&mut self, now: Ticks) -> Successor {
        if HAS_SHORT_WAYS {
            self.resumed_shortly(now)
        } else {
            Successor::NONE
        }
    }

    fn wake(&mut self, slot: Slot, now: Ticks) {
        if let (true, Kind::FixedPriority(policy)) = (HAS_SHORT_WAYS && self.is_short, &mut self.policy)
            && policy.wake(slot.0)
        {
            self.ready |= bit(slot.0);
        } else {
            self.ready(slot, now);
        }
    }
}

/// The short ways themselves, one copy of each.
impl AnyPolicy {
    #[inline(never)]
    fn blocked_shortly(&mut self, slot: Slot, ran: Ticks, now: Ticks) -> Successor {
        match self.blocked_at_once(slot, ran, now) {
            None => Successor::NONE,
            Some((decision, interested)) => Successor::of(decision, interested),
        }
    }

    #[inline(never)]
    fn preempted_shortly(&mut self, slot: Slot, ran: Ticks, now: Ticks) -> Successor {
        let (true, Kind::FixedPriority(policy)) = (self.is_short, &mut self.policy) else {
            return Successor::NONE;
        };
        let answer = policy.preempted(slot.0, ran, now);
        self.answer(answer)
    }

    #[inline(never)]
    fn resumed_shortly(&mut self, now: Ticks) -> Successor {
        let (true, Kind::FixedPriority(policy)) = (self.is_short, &mut self.policy) else {
            return Successor::NONE;
        };
        let answer = policy.choose(now);
        self.answer(answer)
    }

    /// The decision stands: who runs is in its own place.
    #[inline(always)]
    fn answer(&mut self, (decision, interested): (Decision, SlotSet)) -> Successor {
        if let Decision::Run(slot, _) = decision {
            self.place = slot.0;
        }
        Successor::of(decision, interested)
    }
}

macro_rules! to_each {
    ($self:expr, $policy:ident => $call:expr) => {
        match $self {
            Self::Pinned($policy) => $call,
            Self::FixedPriority($policy) => $call,
            Self::Edf($policy) => $call,
            Self::Arinc653($policy) => $call,
            Self::Domains($policy) => $call,
        }
    };
}

impl Policy for Kind {
    fn ready(&mut self, slot: Slot, now: Ticks) {
        to_each!(self, policy => policy.ready(slot, now));
    }

    fn critical(&mut self, slot: Slot, now: Ticks) {
        to_each!(self, policy => policy.critical(slot, now));
    }

    fn stopped(&mut self, slot: Slot, why: StopReason, ran: Ticks, now: Ticks) {
        to_each!(self, policy => policy.stopped(slot, why, ran, now));
    }

    fn withdraw(&mut self, slot: Slot, now: Ticks) {
        to_each!(self, policy => policy.withdraw(slot, now));
    }

    fn next(&mut self, now: Ticks) -> Decision {
        to_each!(self, policy => policy.next(now))
    }

    fn decide(&mut self, now: Ticks) -> Outcome {
        to_each!(self, policy => policy.decide(now))
    }

    fn follow(&mut self, slot: Slot, why: StopReason, ran: Ticks, now: Ticks) -> Outcome {
        to_each!(self, policy => policy.follow(slot, why, ran, now))
    }

    fn has_short_way(&self) -> bool {
        matches!(self, Self::FixedPriority(policy) if policy.has_short_way())
    }

    fn interested(&self) -> SlotSet {
        to_each!(self, policy => policy.interested())
    }

    fn signals(&mut self) -> Signals {
        to_each!(self, policy => policy.signals())
    }

    fn change_schedule(&mut self, schedule: u8, now: Ticks) -> Result<(), PolicyError> {
        to_each!(self, policy => policy.change_schedule(schedule, now))
    }

    fn schedule(&self) -> ScheduleStatus {
        to_each!(self, policy => policy.schedule())
    }
}
