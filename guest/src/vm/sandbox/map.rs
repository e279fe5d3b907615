// SPDX-License-Identifier: Apache-2.0
//! Addresses while there is a sandbox: one table for both halves of the address space, 39 bits each, 4 KiB
//! granule.
//!
//! | low half (and the same in the upper one) | what | EL1 | EL0 |
//! |---|---|---|---|
//! | 0 .. 8 GiB | identity: devices, RAM, devices | all | - |
//! | [`CODE`] | the sandbox's code | read, execute | read, execute |
//! | [`STACK`] | its stack | read, write | read, write |
//! | [`DEVICES`] | the lowest gigabyte | read, write | read, write |
//! | [`PROBED`] | any gigabyte (`look_at`) | all | read, write |
//!
//! While a 32-bit program runs ([`show_narrow`]), [`NARROW_CODE`] is as [`CODE`] and [`NARROW_DEVICES`] as
//! [`DEVICES`].

use core::arch::asm;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use super::super::smp::MAX_CPUS;
use super::super::{RAM_BASE, cpu};

/// The address at which the sandbox's code runs.
pub const CODE: u64 = 128 << 30;
/// Its stack.
pub const STACK: u64 = CODE + 0x2000;
/// Bytes of the stack.
pub const STACK_SIZE: u64 = 4096;
/// The lowest gigabyte of guest-physical addresses.
pub const DEVICES: u64 = 129 << 30;
/// The code of a 32-bit program.
pub const NARROW_CODE: u64 = 3 << 30;
/// The lowest gigabyte of guest-physical addresses, as a 32-bit program sees it.
pub const NARROW_DEVICES: u64 = 2 << 30;
/// A gigabyte of choice.
pub const PROBED: u64 = 130 << 30;
/// Bits of an address in the upper half.
pub const UPPER: u64 = 0xFFFF_FF80_0000_0000;

/// `MAIR_EL1`: attribute 0 is write-back memory, attribute 1 device-nGnRE.
pub const ATTRIBUTES: u64 = 0xFF | 0x04 << 8;
/// `TCR_EL1`: T0SZ and T1SZ 25, walks write-back inner shareable, 4 KiB granules (TG1 is 2), 40-bit
/// addresses.
pub const CONTROL: u64 = LOWER | LOWER << 16 | 2 << 30 | 2 << 32;
const LOWER: u64 = 25 | 1 << 8 | 1 << 10 | 3 << 12;
/// `SCTLR_EL1`: reserved-one bits (SPAN among them), I, C, M; at EL0: UCI, UCT, DZE, nTWE, nTWI.
pub const SYSTEM_CONTROL: u64 =
    0x30D0_0800 | 1 << 26 | 1 << 18 | 1 << 16 | 1 << 15 | 1 << 14 | 1 << 12 | 1 << 2 | 1;

/// Descriptors (Arm ARM DDI 0487 D8.3): valid block, table or page; access flag, inner shareable.
const BLOCK: u64 = 1 | 1 << 10 | 3 << 8;
const TABLE: u64 = 3;
const PAGE: u64 = 3 | 1 << 10 | 3 << 8;
/// Attribute 1; not executable at EL1, at EL0.
const DEVICE: u64 = 1 << 2;
const NO_EXECUTE: u64 = 3 << 53;
/// AP: EL0 may; no level may write.
const PROGRAM: u64 = 1 << 6;
const READ_ONLY: u64 = 1 << 7;

#[repr(C, align(4096))]
struct Page<T, const N: usize>([T; N]);

/// The tables and pages of a CPU's sandbox.
struct Own {
    root: Page<AtomicU64, 512>,
    middle: Page<AtomicU64, 512>,
    leaves: Page<AtomicU64, 512>,
    code: Page<AtomicU32, 1024>,
    stack: Page<AtomicU64, 512>,
}

impl Own {
    /// Returns empty tables and pages.
    const fn new() -> Self {
        Self {
            root: Page([const { AtomicU64::new(0) }; 512]),
            middle: Page([const { AtomicU64::new(0) }; 512]),
            leaves: Page([const { AtomicU64::new(0) }; 512]),
            code: Page([const { AtomicU32::new(0) }; 1024]),
            stack: Page([const { AtomicU64::new(0) }; 512]),
        }
    }
}

