// SPDX-License-Identifier: Apache-2.0
//! Cache maintenance by address (Arm DDI 0487 D7.5).
//!
//! Partitions start with their caches off and read memory past them; instruction fetches may come from
//! a cache that does not watch the data side. What we write for them is therefore cleaned and
//! invalidated to the point of coherency, even on systems (and emulators) that would forgive.

use crate::sysreg::{instruction, instruction_with, read_register};

/// Bytes of the smallest data cache line (CTR_EL0.DminLine).
pub(crate) fn line_size() -> u64 {
    4 << (read_register!("ctr_el0") >> 16 & 0xF)
}

/// Writes dirty lines of `length` bytes from `address` on back and drops them.
pub(crate) fn clean_and_invalidate(address: u64, length: u64) {
    let line = line_size();
    let end = address.saturating_add(length);
    let mut at = address & !(line - 1);
    while at < end {
        instruction_with!("dc civac", at);
        at += line;
    }
    instruction!("dsb sy");
}

/// Drops everything the instruction caches of all CPUs hold; after [`clean_and_invalidate`].
pub(crate) fn invalidate_instructions() {
    instruction!("ic ialluis");
    instruction!("dsb ish");
    instruction!("isb");
}
