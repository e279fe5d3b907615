// SPDX-License-Identifier: Apache-2.0
//! The policy that a manifest chose, as one type without dynamic dispatch, with donation around it.

#[cfg(feature = "arinc653")]
use crate::Arinc653;
#[cfg(feature = "domains")]
use crate::Domains;
#[cfg(feature = "edf")]
use crate::Edf;
#[cfg(feature = "donation")]
use crate::donation::Donating;
use crate::{
    Arinc653Parameters, Decision, DomainsParameters, EdfParameters, FixedPriority, FixedPriorityParameters,
    InForce, PcpuPolicy, Pinned, Policy, PolicyError, ScheduleStatus, Signals, Slot, SlotSet, StopReason,
    Ticks, VcpuParameters,
};

/// One of the policies, with donation where vCPUs wait for each other.
#[cfg(feature = "donation")]
pub type AnyPolicy = Donating<AnyKind>;
/// One of the policies. No vCPU of such a build waits for another one.
#[cfg(not(feature = "donation"))]
pub type AnyPolicy = AnyKind;

/// One of the policies of this build.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[allow(
    clippy::large_enum_variant,
    reason = "one per pCPU, in place; there is no heap to put the large ones on"
)]
pub enum AnyKind {
    /// `pinned`: one vCPU owns the pCPU.
    Pinned(Pinned),
    /// `fixed-priority`: the highest ready priority runs.
    FixedPriority(FixedPriority),
    /// `edf`: the earliest deadline runs.
    #[cfg(feature = "edf")]
    Edf(Edf),
    /// `arinc653`: partitions have windows in a frame.
    #[cfg(feature = "arinc653")]
    Arinc653(Arinc653),
    /// `domains`: time domains take turns.
    #[cfg(feature = "domains")]
    Domains(Domains),
}

/// The choice of a policy, with its parameters.
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
    /// An [`crate::OwnPolicy`].
    Own(crate::OwnParameters),
}

impl AnyKind {
    /// Gives a blank policy its slots and the rest of the parameters.
    pub(crate) fn fill(
        &mut self,
        vcpus: &[VcpuParameters],
        parameters: &PolicyParameters<'_>,
    ) -> Result<(), PolicyError> {
        match (self, parameters) {
            #[cfg(feature = "arinc653")]
            (Self::Arinc653(policy), PolicyParameters::Arinc653(parameters)) => {
                policy.fill(vcpus, parameters)
            }
            #[cfg(feature = "domains")]
            (Self::Domains(policy), PolicyParameters::Domains(parameters)) => policy.fill(vcpus, parameters),
            (Self::FixedPriority(policy), PolicyParameters::FixedPriority(_)) => policy.fill(vcpus),
            #[cfg(feature = "edf")]
            (Self::Edf(policy), PolicyParameters::Edf(_)) => policy.fill(vcpus),
            (Self::Pinned(policy), PolicyParameters::Pinned) => policy.fill(vcpus),
            _ => Err(PolicyError::BadParameter),
        }
    }
}

/// Returns the policy of a pCPU that has this one below.
#[cfg(feature = "donation")]
#[inline(always)]
const fn around(kind: AnyKind) -> AnyPolicy {
    Donating::new(kind, crate::SlotSet(0))
}

/// Returns the policy of a pCPU that has this one below.
#[cfg(not(feature = "donation"))]
#[inline(always)]
const fn around(kind: AnyKind) -> AnyPolicy {
    kind
}

impl AnyPolicy {
    /// Returns [`PcpuPolicy::nobody`], as a constant.
    #[inline(always)]
    #[must_use]
    pub const fn nobody() -> Self {
        around(AnyKind::Pinned(Pinned::blank()))
    }

    /// Returns [`PcpuPolicy::blank`]. The policy is made where it stays. The policy has up to 5 KiB, which
    /// results and callers would copy again and again.
    #[inline(never)]
    #[must_use]
    pub fn blank(parameters: &PolicyParameters<'_>) -> Self {
        match *parameters {
            PolicyParameters::Pinned => Self::nobody(),
            PolicyParameters::FixedPriority(FixedPriorityParameters { quantum }) => {
                Self::made(|| AnyKind::FixedPriority(FixedPriority::blank(quantum)))
            }
            #[cfg(feature = "edf")]
            PolicyParameters::Edf(EdfParameters { quantum }) => {
                Self::made(|| AnyKind::Edf(Edf::blank(quantum)))
            }
            #[cfg(feature = "arinc653")]
            PolicyParameters::Arinc653(Arinc653Parameters { quantum, .. }) => {
                Self::made(|| AnyKind::Arinc653(Arinc653::blank(quantum)))
            }
            #[cfg(feature = "domains")]
            PolicyParameters::Domains(DomainsParameters { quantum, .. }) => {
                Self::made(|| AnyKind::Domains(Domains::blank(quantum)))
            }
            // A policy that this build lacks has no use for its parameters, and `install` says so.
            _ => Self::nobody(),
        }
    }

    /// Returns a policy. The function stands alone for each policy, so that the stack holds the space of one
    /// policy only.
    #[inline(never)]
    fn made(blank: impl FnOnce() -> AnyKind) -> Self {
        around(blank())
    }