/// One of each CPU, which alone uses it.
static OWN: [Own; MAX_CPUS] = [const { Own::new() }; MAX_CPUS];

/// Returns the one of the calling CPU.
fn own() -> &'static Own {
    &OWN[cpu::index() % MAX_CPUS]
}

/// The word that fills the code page.
const BREAKPOINT: u32 = 0xD420_0000;

/// Builds the calling CPU's tables and switches its MMU on.
pub(super) fn enable() {
    let own = own();
    for (gigabyte, entry) in own.root.0.iter().enumerate().take(8) {
        let address = (gigabyte as u64) << 30;
        let kind = if address == RAM_BASE {
            0
        } else {
            DEVICE | NO_EXECUTE
        };
        entry.store(address | BLOCK | kind, Ordering::Relaxed);
    }
    let address = |page: *const ()| page.addr() as u64;
    own.root.0[128].store(address((&raw const own.middle).cast()) | TABLE, Ordering::Relaxed);
    own.root.0[129].store(BLOCK | DEVICE | NO_EXECUTE | PROGRAM, Ordering::Relaxed);
    own.middle.0[0].store(address((&raw const own.leaves).cast()) | TABLE, Ordering::Relaxed);
    let code = address((&raw const own.code).cast());
    own.leaves.0[0].store(code | PAGE | PROGRAM | READ_ONLY, Ordering::Relaxed);
    let stack = address((&raw const own.stack).cast());
    own.leaves.0[2].store(stack | PAGE | PROGRAM | NO_EXECUTE, Ordering::Relaxed);
    for word in &own.code.0 {
        word.store(BREAKPOINT, Ordering::Relaxed);
    }
    let root = address((&raw const own.root).cast());
    // SAFETY: an identity map of everything the program uses, so no address changes its meaning; the tables
    // were written with the caches off, and only entries that the program does not use change later.
    unsafe {
        asm!(
            "dsb sy",
            "msr mair_el1, {attributes}",
            "msr tcr_el1, {control}",
            "msr ttbr0_el1, {root}",
            "msr ttbr1_el1, {root}",
            "isb",
            "tlbi vmalle1",
            "ic iallu",
            "dsb nsh",
            "isb",
            "msr sctlr_el1, {system}",
            "isb",
            attributes = in(reg) ATTRIBUTES,
            control = in(reg) CONTROL,
            root = in(reg) root,
            system = in(reg) SYSTEM_CONTROL,
            options(nostack),
        );
    }
}

/// Shows code and devices where a 32-bit program can see them, in place of guest-physical addresses that the
/// program does not use.
pub(super) fn show_narrow(on: bool) {
    let [devices, code] = [2, 3].map(|gigabyte: u64| gigabyte << 30 | BLOCK | DEVICE | NO_EXECUTE);
    let middle = (&raw const own().middle).addr() as u64 | TABLE;
    let lowest = BLOCK | DEVICE | NO_EXECUTE | PROGRAM;
    own().root.0[2].store(if on { lowest } else { devices }, Ordering::Relaxed);
    own().root.0[3].store(if on { middle } else { code }, Ordering::Relaxed);
    forget();
}

/// Shows the gigabyte around `address` at [`PROBED`].
pub(super) fn look_at(address: u64) {
    let gigabyte = address >> 30 << 30 & 0xFF_FFFF_FFFF;
    describe(gigabyte | BLOCK | DEVICE | PROGRAM);
}

/// Makes `descriptor` the one of [`PROBED`].
pub(super) fn describe(descriptor: u64) {
    own().root.0[130].store(descriptor, Ordering::Relaxed);
    forget();
}

/// Makes the changed entries take effect.
fn forget() {
    // SAFETY: only forgets the translations of the sandbox's own window.
    unsafe { asm!("dsb ishst", "tlbi vmalle1", "dsb nsh", "isb", options(nostack)) }
}

/// Replaces the code.
pub(super) fn write_code(words: impl Iterator<Item = u32>) {
    for (place, word) in own().code.0.iter().zip(words) {
        place.store(word, Ordering::Relaxed);
        cpu::publish_instruction((&raw const *place).addr());
    }
}
