// SPDX-License-Identifier: Apache-2.0
//! Class `ppc405`.

use super::{ClassFacts, Endianness, ProgramFacts, Word, device, driver};
use crate::{RegisterRule, Treatment};
use bulkhead_abi::size::Tables;

/// The device control registers of guests: registers of their interrupt controller. Any other one exits.
const REGISTERS: &[RegisterRule] = &[RegisterRule {
    first: 0xC0,
    last: 0xC8,
    load: Treatment::Own,
    store: Treatment::Own,
}];

/// The facts of class `ppc405`.
pub const FACTS: ClassFacts = ClassFacts {
    name: "ppc405",
    description: "PowerPC 405, guests in problem state",
    number: 5,
    word: Word::Bits32,
    endianness: Endianness::Big,
    granule: 4096,
    guest_address_limit: 1 << 32,
    translates: true,
    replaces_instructions: false,
    protects: false,
    entry_bits: 0,
    programs: &[ProgramFacts {
        machine: 20,
        word: Word::Bits32,
        entry_bits: 0,
        is_other_state: false,
    }],
    first_device_line: 0,
    ports: false,
    registers: REGISTERS,
    vectors: false,
    entry_states: &["real-mode"],
    devices: &[device::NS16550_MEMORY, device::EVENT_GATE],
    drivers: &[driver::PPC405EP_UART, driver::UIC, driver::PPC_TIMER],
    tables: Tables::Large,
    masks_lines: false,
    delays_interrupts: false,
    upcalls: true,
    semihosting: false,
    direct: false,
    traces_short_exits: false,
};
