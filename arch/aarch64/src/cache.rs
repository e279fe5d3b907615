// SPDX-License-Identifier: Apache-2.0
//! Cache maintenance by address (Arm DDI 0487 D7.5).
//!
//! Partitions start with their caches off and read memory past them. Instruction fetches may come from a
//! cache that does not watch the data side. Bytes that the hypervisor writes for partitions are therefore
//! cleaned and invalidated to the point of coherency, even on systems (and emulators) that do not need this.

use crate::sysreg::{instruction, instruction_with, read_register};
use bulkhead_arch_api::CLEAR_AT_ONCE;
use bulkhead_arch_paging::PAGE_SIZE;
use bulkhead_arch_support::physical;

/// Lines that the loops take in one turn.
const GROUP: u64 = 8;
/// Lines that are cleared in one turn. A partition's whole RAM goes through that loop.
const CLEAR_GROUP: u64 = 32;

/// Returns the bytes of the smallest data cache line (CTR_EL0.DminLine).
pub(crate) fn line_size() -> u64 {
    4 << (read_register!("ctr_el0") >> 16 & 0xF)
}

/// Applies a maintenance instruction to each line of `length` bytes from `address` on, eight a turn where
/// they fit.
macro_rules! each_line {
    ($operation:literal, $address:expr, $length:expr) => {{
        let line = line_size();
        let (mut at, end) = ($address & !(line - 1), $address.saturating_add($length));
        let groups = end.saturating_sub(at) / (line * GROUP);
        if groups != 0 {
            // SAFETY: maintenance by address changes no byte; at most it faults, which is a bug of the
            // caller.
            unsafe {
                core::arch::asm!(
                    "2:",
                    ".rept {group}",
                    concat!($operation, ", {at}"),
                    "add {at}, {at}, {line}",
                    ".endr",
                    "subs {groups}, {groups}, #1",
                    "b.ne 2b",
                    group = const GROUP,
                    at = inout(reg) at,
                    groups = inout(reg) groups => _,
                    line = in(reg) line,
                    options(nostack),
                );
            }
        }
        while at < end {
            instruction_with!($operation, at);
            at += line;
        }
        instruction!("dsb sy");
    }};
}

/// Writes dirty lines of `length` bytes from `address` on back.
#[inline(never)]
pub(crate) fn clean(address: u64, length: u64) {
    each_line!("dc cvac", address, length);
}

/// Writes dirty lines of `length` bytes from `address` on back and drops them.
#[inline(never)]
pub(crate) fn clean_and_invalidate(address: u64, length: u64) {
    each_line!("dc civac", address, length);
}

/// Drops lines of `length` bytes from `address` on, for any contents.
#[inline(never)]
pub(crate) fn invalidate(address: u64, length: u64) {
    each_line!("dc ivac", address, length);
}

/// Drops everything that the instruction caches of all CPUs hold. Call this after [`clean_and_invalidate`].
pub(crate) fn invalidate_instructions() {
    instruction!("ic ialluis");
    instruction!("dsb ish");
    instruction!("isb");
}

/// Zeroes `length` bytes from `address` on and cleans them to memory, by whole blocks of DC ZVA (DCZID_EL0)
/// where they fit. A partition's whole RAM is cleared here, so each line is visited once. Stops after a group
/// of lines when an interrupt is pending. Returns the number of bytes that are done.
///
/// # Safety
/// The range is mapped as normal write-back memory to which no Rust reference exists.
pub(crate) unsafe fn clear(address: u64, length: u64) -> u64 {
    let block = 4u64 << (read_register!("dczid_el0") & 0xF);
    let length = if block == line_size() {
        length
    } else {
        // The other loop does not look for interrupts.
        length.min(CLEAR_AT_ONCE)
    };
    let end = address.saturating_add(length);
    let first = address.next_multiple_of(block).min(end);
    let last = (end & !(block - 1)).max(first);
    // SAFETY: the part of the caller's range before the first whole block.
    unsafe { clear_words(address, first) }
    if block == line_size() {
        let groups = (last - first) / (block * CLEAR_GROUP);
        // SAFETY: whole lines of the caller's range.
        let left = unsafe { clear_lines(first, groups, block) };
        let done = first + (groups - left) * CLEAR_GROUP * block;
        if left != 0 {
            instruction!("dsb sy");
            return done - address;
        }
        // SAFETY: as above; fewer than a group.
        unsafe { clear_blocks(done, last, block) }
    } else {
        // SAFETY: whole blocks of the caller's range.
        unsafe { clear_blocks(first, last, block) }
    }
    // SAFETY: the part of the caller's range after the last whole block.
    unsafe { clear_words(last, end) }
    instruction!("dsb sy");
    length
}

