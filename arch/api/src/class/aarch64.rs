// SPDX-License-Identifier: Apache-2.0
//! Class `aarch64`.

use super::{ClassFacts, Endianness, ProgramFacts, Word, device, driver};
use crate::EntryState;
use bulkhead_abi::size::Tables;

/// The entry state of partitions that start in AArch32 state. It holds for all vCPUs of the partition.
pub const AARCH32: EntryState = EntryState(1);

/// The facts of class `aarch64`.
pub const FACTS: ClassFacts = ClassFacts {
    name: "aarch64",
    description: "Armv8-A with EL2",
    number: 1,
    word: Word::Bits64,
    endianness: Endianness::Little,
    granule: 4096,
    guest_address_limit: 1 << 40,
    translates: true,
    replaces_instructions: false,
    protects: true,
    entry_bits: 0,
    programs: &[
        ProgramFacts {
            machine: 183,
            word: Word::Bits64,
            entry_bits: 0,
            is_other_state: false,
        },
        // AArch32: bit 0 of an entry says T32.
        ProgramFacts {
            machine: 40,
            word: Word::Bits32,
            entry_bits: 1,
            is_other_state: true,
        },
    ],
    // The lines below are private to a CPU.
    first_device_line: 32,
    ports: false,
    registers: &[],
    vectors: false,
    entry_states: &["aarch64", "aarch32"],
    devices: &[
        device::PL011,
        device::EVENT_GATE,
        device::GIC_V3,
        device::GIC_V2,
        device::CFI_FLASH,
        device::PCI_BRIDGE,
    ],
    drivers: &[
        driver::PL011,
        driver::CADENCE_UART,
        driver::GIC_V3,
        driver::GIC_V2,
        driver::ARM_TIMER,
    ],
    tables: Tables::Large,
    masks_lines: false,
    delays_interrupts: false,
    traces_short_exits: true,
    upcalls: true,
    semihosting: false,
    direct: false,
};
