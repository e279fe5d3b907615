// SPDX-License-Identifier: Apache-2.0
//! The policy a manifest chose, as one type without dynamic dispatch, with donation around it.

use crate::donation::Donating;
use crate::run_queue::all_slots;
use crate::{
    Arinc653, Arinc653Parameters, Decision, Domains, DomainsParameters, Edf, EdfParameters, FixedPriority,
    FixedPriorityParameters, Pinned, Policy, PolicyError, ScheduleStatus, Signals, Slot, SlotSet, StopReason,
    Ticks, VcpuParameters,
};

/// One of the policies, with donation.
pub type AnyPolicy = Donating<Kind>;

/// One of the policies.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[expect(
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

impl AnyPolicy {
    const fn of(kind: Kind, vcpus: &[VcpuParameters]) -> Self {
        Self::new(kind, all_slots(vcpus.len()))
    }

    /// Policy `pinned`.
    ///
    /// # Errors
    /// As [`Pinned::new`].
    pub fn pinned(vcpus: &[VcpuParameters]) -> Result<Self, PolicyError> {
        Ok(Self::of(Kind::Pinned(Pinned::new(vcpus)?), vcpus))
    }

    /// Policy `fixed-priority`.
    ///
    /// # Errors
    /// As [`FixedPriority::new`].
    pub fn fixed_priority(
        vcpus: &[VcpuParameters],
        parameters: FixedPriorityParameters,
    ) -> Result<Self, PolicyError> {
        let policy = FixedPriority::new(vcpus, parameters)?;
        Ok(Self::of(Kind::FixedPriority(policy), vcpus))
    }

    /// Policy `edf`.
    ///
    /// # Errors
    /// As [`Edf::new`].
    pub fn edf(vcpus: &[VcpuParameters], parameters: EdfParameters) -> Result<Self, PolicyError> {
        Ok(Self::of(Kind::Edf(Edf::new(vcpus, parameters)?), vcpus))
    }

    /// Policy `arinc653`.
    ///
    /// # Errors
    /// As [`Arinc653::new`].
    pub fn arinc653(
        vcpus: &[VcpuParameters],
        parameters: Arinc653Parameters<'_>,
    ) -> Result<Self, PolicyError> {
        Ok(Self::of(Kind::Arinc653(Arinc653::new(vcpus, parameters)?), vcpus))
    }

    /// Policy `domains`.
    ///
    /// # Errors
    /// As [`Domains::new`].
    pub fn domains(vcpus: &[VcpuParameters], parameters: DomainsParameters<'_>) -> Result<Self, PolicyError> {
        Ok(Self::of(Kind::Domains(Domains::new(vcpus, parameters)?), vcpus))
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

    /// Only the usual policy has a short way; the others need no look.
    #[inline]
    fn follow(&mut self, slot: Slot, why: StopReason, ran: Ticks, now: Ticks) -> Option<(Decision, SlotSet)> {
        match self {
            Self::FixedPriority(policy) => policy.follow(slot, why, ran, now),
            _ => None,
        }
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
