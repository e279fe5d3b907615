// SPDX-License-Identifier: Apache-2.0
//! Cache maintenance by address (Arm DDI 0487 D7.5).
//!
//! Partitions start with their caches off and read memory past them; instruction fetches may come from
//! a cache that does not watch the data side. What we write for them is therefore cleaned and
//! invalidated to the point of coherency, even on systems (and emulators) that would forgive.

use crate::sysreg::{instruction, instruction_with, read_register};
use bulkhead_arch_support::physical;

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

/// Zeroes `length` bytes from `address` on, by whole blocks of DC ZVA (DCZID_EL0) where they fit.
///
/// # Safety
/// The range is mapped as normal write-back memory to which no Rust reference exists.
pub(crate) unsafe fn zero(address: u64, length: u64) {
    let block = 4u64 << (read_register!("dczid_el0") & 0xF);
    let end = address.saturating_add(length);
    let first_block = address.next_multiple_of(block).min(end);
    let last_block = (end & !(block - 1)).max(first_block);
    // SAFETY: the part of the caller's range before the first whole block.
    unsafe { zero_words(address, first_block) }
    let mut at = first_block;
    while at < last_block {
        instruction_with!("dc zva", at);
        at += block;
    }
    // SAFETY: the part of the caller's range behind the last whole block.
    unsafe { zero_words(last_block, end) }
}

/// # Safety
/// As for [`zero`].
unsafe fn zero_words(from: u64, to: u64) {
    const ZEROES: [u8; 8] = [0; 8];
    for at in (from..to).step_by(ZEROES.len()) {
        let length = (to - at).min(ZEROES.len() as u64) as usize;
        // SAFETY: inside the caller's range.
        unsafe { physical::write(at as usize, ZEROES.get(..length).unwrap_or(&[])) }
    }
}
