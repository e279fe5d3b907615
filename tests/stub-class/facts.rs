// SPDX-License-Identifier: Apache-2.0
//! Class `stub`, a proof that a class is a folder: its part of `arch/api`.

use super::{ClassFacts, Endianness, Word, device, driver};
use bulkhead_abi::size::Tables;

/// The facts of class `stub`: 32 bits, the most significant byte first, translated.
pub const FACTS: ClassFacts = ClassFacts {
    name: "stub",
    description: "no hardware at all",
    number: 1000,
    word: Word::Bits32,
    endianness: Endianness::Big,
    granule: 4096,
    guest_address_limit: 1 << 32,
    translates: true,
    replaces_instructions: false,
    protects: false,
    direct: false,
    entry_bits: 0,
    programs: &[],
    first_device_line: 0,
    ports: false,
    registers: &[],
    vectors: false,
    entry_states: &["usual"],
    devices: &[device::PL011, device::EVENT_GATE],
    drivers: &[driver::PL011, driver::NVIC, driver::ARM_TIMER],
    tables: Tables::Large,
    masks_lines: false,
    delays_interrupts: false,
    upcalls: false,
    semihosting: false,
    traces_short_exits: false,
};
