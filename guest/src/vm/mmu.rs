// SPDX-License-Identifier: Apache-2.0
//! An optional identity map with caches on: the lowest gigabyte as device registers but for the channels in
//! it, RAM as cacheable memory, everything above as device registers.
//!
//! A level-1 table with 1 GiB blocks, and a level-2 table with blocks of 2 MiB for the lowest gigabyte; 39
//! bits of address, 4 KiB granule (Arm ARM DDI 0487 D8.3). Needed where a guest wants atomic
//! read-modify-writes between CPUs or unaligned accesses; off otherwise, so that the plain path of a machine
//! without translation is exercised too.

use core::arch::asm;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::cpu;

const ENTRIES: usize = 512;

#[repr(align(4096))]
struct Table([AtomicU64; ENTRIES]);

static TABLE: Table = Table([const { AtomicU64::new(0) }; ENTRIES]);
/// The lowest gigabyte.
static LOW: Table = Table([const { AtomicU64::new(0) }; ENTRIES]);
static ENABLED: AtomicBool = AtomicBool::new(false);

/// The channels of a VM begin here, unless its manifest says otherwise: cacheable like the channels of all
/// sides.
const CHANNELS: core::ops::Range<u64> = 0x1000_0000..0x2000_0000;
/// Execution never, at any level.
const NO_CODE: u64 = 1 << 53 | 1 << 54;
/// An entry that refers to a table.
const NEXT_TABLE: u64 = 3;
/// Gigabytes that are mapped.
const GIGABYTES: usize = 8;
/// Valid block, access flag, inner shareable (D8.3.1).
const BLOCK: u64 = 1 | 1 << 10 | 3 << 8;
/// Block with attribute 1 of [`ATTRIBUTES`] and no execution.
const DEVICE: u64 = 1 << 2 | NO_CODE;
/// `MAIR_EL1`: attribute 0 is write-back memory, attribute 1 device-nGnRE.
const ATTRIBUTES: u64 = 0xFF | 0x04 << 8;
/// `TCR_EL1`: T0SZ 25, walks write-back inner shareable, 4 KiB granule, no TTBR1, 40-bit addresses.
const CONTROL: u64 = 25 | 1 << 8 | 1 << 10 | 3 << 12 | 1 << 23 | 2 << 32;
/// `SCTLR_EL1`: reserved-one bits, I, C, M (alignment unchecked).
const SYSTEM_CONTROL: u64 = 0x30D0_0800 | 1 << 12 | 1 << 2 | 1;

/// Builds the map and switches it and the caches on, on the calling CPU; CPUs started later follow.
pub fn enable() {
    for (gigabyte, entry) in TABLE.0.iter().enumerate().take(GIGABYTES) {
        let address = (gigabyte as u64) << 30;
        let kind = if address == super::RAM_BASE { 0 } else { DEVICE };
        entry.store(address | BLOCK | kind, Ordering::Relaxed);
    }
    for (block, entry) in LOW.0.iter().enumerate() {
        let address = (block as u64) << 21;
        let kind = if CHANNELS.contains(&address) {
            NO_CODE
        } else {
            DEVICE
        };
        entry.store(address | BLOCK | kind, Ordering::Relaxed);
    }
    let [first, ..] = &TABLE.0;
    first.store((&raw const LOW).addr() as u64 | NEXT_TABLE, Ordering::Relaxed);
    ENABLED.store(true, Ordering::Release);
    switch_on();
    cpu::clean_line((&raw const ENABLED).addr());
}

/// A table that maps nothing.
static NOTHING: Table = Table([const { AtomicU64::new(0) }; ENTRIES]);

/// Switches to a translation that maps nothing, the vectors included. The CPU takes one exception after
/// another from then on, and finishes no instruction.
pub fn lose_everything() -> ! {
    let table = (&raw const NOTHING).addr();
    // SAFETY: nothing of the program is executed after the last instruction.
    unsafe {
        asm!(
            "msr ttbr0_el1, {table}",
            "msr tcr_el1, {control}",
            "isb",
            "tlbi vmalle1",
            "dsb nsh",
            "msr sctlr_el1, {system}",
            "isb",
            "b .",
            table = in(reg) table,
            control = in(reg) CONTROL,
            system = in(reg) SYSTEM_CONTROL,
            options(noreturn),
        );
    }
}

/// Switches the map on if [`enable`] was called before on another CPU.
pub(super) fn follow() {
    if ENABLED.load(Ordering::Acquire) {
        switch_on();
    }
}

fn switch_on() {
    let table = (&raw const TABLE).addr();
    // SAFETY: an identity map of everything the program uses, so no address changes its meaning; the table
    // was written with the caches off or is coherent with table walks (`CONTROL`), and stays for ever.
    unsafe {
        asm!(
            "dsb sy",
            "msr mair_el1, {attributes}",
            "msr tcr_el1, {control}",
            "msr ttbr0_el1, {table}",
            "isb",
            "tlbi vmalle1",
            "dsb nsh",
            "isb",
            "msr sctlr_el1, {system}",
            "isb",
            attributes = in(reg) ATTRIBUTES,
            control = in(reg) CONTROL,
            table = in(reg) table,
            system = in(reg) SYSTEM_CONTROL,
            options(nostack),
        );
    }
}
