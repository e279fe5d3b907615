// SPDX-License-Identifier: Apache-2.0
//! Class `armv8m`.

use super::{ClassFacts, DriverFacts, Endianness, ProgramFacts, Word, device, driver};
use bulkhead_abi::size::{MAX_PCPUS, Tables};

/// Drivers of each system.
const DRIVERS: [DriverFacts; 5] = [
    driver::CMSDK_UART,
    driver::NVIC,
    driver::DUAL_TIMER,
    driver::IOTKIT_SECURITY,
    driver::ARM_MPC,
];
/// Drivers of a system with two pCPUs.
const FOR_TWO: [DriverFacts; 6] = {
    let [uart, interrupts, timer, security, memory] = DRIVERS;
    [uart, interrupts, timer, security, memory, driver::SSE200]
};

/// The facts of class `armv8m`. The hypervisor is the secure world of the processor. Each VM has the whole
/// non-secure world while it runs.
pub const FACTS: ClassFacts = ClassFacts {
    name: "armv8m",
    description: "Armv8-M with TrustZone",
    number: 3,
    word: Word::Bits32,
    endianness: Endianness::Little,
    // A block of the memory protection controllers, which say what is non-secure (Arm DDI 0571G, section
    // 3.10). The SAU and the MPU divide memory more finely (Arm DDI 0553B, sections D1.2.222 and D1.2.176).
    granule: 1024,
    guest_address_limit: 1 << 32,
    translates: false,
    replaces_instructions: false,
    protects: true,
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
    devices: &[device::CMSDK_UART, device::EVENT_GATE],
    drivers: if MAX_PCPUS > 1 { &FOR_TWO } else { &DRIVERS },
    tables: Tables::Small,
    masks_lines: true,
    delays_interrupts: false,
    traces_short_exits: false,
    upcalls: true,
    semihosting: false,
    direct: false,
};
