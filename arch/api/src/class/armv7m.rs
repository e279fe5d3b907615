// SPDX-License-Identifier: Apache-2.0
//! Class `armv7m`.

use super::{ClassFacts, Endianness, ProgramFacts, Word, device, driver};
use bulkhead_abi::size::Tables;

/// The facts of class `armv7m`.
pub const FACTS: ClassFacts = ClassFacts {
    name: "armv7m",
    description: "Armv7-M with an MPU",
    number: 2,
    word: Word::Bits32,
    endianness: Endianness::Little,
    // The smallest region of an MPU (Arm DDI 0403E, section B3.5.1).
    granule: 32,
    guest_address_limit: 1 << 32,
    translates: false,
    replaces_instructions: true,
    protects: false,
    // Bit 0 says T32, the only instruction set; the instruction is at the even address.
    entry_bits: 1,
    programs: &[ProgramFacts {
        machine: 40,
        word: Word::Bits32,
        entry_bits: 1,
        is_other_state: false,
    }],
    first_device_line: 0,
    ports: false,
    registers: &[],
    vectors: false,
    entry_states: &["usual"],
    devices: &[device::CMSDK_UART, device::EVENT_GATE, device::LAN9118],
    drivers: &[
        driver::CMSDK_UART,
        driver::NVIC,
        driver::DUAL_TIMER,
        driver::LAN9118,
    ],
    tables: Tables::Small,
    masks_lines: true,
    delays_interrupts: true,
    traces_short_exits: false,
    upcalls: false,
    semihosting: true,
    direct: false,
};
