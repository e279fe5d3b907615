// SPDX-License-Identifier: Apache-2.0
//! The facts of each class, and the list of classes.
//!
//! A fact of a class is stated once, in its constant here. The backend, the check of a system image, the
//! compiler of manifests and the host tool read that constant. A class binary serves one class and selects it
//! with a cargo feature. Then [`only`] knows the answer when it is compiled, and the code for other classes
//! is not in the binary.

mod aarch64;
mod armv7m;
mod armv8m;
pub mod device;
pub mod driver;
mod guards;
mod ppc405;
mod role;
#[cfg(feature = "stub-class")]
#[path = "../../../tests/stub-class/facts.rs"]
mod stub;
pub mod x86_64;

use crate::RegisterRule;
use bulkhead_abi::size::Tables;

pub use aarch64::{AARCH32, FACTS as AARCH64};
pub use armv7m::FACTS as ARMV7M;
pub use armv8m::FACTS as ARMV8M;
pub use device::{DeviceFacts, DeviceRole, VirtualUart, WindowFacts};
pub use driver::DriverFacts;
pub use guards::may_guard_memory;
pub use ppc405::FACTS as PPC405;
#[cfg(feature = "stub-class")]
pub use stub::FACTS as STUB;
pub use x86_64::FACTS as X86_64;

/// All classes.
pub const CLASSES: &[&ClassFacts] = &[
    &AARCH64,
    &ARMV7M,
    &ARMV8M,
    &PPC405,
    &X86_64,
    #[cfg(feature = "stub-class")]
    &STUB,
];

/// Width of a general register, and of an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Word {
    /// 32 bits.
    Bits32,
    /// 64 bits.
    Bits64,
}

/// Order of the bytes of a number in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Endianness {
    /// The least significant byte comes first.
    Little,
    /// The most significant byte comes first.
    Big,
}

impl Endianness {
    /// Both orders.
    pub const ALL: [Self; 2] = [Self::Little, Self::Big];

    /// Returns the number that these bytes are.
    #[must_use]
    pub const fn word(self, bytes: [u8; 4]) -> u32 {
        match self {
            Self::Little => u32::from_le_bytes(bytes),
            Self::Big => u32::from_be_bytes(bytes),
        }
    }

    /// Returns the number that these bytes are.
    #[must_use]
    pub const fn long(self, bytes: [u8; 8]) -> u64 {
        match self {
            Self::Little => u64::from_le_bytes(bytes),
            Self::Big => u64::from_be_bytes(bytes),
        }
    }

    /// Returns the bytes of a number.
    #[must_use]
    pub const fn bytes(self, number: u64) -> [u8; 8] {
        match self {
            Self::Little => number.to_le_bytes(),
            Self::Big => number.to_be_bytes(),
        }
    }
}

/// A kind of program that a class runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProgramFacts {
    /// Number of the machine in an ELF file.
    pub machine: u16,
    /// Width of the addresses in the ELF file.
    pub word: Word,
    /// Bits that the entry address has besides the address of the first instruction.
    pub entry_bits: u64,
    /// True if it is for another state of the processor than the usual one, which only VMs can start in.
    pub is_other_state: bool,
}

/// The facts of a class, which are true on every board.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClassFacts {
    /// Name of the class, as in a board file.
    pub name: &'static str,
    /// One line for people.
    pub description: &'static str,
    /// Number of the class in a system image.
    pub number: u32,
    /// Width of a general register.
    pub word: Word,
    /// Order of the bytes in memory.
    pub endianness: Endianness,
    /// Multiple in bytes at which mappings start and end.
    pub granule: u64,
    /// First guest-physical address that cannot be mapped.
    pub guest_address_limit: u64,
    /// True if guest addresses are translated. A class that does not translate runs code from code memory, in
    /// place, where the code is linked: every guest address is a bus address.
    pub translates: bool,
    /// True if the host tool replaces instructions of VMs that neither do their work without privilege nor
    /// trap. Only a class that runs code in place can do so.
    pub replaces_instructions: bool,
    /// True if the rights to mapped memory can change while a partition runs ([`crate::Spaces::protect`]).
    pub protects: bool,
    /// Bits that the address of an entry has besides the address of its first instruction.
    pub entry_bits: u64,
    /// The programs that it runs.
    pub programs: &'static [ProgramFacts],
    /// First interrupt line that a device can have.
    pub first_device_line: u32,
    /// True if guests have I/O ports.
    pub ports: bool,
    /// The rules for the numbered registers of guests, in the order in which they are asked.
    pub registers: &'static [RegisterRule],
    /// True if an interrupt can come as a vector ([`crate::VirtualLine::vector`]).
    pub vectors: bool,
    /// Names of the states in which a vCPU can start, the usual one first ([`crate::EntryState`]).
    pub entry_states: &'static [&'static str],
    /// The virtual devices that its VMs can have. There is at most one for each part but the
    /// interrupt controller.
    pub devices: &'static [DeviceFacts],
    /// The drivers of its class binary.
    pub drivers: &'static [DriverFacts],
    /// The size of the tables of its class binary.
    pub tables: Tables,
    /// True if [`crate::Irqs::admit`] does anything.
    pub masks_lines: bool,
    /// True if an interrupt can be held back until a constant time after its arrival
    /// ([`crate::LineRoute::latency`]).
    pub delays_interrupts: bool,
    /// True if exits that the backend answers without the kernel can be traced
    /// ([`bulkhead_abi::trace::Event::Short`]).
    pub traces_short_exits: bool,
    /// True if an event can interrupt a task ([`crate::Vcpus::divert`], [`crate::Vcpus::go_on`]).
    pub upcalls: bool,
    /// True if a VM's calls of a debugger can be answered ([`crate::Exit::Host`]).
    pub semihosting: bool,
    /// True if a vCPU can take the interrupts of its pCPU itself ([`crate::VcpuPlan::direct`]).
    pub direct: bool,
}

