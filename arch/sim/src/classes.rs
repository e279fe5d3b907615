// SPDX-License-Identifier: Apache-2.0
//! The classes that the mock can stand for: the facts of each, so that the kernel is tested with all of them.
//!
//! The mock translates addresses and has large tables for every class, because its systems have no code
//! memory, and the kernel is built for the host once.

use bulkhead_abi::size::Tables;
use bulkhead_arch_api::class::{AARCH64, ARMV7M, ARMV8M, device};
use bulkhead_arch_api::class::{DeviceFacts, Endianness, Word};
use bulkhead_arch_api::{AddressSpace, ClassFacts, RegisterRule, Treatment, class};

/// A class that the mock stands for.
pub trait SimClass: Copy + std::fmt::Debug + 'static {
    /// Its facts.
    const FACTS: &'static ClassFacts;
    /// The number of translations that software can load, if the hardware does not walk the tables.
    const LOADED_TRANSLATIONS: Option<usize> = None;
}

/// The mock itself: every ability that needs no other kind of guest.
#[derive(Clone, Copy, Debug)]
pub struct Sim;

impl SimClass for Sim {
    const FACTS: &'static ClassFacts = &ClassFacts {
        name: "sim",
        number: 900,
        semihosting: true,
        devices: &[
            device::PL011,
            device::EVENT_GATE,
            device::LAN9118,
            device::PCI_BRIDGE,
        ],
        ..AARCH64
    };
}

/// Class `aarch64`.
#[derive(Clone, Copy, Debug)]
pub struct LikeAarch64;

impl SimClass for LikeAarch64 {
    const FACTS: &'static ClassFacts = &AARCH64;
}

/// Class `armv7m`: lines are masked, and a debugger is called.
#[derive(Clone, Copy, Debug)]
pub struct LikeArmv7m;

impl SimClass for LikeArmv7m {
    const FACTS: &'static ClassFacts = &ClassFacts {
        translates: true,
        protects: false,
        granule: class::AARCH64.granule,
        tables: Tables::Large,
        ..ARMV7M
    };
}

/// Class `armv8m`: lines are masked.
#[derive(Clone, Copy, Debug)]
pub struct LikeArmv8m;

impl SimClass for LikeArmv8m {
    const FACTS: &'static ClassFacts = &ClassFacts {
        translates: true,
        granule: class::AARCH64.granule,
        tables: Tables::Large,
        ..ARMV8M
    };
}

/// A UART whose registers are I/O ports.
pub const PORT_UART: DeviceFacts = device::PL011.at(200, AddressSpace::Ports);
/// A UART whose registers have numbers.
pub const REGISTER_UART: DeviceFacts = device::PL011.at(201, AddressSpace::Registers);

/// A register that a guest of [`LikeX86`] or [`LikePpc`] has to itself.
pub const OWN_REGISTER: u32 = 0x10;
/// A register that always reads as [`CONSTANT`].
pub const CONSTANT_REGISTER: u32 = 0x1B;
/// The value of [`CONSTANT_REGISTER`].
pub const CONSTANT: u64 = 0xFEE0_0900;

/// The filter of both classes: what is not here belongs to a virtual device or to nothing.
const FILTER: &[RegisterRule] = &[
    RegisterRule {
        first: OWN_REGISTER,
        last: OWN_REGISTER,
        load: Treatment::Own,
        store: Treatment::Own,
    },
    RegisterRule {
        first: CONSTANT_REGISTER,
        last: CONSTANT_REGISTER,
        load: Treatment::Constant(CONSTANT),
        store: Treatment::Exit,
    },
];

/// A class like x86: I/O ports, numbered registers, vectors, several entry states.
#[derive(Clone, Copy, Debug)]
pub struct LikeX86;

impl SimClass for LikeX86 {
    const FACTS: &'static ClassFacts = &ClassFacts {
        name: "like-x86",
        number: 901,
        first_device_line: 0,
        ports: true,
        registers: FILTER,
        vectors: true,
        entry_states: &["linux-64", "pvh", "real-mode"],
        devices: &[PORT_UART, device::EVENT_GATE, device::LAN9118],
        ..AARCH64
    };
}

/// A class like the PowerPC 405: the most significant byte first, 32 bits, numbered registers, translations
/// that software loads.
#[derive(Clone, Copy, Debug)]
pub struct LikePpc;

impl SimClass for LikePpc {
    const FACTS: &'static ClassFacts = &ClassFacts {
        name: "like-ppc",
        number: 902,
        word: Word::Bits32,
        endianness: Endianness::Big,
        guest_address_limit: 1 << 32,
        first_device_line: 0,
        registers: FILTER,
        devices: &[REGISTER_UART, device::EVENT_GATE],
        ..AARCH64
    };

    const LOADED_TRANSLATIONS: Option<usize> = Some(4);
}
