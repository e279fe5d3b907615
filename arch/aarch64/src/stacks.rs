// SPDX-License-Identifier: Apache-2.0
//! Memory of the stacks.

use bulkhead_abi::parts::IS_STATIC;
use bulkhead_arch_api::MAX_PCPUS;

/// Bytes of a pCPU's stack. An unmapped page of the same granule lies under each stack. `xtask stack`
/// compares the deepest chain of calls, which is the making of a policy. With the page it must be a constant
/// that one instruction can load.
pub(crate) const STACK_SIZE: usize = if IS_STATIC { 28 } else { 44 } * 1024;
/// Bytes of the unmapped page under each stack.
pub(crate) const GUARD_SIZE: usize = 4096;
/// Bytes of a pCPU's emergency stack, on which a crash is reported.
pub(crate) const EMERGENCY_SIZE: usize = 2048;

/// Memory on which a crash is reported, because the ordinary stack may be broken.
#[repr(C, align(16))]
pub(crate) struct EmergencyStacks(core::cell::UnsafeCell<[[u8; EMERGENCY_SIZE]; MAX_PCPUS]>);

// SAFETY: only reached through SP in the crash vectors; each pCPU has its own part.
unsafe impl Sync for EmergencyStacks {}

pub(crate) static EMERGENCY_STACKS: EmergencyStacks =
    EmergencyStacks(core::cell::UnsafeCell::new([[0; EMERGENCY_SIZE]; MAX_PCPUS]));

/// The stacks. `crate::mmu` leaves the first page of each part unmapped.
#[repr(C, align(4096))]
pub(crate) struct Stacks(core::cell::UnsafeCell<[[u8; GUARD_SIZE + STACK_SIZE]; MAX_PCPUS]>);

// SAFETY: only reached through SP; each pCPU has its own part.
unsafe impl Sync for Stacks {}

#[unsafe(link_section = ".stacks")]
pub(crate) static STACKS: Stacks = Stacks(core::cell::UnsafeCell::new(
    [[0; GUARD_SIZE + STACK_SIZE]; MAX_PCPUS],
));
