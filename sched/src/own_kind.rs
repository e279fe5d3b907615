// SPDX-License-Identifier: Apache-2.0
//! A policy of the user's own beside the policies of this crate.
//!
//! A class binary for one system has [`AnyOwnPolicy`] of the user's type on every pCPU. The manifest says
//! which pCPU has the user's policy. The kernel trusts no decision of such a class binary: it checks each
//! one.

use crate::{
    AnyKind, AnyPolicy, Decision, InForce, OwnPolicy, PcpuPolicy, Policy, PolicyError, PolicyParameters,
    ScheduleStatus, Signals, Slot, SlotSet, StopReason, Ticks, VcpuParameters,
};

/// One of the policies of this crate, or the user's own.
#[derive(Clone, Debug)]
#[allow(
    clippy::large_enum_variant,
    reason = "one per pCPU, in place; there is no heap to put the large ones on"
)]
pub enum Either<O, P> {
    /// A policy of this crate.
    Ours(O),
    /// The user's own.
    Own(P),
}

/// One of the policies of a class binary.
pub type OwnKind<P> = Either<AnyKind, P>;

impl<P> From<AnyPolicy> for Either<AnyPolicy, P> {
    fn from(policy: AnyPolicy) -> Self {
        Self::Ours(policy)
    }
}

impl<P: OwnPolicy> OwnKind<P> {
    /// Returns a policy without slots. The function stands alone, so that the stack holds the space of this
    /// policy only while the policy is made.
    #[inline(never)]
    fn blank_kind(parameters: &PolicyParameters<'_>) -> Self {
        let blank = AnyPolicy::blank(parameters);
        #[cfg(feature = "donation")]
        let blank = blank.policy;
        Self::Ours(blank)
    }

    #[inline(never)]
    fn fill(
        &mut self,
        vcpus: &[VcpuParameters],
        parameters: &PolicyParameters<'_>,
    ) -> Result<(), PolicyError> {
        match (parameters, &mut *self) {
            (PolicyParameters::Own(own), _) => {
                *self = Self::Own(P::new(vcpus, own.quantum)?);
                Ok(())
            }
            (_, Self::Ours(policy)) => policy.fill(vcpus, parameters),
            (_, Self::Own(_)) => Err(PolicyError::BadParameter),
        }
    }
}

/// The policy of a pCPU of a class binary with the user's own policy, with donation where vCPUs wait for each
/// other.
#[cfg(feature = "donation")]
pub type AnyOwnPolicy<P> = crate::Donating<OwnKind<P>>;
/// The policy of a pCPU of a class binary with the user's own policy. No vCPU of such a build waits for
/// another one.
#[cfg(not(feature = "donation"))]
pub type AnyOwnPolicy<P> = OwnKind<P>;

/// With donation, where vCPUs wait for each other.
#[cfg(feature = "donation")]
impl<P: OwnPolicy> PcpuPolicy for crate::Donating<OwnKind<P>> {
    fn nobody() -> Self {
        Self::blank(&PolicyParameters::Pinned)
    }

    fn blank(parameters: &PolicyParameters<'_>) -> Self {
        Self::new(OwnKind::blank_kind(parameters), SlotSet(0))
    }

    fn install(
        &mut self,
        vcpus: &[VcpuParameters],
        parameters: &PolicyParameters<'_>,
    ) -> Result<(), PolicyError> {
        self.all = crate::run_queue::all_slots(vcpus.len()).0;
        self.policy.fill(vcpus, parameters)
    }
}

/// Where no vCPU waits for another one.
impl<P: OwnPolicy> PcpuPolicy for OwnKind<P> {
    fn nobody() -> Self {
        Self::blank(&PolicyParameters::Pinned)
    }

    fn blank(parameters: &PolicyParameters<'_>) -> Self {
        Self::blank_kind(parameters)
    }

    fn install(
        &mut self,
        vcpus: &[VcpuParameters],
        parameters: &PolicyParameters<'_>,
    ) -> Result<(), PolicyError> {
        self.fill(vcpus, parameters)
    }
}

/// Calls the policy, whichever it is.
macro_rules! either {
    ($self:expr, $policy:ident => $call:expr) => {
        match $self {
            Self::Ours($policy) => $call,
            Self::Own($policy) => $call,
        }
    };
}

/// A hand-over goes the long way, which each policy has.
impl<O: Policy, P: Policy> Policy for Either<O, P> {
    fn ready(&mut self, slot: Slot, now: Ticks) {
        either!(self, policy => policy.ready(slot, now));
    }

    fn critical(&mut self, slot: Slot, now: Ticks) {
        either!(self, policy => policy.critical(slot, now));
    }

    fn stopped(&mut self, slot: Slot, why: StopReason, ran: Ticks, now: Ticks) {
        either!(self, policy => policy.stopped(slot, why, ran, now));
    }

    fn withdraw(&mut self, slot: Slot, now: Ticks) {
        either!(self, policy => policy.withdraw(slot, now));
    }

    fn next(&mut self, now: Ticks) -> Decision {
        either!(self, policy => policy.next(now))
    }

    fn decide(&mut self, now: Ticks, in_force: &mut InForce) {
        either!(self, policy => policy.decide(now, in_force));
    }

    fn block(&mut self, slot: Slot, ran: Ticks, now: Ticks, in_force: &mut InForce) {
        either!(self, policy => policy.block(slot, ran, now, in_force));
    }

    fn ready_slots(&self) -> SlotSet {
        either!(self, policy => policy.ready_slots())
    }

    fn interested(&self) -> SlotSet {
        either!(self, policy => policy.interested())
    }

    fn has_signals(&self) -> bool {
        either!(self, policy => policy.has_signals())
    }

    fn signals(&mut self) -> Signals {
        either!(self, policy => policy.signals())
    }

    fn check_donation(&self, from: Slot, to: Slot) -> Result<(), PolicyError> {
        either!(self, policy => policy.check_donation(from, to))
    }

    fn donate(&mut self, from: Slot, to: Slot, now: Ticks) -> Result<(), PolicyError> {
        either!(self, policy => policy.donate(from, to, now))
    }

    fn return_donation(&mut self, from: Slot, now: Ticks) -> Result<(), PolicyError> {
        either!(self, policy => policy.return_donation(from, now))
    }

    fn retract_donation(&mut self, from: Slot, now: Ticks) -> Result<(), PolicyError> {
        either!(self, policy => policy.retract_donation(from, now))
    }

    fn change_schedule(&mut self, schedule: u8, now: Ticks) -> Result<(), PolicyError> {
        either!(self, policy => policy.change_schedule(schedule, now))
    }

    fn schedule(&self) -> ScheduleStatus {
        either!(self, policy => policy.schedule())
    }
}