impl ClassFacts {
    /// Tells whether code is executed from code memory where it is linked, and nothing is translated.
    #[must_use]
    pub const fn runs_in_place(&self) -> bool {
        !self.translates
    }

    /// Tells whether guests have address spaces beside memory.
    #[inline]
    #[must_use]
    pub const fn has_other_spaces(&self) -> bool {
        self.ports || !self.registers.is_empty()
    }

    /// Returns the virtual device with this number, if VMs of the class can have it.
    #[must_use]
    pub fn device(&self, number: u32) -> Option<&'static DeviceFacts> {
        self.devices.iter().find(|device| device.number == number)
    }

    /// Returns the virtual device that the console of a VM looks like.
    #[must_use]
    pub fn console(&self) -> Option<(&'static DeviceFacts, VirtualUart)> {
        self.devices.iter().find_map(|device| match device.role {
            DeviceRole::Console(uart) => Some((device, uart)),
            DeviceRole::Controller
            | DeviceRole::Network
            | DeviceRole::Gate
            | DeviceRole::Flash
            | DeviceRole::Bridge => None,
        })
    }

    /// Tells whether the console of a VM can look like this UART.
    #[must_use]
    pub const fn has_uart(&self, uart: VirtualUart) -> bool {
        let mut rest = self.devices;
        while let [device, others @ ..] = rest {
            if let DeviceRole::Console(own) = device.role
                && own as u8 == uart as u8
            {
                return true;
            }
            rest = others;
        }
        false
    }
}

/// The only class that this build serves, if a feature says it.
const ONLY: Option<&ClassFacts> = match (
    cfg!(feature = "only-aarch64"),
    cfg!(feature = "only-armv7m"),
    cfg!(feature = "only-armv8m"),
    cfg!(feature = "only-ppc405"),
    cfg!(feature = "only-x86_64"),
) {
    (true, false, false, false, false) => Some(&AARCH64),
    (false, true, false, false, false) => Some(&ARMV7M),
    (false, false, true, false, false) => Some(&ARMV8M),
    (false, false, false, true, false) => Some(&PPC405),
    (false, false, false, false, true) => Some(&X86_64),
    // No build script asked, or several class binaries are built together: every class is served.
    _ => None,
};

/// Tells whether a class that this build serves has that UART.
#[inline]
#[must_use]
pub const fn may_have(uart: VirtualUart) -> bool {
    match ONLY {
        Some(only) => only.has_uart(uart),
        None => true,
    }
}

/// Returns the class that this build serves, if it serves no other.
#[inline]
#[must_use]
pub const fn only() -> Option<&'static ClassFacts> {
    ONLY
}

#[cfg(test)]
mod tests {
    extern crate std;

    use super::{CLASSES, VirtualUart};
    use std::vec::Vec;

    #[test]
    fn numbers_and_names_are_used_once() {
        for (index, class) in CLASSES.iter().enumerate() {
            assert!(class.number != 0 && class.granule.is_power_of_two());
            let others = &CLASSES[..index];
            assert!(others.iter().all(|other| other.name != class.name));
            assert!(others.iter().all(|other| other.number != class.number));
            let kinds: Vec<u32> = class.devices.iter().map(|device| device.number).collect();
            let consoles = [VirtualUart::Pl011, VirtualUart::Cmsdk, VirtualUart::Ns16550]
                .map(|uart| class.has_uart(uart));
            assert_eq!(consoles.iter().filter(|has| **has).count(), 1, "one console");
            assert!((1..kinds.len()).all(|index| !kinds[..index].contains(&kinds[index])));
            assert!(kinds.iter().all(|number| class.device(*number).is_some()));
        }
    }
}