/// Zeroes and cleans `groups` times [`CLEAR_GROUP`] lines. Returns the number of groups that are left because
/// an interrupt is pending (ISR_EL1, which at EL2 shows the physical ones).
///
/// # Safety
/// As for [`clear`]; `at` is a multiple of `line`, which is the size of lines and of blocks of DC ZVA.
unsafe fn clear_lines(at: u64, groups: u64, line: u64) -> u64 {
    if groups == 0 {
        return 0;
    }
    let mut left = groups;
    // SAFETY: stores to the caller's range only, which no Rust reference covers.
    unsafe {
        core::arch::asm!(
            "2:",
            ".rept {group}",
            "dc zva, {at}",
            "dc civac, {at}",
            "add {at}, {at}, {line}",
            ".endr",
            "subs {left}, {left}, #1",
            "b.eq 3f",
            "mrs {pending}, isr_el1",
            "cbz {pending}, 2b",
            "3:",
            group = const CLEAR_GROUP,
            at = inout(reg) at => _,
            left = inout(reg) left,
            line = in(reg) line,
            pending = out(reg) _,
            options(nostack),
        );
    }
    left
}

/// Zeroes a page that stays in the caches: a page for translation tables, which the CPU walks through the
/// caches.
///
/// # Safety
/// As for [`clear`]; the range is one page.
pub(crate) unsafe fn zero_page(address: u64) {
    let block = 4u64 << (read_register!("dczid_el0") & 0xF);
    let mut at = address;
    while at < address + PAGE_SIZE {
        instruction_with!("dc zva", at);
        at += block;
    }
}

/// # Safety
/// As for [`clear`]; both ends are multiples of `block`.
unsafe fn clear_blocks(from: u64, to: u64, block: u64) {
    let mut at = from;
    while at < to {
        instruction_with!("dc zva", at);
        at += block;
    }
    clean_and_invalidate(from, to - from);
}

/// # Safety
/// As for [`clear`].
unsafe fn clear_words(from: u64, to: u64) {
    /// Zeroes, aligned so that words are written at aligned destinations.
    #[repr(align(8))]
    struct Zeroes([u8; 64]);
    static ZEROES: Zeroes = Zeroes([0; 64]);
    for at in (from..to).step_by(ZEROES.0.len()) {
        let length = (to - at).min(ZEROES.0.len() as u64) as usize;
        // SAFETY: inside the caller's range.
        unsafe { physical::write(at as usize, ZEROES.0.get(..length).unwrap_or(&[])) }
    }
    if from < to {
        clean_and_invalidate(from, to - from);
    }
}

/// Bytes of a line that [`copy_lines`] copies, and the lines of one turn of its loop.
const COPY_UNIT: usize = 64;
const COPY_AT_ONCE: usize = 4;

