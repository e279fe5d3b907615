// SPDX-License-Identifier: Apache-2.0
//! The policy a manifest chose, as one type without dynamic dispatch.

use crate::{
    Arinc653Parameters, Decision, DomainsParameters, EdfParameters, FixedPriority, FixedPriorityParameters,
    Pinned, Policy, PolicyError, ScheduleStatus, Signals, Slot, SlotSet, StopReason, Ticks, VcpuParameters,
};

/// One of the policies.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(
    clippy::large_enum_variant,
    reason = "one per pCPU, in place; there is no heap to put the large one on"
)]
pub enum AnyPolicy {
    /// One vCPU owns the pCPU.
    Pinned(Pinned),
    /// The highest ready priority runs.
    FixedPriority(FixedPriority),
}

impl AnyPolicy {
    /// Policy `pinned`.
    ///
    /// # Errors
    /// As [`Pinned::new`].
    pub fn pinned(vcpus: &[VcpuParameters]) -> Result<Self, PolicyError> {
        Pinned::new(vcpus).map(Self::Pinned)
    }

    /// Policy `fixed-priority`.
    ///
    /// # Errors
    /// As [`FixedPriority::new`].
    pub fn fixed_priority(
        vcpus: &[VcpuParameters],
        parameters: FixedPriorityParameters,
    ) -> Result<Self, PolicyError> {
        FixedPriority::new(vcpus, parameters).map(Self::FixedPriority)
    }

    /// Policy `edf`.
    ///
    /// # Errors
    /// [`PolicyError::NotSupported`].
    pub fn edf(_vcpus: &[VcpuParameters], _parameters: EdfParameters) -> Result<Self, PolicyError> {
        Err(PolicyError::NotSupported)
    }

    /// Policy `arinc653`.
    ///
    /// # Errors
    /// [`PolicyError::NotSupported`].
    pub fn arinc653(
        _vcpus: &[VcpuParameters],
        _parameters: Arinc653Parameters<'_>,
    ) -> Result<Self, PolicyError> {
        Err(PolicyError::NotSupported)
    }

    /// Policy `domains`.
    ///
    /// # Errors
    /// [`PolicyError::NotSupported`].
    pub fn domains(
        _vcpus: &[VcpuParameters],
        _parameters: DomainsParameters<'_>,
    ) -> Result<Self, PolicyError> {
        Err(PolicyError::NotSupported)
    }
}

macro_rules! to_each {
    ($self:expr, $policy:ident => $call:expr) => {
        match $self {
            Self::Pinned($policy) => $call,
            Self::FixedPriority($policy) => $call,
        }
    };
}

impl Policy for AnyPolicy {
    fn ready(&mut self, slot: Slot, now: Ticks) {
        to_each!(self, policy => policy.ready(slot, now));
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

    fn interested(&self) -> SlotSet {
        to_each!(self, policy => policy.interested())
    }

    fn signals(&mut self) -> Signals {
        to_each!(self, policy => policy.signals())
    }

    fn critical(&mut self, slot: Slot, now: Ticks) {
        to_each!(self, policy => policy.critical(slot, now));
    }

    fn schedule(&self) -> ScheduleStatus {
        to_each!(self, policy => policy.schedule())
    }

    fn donate(&mut self, from: Slot, to: Slot, now: Ticks) -> Result<(), PolicyError> {
        to_each!(self, policy => policy.donate(from, to, now))
    }

    fn return_donation(&mut self, from: Slot, now: Ticks) -> Result<(), PolicyError> {
        to_each!(self, policy => policy.return_donation(from, now))
    }

    fn change_schedule(&mut self, schedule: u8, now: Ticks) -> Result<(), PolicyError> {
        to_each!(self, policy => policy.change_schedule(schedule, now))
    }
}
