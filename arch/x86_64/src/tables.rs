// SPDX-License-Identifier: Apache-2.0
//! Words of translation tables, for the hypervisor's own tree ([`crate::mmu`]) and for partitions
//! ([`crate::trees`]). A table is reached by address only. Stores are seen by table walks in program order.

use bulkhead_arch_api::HostPhys;
use bulkhead_arch_support::physical;

fn place(table: HostPhys, index: usize) -> usize {
    table.0 as usize + index * size_of::<u64>()
}

/// Reads entry `index` of a table.
///
/// # Safety
/// The table is one of the hypervisor's, mapped, and has this entry.
pub(crate) unsafe fn read(table: HostPhys, index: usize) -> u64 {
    // SAFETY: the caller's promise.
    unsafe { physical::read_word(place(table, index)) }
}

/// Replaces entry `index` of a table.
///
/// # Safety
/// As for [`read`]; no Rust reference to the table exists.
pub(crate) unsafe fn write(table: HostPhys, index: usize, entry: u64) {
    // SAFETY: the caller's promise.
    unsafe { physical::write_word(place(table, index), entry) }
}
