// SPDX-License-Identifier: Apache-2.0
//! Class `x86_64`.

use super::{ClassFacts, Endianness, ProgramFacts, Word, device, driver};
use crate::{EntryState, RegisterRule, Treatment};
use bulkhead_abi::size::Tables;

/// The entry state in which a start-up IPI leaves a processor: real mode, the segment is the entry's page.
pub const REAL: EntryState = EntryState(0);
/// The entry state of the 64-bit Linux boot protocol (Linux Documentation/arch/x86/boot.rst): long mode,
/// the tables at [`LONG_MODE_ROOT`] map the first 4 GiB to themselves, RSI holds the argument.
pub const LONG_64: EntryState = EntryState(1);
/// The entry state of PVH (Xen `docs/misc/pvh.pandoc`): flat 32-bit protected mode without paging, EBX holds
/// the argument.
pub const FLAT_32: EntryState = EntryState(2);

/// Where the host tool puts the translation tables of [`LONG_64`]: the root, one table of the next level, and
/// four tables of 2 MiB pages.
pub const LONG_MODE_ROOT: u64 = 0x9000;
/// Where the host tool puts the descriptor table of [`LONG_64`] and [`FLAT_32`]. Selector 0x10 is code,
/// 0x18 data.
pub const BOOT_GDT: u64 = 0x500;
/// Bytes of that table.
pub const BOOT_GDT_SIZE: u64 = 0x20;

/// First I/O port of the power management registers that a VM sees, as on the ICH9 of QEMU's q35.
pub const PM_BASE: u64 = 0x600;

const fn rule(first: u32, last: u32, load: Treatment, store: Treatment) -> RegisterRule {
    RegisterRule {
        first,
        last,
        load,
        store,
    }
}

const fn own(first: u32, last: u32) -> RegisterRule {
    rule(first, last, Treatment::Own, Treatment::Own)
}

/// Returns the rule of a register that reads as this value. A store is ignored.
const fn constant(number: u32, value: u64) -> RegisterRule {
    rule(
        number,
        number,
        Treatment::Constant(value),
        Treatment::Constant(value),
    )
}

/// The model-specific registers of guests (AMD APM volume 2, appendix A). A register that is not here is a
/// #GP and a line of the log.
pub const REGISTERS: &[RegisterRule] = &[
    // The time-stamp counter, which has an offset of the VM's own.
    own(0x10, 0x10),
    // No platform id, no microcode.
    constant(0x17, 0),
    // APIC_BASE.
    own(0x1B, 0x1B),
    // SPEC_CTRL and PRED_CMD: no such feature is announced.
    constant(0x48, 0),
    constant(0x49, 0),
    constant(0x79, 0),
    constant(0x8B, 0x0100_0065),
    // MTRR capability: none. The types and the default type read as write-back.
    constant(0xFE, 0),
    // No machine-check banks.
    constant(0x179, 0),
    constant(0x17A, 0),
    constant(0x17B, 0),
    // SYSENTER.
    own(0x174, 0x176),
    // DebugCtl: no branch records.
    constant(0x1D9, 0),
    // MISC_ENABLE (Intel): fast strings.
    constant(0x1A0, 1),
    // PAT.
    own(0x277, 0x277),
    constant(0x2FF, 6),
    // TSC_DEADLINE.
    own(0x6E0, 0x6E0),
    // x2APIC.
    own(0x800, 0x8FF),
    // EFER, STAR, LSTAR, CSTAR, SFMASK; FS, GS and kernel GS base; TSC_AUX.
    own(0xC000_0080, 0xC000_0084),
    own(0xC000_0100, 0xC000_0103),
    // SYSCFG, HWCR, NB_CFG, MMIO configuration: as after a reset, with the TSC that never stops.
    constant(0xC001_0010, 0),
    constant(0xC001_0015, 1 << 24),
    constant(0xC001_001F, 0),
    constant(0xC001_0058, 0),
    // OSVW: no errata are announced.
    constant(0xC001_0140, 0),
    constant(0xC001_0141, 0),
    // DE_CFG, BU_CFG, LS_CFG and IC_CFG.
    constant(0xC001_1020, 0),
    constant(0xC001_1021, 0),
    constant(0xC001_1022, 0),
    constant(0xC001_1023, 0),
    constant(0xC001_1028, 0),
    constant(0xC001_1029, 1 << 1),
    constant(0xC001_102A, 0),
];

/// The facts of class `x86_64`.
pub const FACTS: ClassFacts = ClassFacts {
    name: "x86_64",
    description: "x86-64 with AMD-V",
    // 3 and 5 are kept for the classes `armv8m` and `ppc405`.
    number: 4,
    word: Word::Bits64,
    endianness: Endianness::Little,
    granule: 4096,
    guest_address_limit: 1 << 39,
    translates: true,
    replaces_instructions: false,
    protects: false,
    entry_bits: 0,
    programs: &[
        ProgramFacts {
            machine: 62,
            word: Word::Bits64,
            entry_bits: 0,
            is_other_state: false,
        },
        // 32-bit programs start without paging.
        ProgramFacts {
            machine: 3,
            word: Word::Bits32,
            entry_bits: 0,
            is_other_state: true,
        },
    ],
    first_device_line: 0,
    ports: true,
    registers: REGISTERS,
    vectors: true,
    entry_states: &["real-mode", "linux-64", "pvh"],
    devices: &[device::NS16550, device::EVENT_GATE, device::APIC],
    drivers: &[driver::NS16550, driver::APIC, driver::ACPI_TIMER],
    tables: Tables::Large,
    masks_lines: false,
    delays_interrupts: false,
    upcalls: true,
    semihosting: false,
    direct: true,
    traces_short_exits: false,
};
