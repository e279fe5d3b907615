// SPDX-License-Identifier: Apache-2.0
//! The border between Bulkhead and a policy of the user's own.
//!
//! The user's crate implements [`Policy`] and [`OwnPolicy`] for one type. The manifest names the crate. A
//! class binary for one system, and the simulator, are built with it.

use crate::{Policy, PolicyError, Ticks, VcpuParameters};

/// A policy of the user's own, as the manifest makes it.
pub trait OwnPolicy: Policy + Clone {
    /// Returns the policy of a pCPU with these vCPUs, slot 0 first, and this quantum. No slot is ready.
    ///
    /// # Errors
    /// More vCPUs than the policy can hold, or parameters that the policy has no use for. The hypervisor
    /// then does not start.
    fn new(vcpus: &[VcpuParameters], quantum: Ticks) -> Result<Self, PolicyError>;
}