    /// Returns a policy with these vCPUs, slot 0 first.
    ///
    /// # Errors
    /// As `new` of the policy: [`Pinned::new`], [`FixedPriority::new`], [`Edf::new`], [`Arinc653::new`],
    /// [`Domains::new`].
    pub fn of(vcpus: &[VcpuParameters], parameters: &PolicyParameters<'_>) -> Result<Self, PolicyError> {
        let mut policy = Self::blank(parameters);
        policy.install(vcpus, parameters)?;
        Ok(policy)
    }

    /// Returns policy `pinned`.
    ///
    /// # Errors
    /// As [`Pinned::new`].
    pub fn pinned(vcpus: &[VcpuParameters]) -> Result<Self, PolicyError> {
        Self::of(vcpus, &PolicyParameters::Pinned)
    }

    /// Returns policy `fixed-priority`.
    ///
    /// # Errors
    /// As [`FixedPriority::new`].
    pub fn fixed_priority(
        vcpus: &[VcpuParameters],
        parameters: FixedPriorityParameters,
    ) -> Result<Self, PolicyError> {
        Self::of(vcpus, &PolicyParameters::FixedPriority(parameters))
    }

    /// Returns policy `edf`.
    ///
    /// # Errors
    /// As [`Edf::new`].
    pub fn edf(vcpus: &[VcpuParameters], parameters: EdfParameters) -> Result<Self, PolicyError> {
        Self::of(vcpus, &PolicyParameters::Edf(parameters))
    }

    /// Returns policy `arinc653`.
    ///
    /// # Errors
    /// As [`Arinc653::new`].
    pub fn arinc653(
        vcpus: &[VcpuParameters],
        parameters: Arinc653Parameters<'_>,
    ) -> Result<Self, PolicyError> {
        Self::of(vcpus, &PolicyParameters::Arinc653(parameters))
    }

    /// Returns policy `domains`.
    ///
    /// # Errors
    /// As [`Domains::new`].
    pub fn domains(vcpus: &[VcpuParameters], parameters: DomainsParameters<'_>) -> Result<Self, PolicyError> {
        Self::of(vcpus, &PolicyParameters::Domains(parameters))
    }
}

impl PcpuPolicy for AnyPolicy {
    // The model checker and the random lives of `sched/tests` have shown that these policies keep the
    // protocol.
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
        #[cfg(feature = "donation")]
        {
            self.all = crate::run_queue::all_slots(vcpus.len()).0;
            self.policy.fill(vcpus, parameters)
        }
        #[cfg(not(feature = "donation"))]
        self.fill(vcpus, parameters)
    }
}

macro_rules! to_each {
    ($self:expr, $policy:ident => $call:expr) => {
        match $self {
            Self::FixedPriority($policy) => $call,
            Self::Pinned($policy) => $call,
            #[cfg(feature = "edf")]
            Self::Edf($policy) => $call,
            #[cfg(feature = "arinc653")]
            Self::Arinc653($policy) => $call,
            #[cfg(feature = "domains")]
            Self::Domains($policy) => $call,
        }
    };
}

/// The calls that most switches consist of. `fixed-priority` is called inline, because most pCPUs that are
/// shared have it. All others are reached by one call.
impl AnyKind {
    #[inline(never)]
    fn ready_other(&mut self, slot: Slot, now: Ticks) {
        to_each!(self, policy => policy.ready(slot, now));
    }

    #[inline(never)]
    fn decide_other(&mut self, now: Ticks, in_force: &mut InForce) {
        to_each!(self, policy => policy.decide(now, in_force));
    }

    #[inline(never)]
    fn block_other(&mut self, slot: Slot, ran: Ticks, now: Ticks, in_force: &mut InForce) {
        to_each!(self, policy => policy.block(slot, ran, now, in_force));
    }
}

impl Policy for AnyKind {
    #[inline(always)]
    fn ready(&mut self, slot: Slot, now: Ticks) {
        match self {
            Self::FixedPriority(policy) => policy.ready(slot, now),
            other => other.ready_other(slot, now),
        }
    }

    fn critical(&mut self, slot: Slot, now: Ticks) {
        to_each!(self, policy => policy.critical(slot, now));
    }

    #[inline(never)]
    fn stopped(&mut self, slot: Slot, why: StopReason, ran: Ticks, now: Ticks) {
        to_each!(self, policy => policy.stopped(slot, why, ran, now));
    }

    fn withdraw(&mut self, slot: Slot, now: Ticks) {
        to_each!(self, policy => policy.withdraw(slot, now));
    }

    fn next(&mut self, now: Ticks) -> Decision {
        to_each!(self, policy => policy.next(now))
    }

    #[inline(always)]
    fn decide(&mut self, now: Ticks, in_force: &mut InForce) {
        match self {
            Self::FixedPriority(policy) => policy.decide(now, in_force),
            other => other.decide_other(now, in_force),
        }
    }

    #[inline(always)]
    fn block(&mut self, slot: Slot, ran: Ticks, now: Ticks, in_force: &mut InForce) {
        match self {
            Self::FixedPriority(policy) => policy.block(slot, ran, now, in_force),
            other => other.block_other(slot, ran, now, in_force),
        }
    }

    fn ready_slots(&self) -> SlotSet {
        to_each!(self, policy => policy.ready_slots())
    }

    fn interested(&self) -> SlotSet {
        to_each!(self, policy => policy.interested())
    }

    fn has_signals(&self) -> bool {
        to_each!(self, policy => policy.has_signals())
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