/// Copies `bytes` to memory and cleans them to the point of coherency.
///
/// # Safety
/// `bytes.len()` bytes from `destination` on are mapped as normal write-back memory to which no Rust
/// reference exists.
pub(crate) unsafe fn copy(destination: u64, bytes: &[u8]) {
    let aligned = destination.is_multiple_of(COPY_UNIT as u64) && bytes.as_ptr().addr().is_multiple_of(8);
    let units = if aligned && line_size() == COPY_UNIT as u64 {
        bytes.len() / COPY_UNIT / COPY_AT_ONCE * COPY_AT_ONCE
    } else {
        0
    };
    // SAFETY: whole lines of the caller's range; `bytes` is as long.
    unsafe { copy_lines(destination, bytes.as_ptr(), units) }
    let rest = bytes.get(units * COPY_UNIT..).unwrap_or(&[]);
    let behind = destination + (units * COPY_UNIT) as u64;
    // SAFETY: the rest of the caller's range.
    unsafe { physical::write(behind as usize, rest) }
    clean_and_invalidate(behind, rest.len() as u64);
}

/// Copies `length` bytes from one place to another, by words as far as it goes.
///
/// # Safety
/// `length` bytes from `from` on are mapped readable memory, and from `to` on writable memory, to which no
/// Rust reference exists but to atomics. Both are multiples of 8.
#[inline]
pub(crate) unsafe fn copy_message(from: u64, to: u64, length: u64) {
    // SAFETY: loads from the caller's first range, stores to the second only: 64 bytes a turn, then 8, then
    // 1.
    unsafe {
        core::arch::asm!(
            "2:",
            "subs {left}, {left}, #64",
            "b.lo 3f",
            "ldp {a}, {b}, [{from}], #16",
            "ldp {c}, {d}, [{from}], #16",
            "stp {a}, {b}, [{to}], #16",
            "stp {c}, {d}, [{to}], #16",
            "ldp {a}, {b}, [{from}], #16",
            "ldp {c}, {d}, [{from}], #16",
            "stp {a}, {b}, [{to}], #16",
            "stp {c}, {d}, [{to}], #16",
            "b 2b",
            "3: adds {left}, {left}, #64",
            "b.eq 6f",
            "4: subs {left}, {left}, #8",
            "b.lo 5f",
            "ldr {a}, [{from}], #8",
            "str {a}, [{to}], #8",
            "b 4b",
            "5: adds {left}, {left}, #8",
            "b.eq 6f",
            "7: ldrb {a:w}, [{from}], #1",
            "strb {a:w}, [{to}], #1",
            "subs {left}, {left}, #1",
            "b.ne 7b",
            "6:",
            a = out(reg) _,
            b = out(reg) _,
            c = out(reg) _,
            d = out(reg) _,
            from = inout(reg) from => _,
            to = inout(reg) to => _,
            left = inout(reg) length => _,
            options(nostack),
        );
    }
}

/// Copies and cleans `units` times [`COPY_UNIT`] bytes.
///
/// # Safety
/// As for [`copy`]. `units` is a multiple of [`COPY_AT_ONCE`]. The destination is a multiple of
/// [`COPY_UNIT`], which is the size of a line, and the source is a multiple of 8.
unsafe fn copy_lines(destination: u64, source: *const u8, units: usize) {
    if units == 0 {
        return;
    }
    // SAFETY: loads from the caller's bytes, stores to the caller's range only.
    unsafe {
        core::arch::asm!(
            "2:",
            "subs {units}, {units}, #{at_once}",
            "b.lo 3f",
            ".rept {at_once}",
            "ldp {a}, {b}, [{from}], #16",
            "ldp {c}, {d}, [{from}], #16",
            "stp {a}, {b}, [{to}]",
            "stp {c}, {d}, [{to}, #16]",
            "ldp {a}, {b}, [{from}], #16",
            "ldp {c}, {d}, [{from}], #16",
            "stp {a}, {b}, [{to}, #32]",
            "stp {c}, {d}, [{to}, #48]",
            "dc civac, {to}",
            "add {to}, {to}, #{unit}",
            ".endr",
            "b 2b",
            "3:",
            unit = const COPY_UNIT,
            at_once = const COPY_AT_ONCE,
            a = out(reg) _,
            b = out(reg) _,
            c = out(reg) _,
            d = out(reg) _,
            from = inout(reg) source => _,
            to = inout(reg) destination => _,
            units = inout(reg) units => _,
            options(nostack),
        );
    }
}
