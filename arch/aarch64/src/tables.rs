// SPDX-License-Identifier: Apache-2.0
//! Words of translation tables, for EL2's own tree ([`crate::mmu`]) and for partitions
//! ([`crate::space`]).
//!
//! A table is reached by address only. A table's earlier words must be in memory before an entry that leads
//! to the table is. Each store therefore comes after a barrier (Arm DDI 0487 chapter B2).

use crate::sysreg::instruction;
use bulkhead_arch_api::HostPhys;
use bulkhead_arch_support::physical;

fn place(table: HostPhys, index: usize) -> usize {
    table.0 as usize + index * size_of::<u64>()
}

/// Reads entry `index` of a table.
///
/// # Safety
/// The table is one of the hypervisor's, mapped or reached with the MMU off, and has this entry.
pub(crate) unsafe fn read(table: HostPhys, index: usize) -> u64 {
    // SAFETY: the caller's promise.
    unsafe { physical::read_word(place(table, index)) }
}

/// Replaces entry `index` of a table.
///
/// # Safety
/// As for [`read`]; no Rust reference to the table exists.
pub(crate) unsafe fn write(table: HostPhys, index: usize, entry: u64) {
    instruction!("dsb ishst");
    // SAFETY: the caller's promise.
    unsafe { physical::write_word(place(table, index), entry) }
}

/// Fills entries from `index` on as long as they are 0, and no more than `limit`. The first entry becomes
/// `entry`, and each other one the entry before plus `step`. Returns the number of filled entries. Whole
/// address maps go through here.
///
/// # Safety
/// As for [`write`], for `limit` entries.
pub(crate) unsafe fn fill(table: HostPhys, index: usize, limit: usize, entry: u64, step: u64) -> usize {
    instruction!("dsb ishst");
    let start = place(table, index);
    let end = start + limit * size_of::<u64>();
    let last_group = end & !63;
    let mut at = start;
    // SAFETY: loads and stores between `start` and `end` only, which is the caller's range.
    unsafe {
        core::arch::asm!(
            // The loop goes eight at a time where all eight are 0. It goes one at a time up to a multiple of
            // eight, after the last group of eight, and up to an entry that is not 0.
            "2: cmp {at}, {last_group}",
            "b.hs 3f",
            "tst {at}, #63",
            "b.ne 3f",
            "ldp {a}, {b}, [{at}]",
            "ldp {c}, {d}, [{at}, #16]",
            "orr {a}, {a}, {b}",
            "orr {c}, {c}, {d}",
            "orr {a}, {a}, {c}",
            "ldp {b}, {c}, [{at}, #32]",
            "orr {a}, {a}, {b}",
            "orr {a}, {a}, {c}",
            "ldp {b}, {c}, [{at}, #48]",
            "orr {a}, {a}, {b}",
            "orr {a}, {a}, {c}",
            "cbnz {a}, 3f",
            ".rept 4",
            "add {a}, {entry}, {step}",
            "stp {entry}, {a}, [{at}], #16",
            "add {entry}, {a}, {step}",
            ".endr",
            "b 2b",
            "3: cmp {at}, {end}",
            "b.eq 4f",
            "ldr {a}, [{at}]",
            "cbnz {a}, 4f",
            "str {entry}, [{at}], #8",
            "add {entry}, {entry}, {step}",
            "b 2b",
            "4:",
            at = inout(reg) at,
            end = in(reg) end,
            last_group = in(reg) last_group,
            step = in(reg) step,
            entry = inout(reg) entry => _,
            a = out(reg) _,
            b = out(reg) _,
            c = out(reg) _,
            d = out(reg) _,
            options(nostack),
        );
    }
    (at - start) / size_of::<u64>()
}
