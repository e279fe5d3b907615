// SPDX-License-Identifier: Apache-2.0
//! Words of translation tables, for EL2's own tree ([`crate::mmu`]) and those of partitions ([`crate::space`]).
//!
//! A table is reached by address only. What was written before must be there before an entry that leads to it
//! is: each store comes behind a barrier (Arm DDI 0487 chapter B2).

use crate::sysreg::instruction;
use bulkhead_arch_api::HostPhys;
use bulkhead_arch_support::physical;

fn place(table: HostPhys, index: usize) -> usize {
    table.0 as usize + index * size_of::<u64>()
}

/// Entry `index` of a table.
///
/// # Safety
/// It is one of a table of ours, mapped or reached with the MMU off.
pub(crate) unsafe fn read(table: HostPhys, index: usize) -> u64 {
    // SAFETY: the caller's promise.
    unsafe { physical::read_word(place(table, index)) }
}

/// Replaces entry `index` of a table.
///
/// # Safety
/// As for [`read`]; no Rust reference to it exists.
pub(crate) unsafe fn write(table: HostPhys, index: usize, entry: u64) {
    instruction!("dsb ishst");
    // SAFETY: the caller's promise.
    unsafe { physical::write_word(place(table, index), entry) }
}

/// Fills entries from `index` on as long as they are 0, and no more than `limit`: `entry` into the first, into each
/// other the one before it plus `step`. Returns how many. Whole address maps go through here.
///
/// # Safety
/// As for [`write`], for `limit` entries.
pub(crate) unsafe fn fill(table: HostPhys, index: usize, limit: usize, (entry, step): (u64, u64)) -> usize {
    instruction!("dsb ishst");
    let start = place(table, index);
    let end = start + limit * size_of::<u64>();
    let last_group = end & !31;
    let mut at = start;
    // SAFETY: loads and stores between `start` and `end` only, which is the caller's range.
    unsafe {
        core::arch::asm!(
            // One at a time up to a multiple of four entries, and behind the last one.
            "2: cmp {at}, {end}",
            "b.eq 4f",
            "ldr {there}, [{at}]",
            "cbnz {there}, 4f",
            "str {entry}, [{at}], #8",
            "add {entry}, {entry}, {step}",
            "tst {at}, #31",
            "b.ne 2b",
            "3: cmp {at}, {last_group}",
            "b.hs 2b",
            ".rept 4",
            "ldr {there}, [{at}]",
            "cbnz {there}, 4f",
            "str {entry}, [{at}], #8",
            "add {entry}, {entry}, {step}",
            ".endr",
            "b 3b",
            "4:",
            at = inout(reg) at,
            end = in(reg) end,
            last_group = in(reg) last_group,
            step = in(reg) step,
            entry = inout(reg) entry => _,
            there = out(reg) _,
            options(nostack),
        );
    }
    (at - start) / size_of::<u64>()
}
