// SPDX-License-Identifier: Apache-2.0
//! Self-hosted debug at EL1: a hardware breakpoint, a watchpoint and a single step on the program itself
//! (Arm ARM DDI 0487 chapters D2.8 to D2.12). Each function arms, triggers and disarms; run it within
//! [`super::exception::probe`], which notes the debug exception and masks further ones.

use core::arch::asm;
use core::sync::atomic::AtomicU64;

/// `MDSCR_EL1`: software step, breakpoints and watchpoints on, also at EL1.
const STEP: u64 = 1;
const KERNEL: u64 = 1 << 13;
const MONITOR: u64 = 1 << 15;
/// `DBGBCR<n>_EL1`: enabled, at EL1, all four bytes.
const BREAKPOINT: u64 = 1 | 1 << 1 | 0xF << 5;
/// `DBGWCR<n>_EL1`: enabled, at EL1, stores, all eight bytes.
const WATCHPOINT: u64 = 1 | 1 << 1 | 2 << 3 | 0xFF << 5;

/// Unlocks the debug registers (`OSLAR_EL1`).
pub fn unlock() {
    // SAFETY: nothing is armed yet.
    unsafe { asm!("msr oslar_el1, xzr", "isb", options(nostack)) }
}

/// Runs into hardware breakpoint 0. Returns the address it was set at.
#[must_use]
pub fn hit_breakpoint() -> u64 {
    let address: u64;
    // SAFETY: the only instruction concerned is the `nop` below, where `probe` handles the exception.
    unsafe {
        asm!(
            "adr {address}, 2f",
            "msr dbgbvr0_el1, {address}",
            "msr dbgbcr0_el1, {control}",
            "msr mdscr_el1, {monitor}",
            "isb",
            "msr daifclr, #8",
            "2: nop",
            "msr daifset, #8",
            "msr dbgbcr0_el1, xzr",
            "msr mdscr_el1, xzr",
            "isb",
            address = out(reg) address,
            control = in(reg) BREAKPOINT,
            monitor = in(reg) MONITOR | KERNEL,
            options(nostack),
        );
    }
    address
}

/// Stores to a word that watchpoint 0 guards. Returns the word's address.
#[must_use]
pub fn hit_watchpoint() -> u64 {
    let word = AtomicU64::new(0);
    watch(&word);
    store_watched(&word);
    unwatch();
    (&raw const word).addr() as u64
}

/// Arms watchpoint 0 of the calling CPU on `word`; debug exceptions stay masked.
pub fn watch(word: &AtomicU64) {
    set_watchpoint(core::ptr::from_ref(word).addr(), WATCHPOINT, MONITOR | KERNEL);
}

/// Disarms watchpoint 0 of the calling CPU.
pub fn unwatch() {
    set_watchpoint(0, 0, 0);
}

fn set_watchpoint(address: usize, control: u64, monitor: u64) {
    // SAFETY: the debug exceptions that this allows are let in by `store_watched` only.
    unsafe {
        asm!(
            "msr dbgwvr0_el1, {address}",
            "msr dbgwcr0_el1, {control}",
            "msr mdscr_el1, {monitor}",
            "isb",
            address = in(reg) address,
            control = in(reg) control,
            monitor = in(reg) monitor,
            options(nostack),
        );
    }
}

/// Stores zero to `word` with debug exceptions let in; run it within [`super::exception::probe`].
pub fn store_watched(word: &AtomicU64) {
    // SAFETY: a store to a word that the caller shares; `probe` handles the exception and masks further ones.
    unsafe {
        asm!(
            "msr daifclr, #8",
            "isb",
            "str xzr, [{address}]",
            "msr daifset, #8",
            address = in(reg) core::ptr::from_ref(word),
            options(nostack),
        );
    }
}

/// Steps over one instruction. Returns its address; the exception comes at the next one.
#[must_use]
pub fn step() -> u64 {
    let address: u64;
    // SAFETY: returns to the next line with the step bit set (D2.12.3), at the same level and stack.
    unsafe {
        asm!(
            "msr mdscr_el1, {step}",
            "isb",
            "adr {address}, 2f",
            "msr elr_el1, {address}",
            "mrs {state}, daif",
            "bic {state}, {state}, #(1 << 9)",
            "orr {state}, {state}, #(1 << 21)",
            "add {state}, {state}, #5",
            "msr spsr_el1, {state}",
            "eret",
            "2: nop",
            "nop",
            "msr daifset, #8",
            "msr mdscr_el1, xzr",
            "isb",
            address = out(reg) address,
            state = out(reg) _,
            step = in(reg) STEP | KERNEL,
            options(nostack),
        );
    }
    address
}
