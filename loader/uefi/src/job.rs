// SPDX-License-Identifier: Apache-2.0
//! A system that is apart, as the instructions that are apart find it.

use bulkhead_loader_plan::Range;

/// Bytes for the instructions: one page.
pub(crate) const CODE_BYTES: usize = 4096;

/// A piece on its way. The instructions know the layout.
#[derive(Clone, Copy, Default)]
#[repr(C)]
pub(crate) struct Job {
    /// The place, by bus address.
    pub to: u64,
    /// The bytes in the memory apart.
    pub from: u64,
    /// The number of bytes to copy, a multiple of 16.
    pub length: u64,
    /// The number of bytes to clear after them, a multiple of 16.
    pub clear: u64,
}

/// A system that is apart, and what goes on when the firmware has ended.
pub(crate) struct Staged {
    /// The instructions, then the jobs, then the bytes.
    pub memory: Range,
    /// The first job. The list ends with a job without memory.
    pub jobs: u64,
    /// The address at which the hypervisor begins.
    pub entry: u64,
}
