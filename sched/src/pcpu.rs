// SPDX-License-Identifier: Apache-2.0
//! The border between the kernel and the policy of a pCPU.
//!
//! **Model.** A pCPU of the kernel is generic over the type that decides for it. The class binary says which
//! type that is: [`crate::AnyPolicy`], or `AnyOwnPolicy` if the system has a policy of the user's own
//! ([`crate::OwnPolicy`]).
//!
//! **One way.** The kernel owns the decision in force ([`InForce`]). The kernel asks every policy for the
//! next decision in the same way: [`Policy::ready`] for each slot that wakes up, [`Policy::stopped`] for the
//! slot that ran, then [`Policy::decide`].
//!
//! **Trust.** The kernel asks nothing of a policy that the kernel cannot check. A decision for a slot that is
//! not ready, or does not exist, is a decision to idle. The kernel leaves out slots that do not exist. So a
//! wrong policy costs the vCPUs of its own pCPU their time, and nothing else. The kernel does not check a
//! policy if tests have shown that the policy keeps the protocol.

use crate::any::PolicyParameters;
use crate::{Policy, PolicyError, VcpuParameters};

/// The policy of a pCPU, as the kernel needs it.
pub trait PcpuPolicy: Policy {
    /// True if the decisions need no check, because tests have shown that they keep the protocol of
    /// [`Policy`].
    const IS_TRUSTED: bool = false;

    /// Returns a policy without slots. The policy idles.
    fn nobody() -> Self;

    /// Returns a policy without slots that [`PcpuPolicy::install`] can give these parameters. The policy may
    /// have several KiB, so it is made where it stays. Tables among the parameters are empty.
    #[inline(always)]
    fn blank(_parameters: &PolicyParameters<'_>) -> Self
    where
        Self: Sized,
    {
        Self::nobody()
    }

    /// Gives the policy these vCPUs, slot 0 first, and the parameters of the manifest. The kernel calls this
    /// once, on the result of [`PcpuPolicy::blank`].
    ///
    /// # Errors
    /// More vCPUs than the policy can hold, or parameters that the policy has no use for. The kernel must not
    /// ask the policy after an error.
    fn install(
        &mut self,
        vcpus: &[VcpuParameters],
        parameters: &PolicyParameters<'_>,
    ) -> Result<(), PolicyError>;
}
