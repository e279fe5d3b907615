// SPDX-License-Identifier: Apache-2.0
//! Facts of the board that every pCPU needs.

use bulkhead_arch_api::MAX_PCPUS;
use bulkhead_arch_support::SetOnce;

/// Facts of the board that every pCPU needs.
pub(crate) struct Board {
    /// MPIDR affinity fields of each pCPU.
    pub(crate) hardware_ids: [u64; MAX_PCPUS],
    /// Memory for translation tables of partitions: address and bytes.
    pub(crate) pool: (u64, u64),
    /// Rings of the trace: address, and records of each.
    pub(crate) trace: (u64, usize),
    /// Exits that the backend answers by itself are traced as well.
    pub(crate) traces_short_exits: bool,
}

pub(crate) static BOARD: SetOnce<Board> = SetOnce::new();
