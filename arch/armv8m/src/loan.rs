// SPDX-License-Identifier: Apache-2.0
//! The floating-point registers, while a task has them (`floats`).

use bulkhead_abi::parts::{PARTS, Part};
use bulkhead_arch_api::VcpuId;

/// True if tasks have floating point in this build.
pub(crate) const IS_THERE: bool = PARTS.has(Part::TaskFloats);
/// Places for a loan.
pub(crate) const PLACES: usize = IS_THERE as usize;

/// The registers while a task has them.
pub(crate) struct Loan {
    pub(crate) task: VcpuId,
    /// The note of the VM's room.
    pub(crate) owed: u32,
}
