// SPDX-License-Identifier: Apache-2.0
//! A PCI function with shared memory and a doorbell, in the layout of QEMU's `ivshmem` (QEMU 7.2,
//! docs/specs/ivshmem-spec.rst), so that stock systems have drivers for it: vendor 1AF4, device 1110, BAR 0
//! with registers, BAR 2 with the memory. It is revision 0, whose interrupt is INTx.
//!
//! The base addresses are where the memory is mapped already, so they cannot be changed. When anything is
//! written, a base address register reads as its address, and as its size after all ones. A system must take
//! the addresses as it finds them. The memory is there with any value of the command register.
//!
//! A ring of another side sets `IntrStatus`. INTx is high while that has a bit of `IntrMask`, and the command
//! register does not disable it. A read of `IntrStatus` clears it.

/// Bytes of the registers in BAR 0: a page, so that a system can hand it to a program by itself.
pub const REGISTERS_SIZE: u64 = 0x1000;
/// Bytes of the configuration space of a function.
pub const CONFIG_SIZE: u64 = 0x1000;

/// Device 1110, vendor 1AF4 (Red Hat).
const IDENTITY: u32 = 0x1110_1AF4;
/// Device 1100, vendor 1AF4.
const SUBSYSTEM: u32 = 0x1100_1AF4;
/// RAM (PCI Code and ID Assignment, 1.6), revision 0.
const CLASS: u32 = 0x0500_0000;
/// The bits of the command register (PCI 3.0, 6.2.2): memory, bus master, INTx disable.
const COMMAND: u16 = 1 << 1 | 1 << 2 | INTX_OFF;
const INTX_OFF: u16 = 1 << 10;
/// The bit of the status register that says that an interrupt is pending (6.2.3).
const STATUS_INTX: u32 = 1 << 19;
/// Interrupt pin A (6.2.4).
const PIN: u32 = 1 << 8;
/// A base address register of memory in 64 bits that can be prefetched (6.2.5.1).
const MEMORY_64: u32 = 0b1100;
const ALL_ONES: u32 = u32::MAX;

/// Words of the configuration space.
mod config {
    pub const IDENTITY: u16 = 0;
    pub const COMMAND: u16 = 1;
    pub const CLASS: u16 = 2;
    pub const BAR0: u16 = 4;
    pub const BAR2: u16 = 6;
    pub const BAR3: u16 = 7;
    pub const BAR5: u16 = 9;
    pub const SUBSYSTEM: u16 = 11;
    pub const INTERRUPT: u16 = 15;
}

/// Words of BAR 0.
mod register {
    pub const MASK: u64 = 0;
    pub const STATUS: u64 = 1;
    pub const POSITION: u64 = 2;
    pub const DOORBELL: u64 = 3;
}

/// The facts of a function that never change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The address of BAR 0.
    pub registers: u64,
    /// The address of BAR 2.
    pub memory: u64,
    /// The bytes there, a power of two.
    pub size: u64,
    /// The number that other sides know this one by.
    pub position: u8,
}

/// The state of a function.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Function {
    command: u16,
    line: u8,
    /// Bit n: base address register n shows its size.
    sizing: u8,
    mask: u32,
    status: u32,
}

impl Function {
    /// Makes a function after a reset.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            command: 0,
            line: 0,
            sizing: 0,
            mask: 0,
            status: 0,
        }
    }

    /// Notes that another side rings.
    pub const fn ring(&mut self) {
        self.status |= 1;
    }

    const fn is_pending(&self) -> bool {
        self.status & self.mask != 0
    }

    /// Returns the level of INTx.
    #[must_use]
    pub const fn level(&self) -> bool {
        self.is_pending() && self.command & INTX_OFF == 0
    }

    /// Returns `size` bytes of the configuration space from `offset` on. A byte that is not in one word is
    /// zero.
    #[must_use]
    pub fn read_config(&self, place: &Place, offset: u16, size: u8) -> u32 {
        let word = self.config_word(place, offset >> 2);
        part(word, u64::from(offset), size)
    }

    fn config_word(&self, place: &Place, word: u16) -> u32 {
        let shows_size = |bar: u8| self.sizing & 1_u8.wrapping_shl(bar.into()) != 0;
        let extent = place.size.wrapping_neg();
        match word {
            config::IDENTITY => IDENTITY,
            config::COMMAND => u32::from(self.command) | if self.is_pending() { STATUS_INTX } else { 0 },
            config::CLASS => CLASS,
            config::BAR0 if shows_size(0) => REGISTERS_SIZE.wrapping_neg() as u32,
            config::BAR0 => place.registers as u32,
            config::BAR2 if shows_size(2) => extent as u32 | MEMORY_64,
            config::BAR2 => place.memory as u32 | MEMORY_64,
            config::BAR3 if shows_size(3) => (extent >> 32) as u32,
            config::BAR3 => (place.memory >> 32) as u32,
            config::SUBSYSTEM => SUBSYSTEM,
            config::INTERRUPT => PIN | u32::from(self.line),
            _ => 0,
        }
    }

    /// Writes `size` bytes to the configuration space.
    pub fn write_config(&mut self, offset: u16, size: u8, value: u32) {
        let shift = u32::from(offset & 3).wrapping_mul(8);
        match (offset >> 2, offset & 3) {
            (config::COMMAND, 0 | 1) => {
                let keep = mask_of(size).wrapping_shl(shift) as u16;
                let wanted = value.wrapping_shl(shift) as u16;
                self.command = (self.command & !keep | wanted & keep) & COMMAND;
            }
            (word @ config::BAR0..=config::BAR5, 0) if size == 4 => {
                let bit = 1_u8.wrapping_shl(u32::from(word).wrapping_sub(config::BAR0.into()));
                if value == ALL_ONES {
                    self.sizing |= bit;
                } else {
                    self.sizing &= !bit;
                }
            }
            (config::INTERRUPT, 0) => self.line = value as u8,
            _ => {}
        }
    }

    /// Reads a register of BAR 0. Only whole words are there.
    pub fn read_register(&mut self, place: &Place, offset: u64, size: u8) -> u32 {
        if size != 4 || !offset.is_multiple_of(4) {
            return 0;
        }
        match offset >> 2 {
            register::MASK => self.mask,
            register::STATUS => core::mem::take(&mut self.status),
            register::POSITION => place.position.into(),
            _ => 0,
        }
    }

    /// Writes a register of BAR 0. Returns the side that is to be rung, if one is.
    pub fn write_register(&mut self, offset: u64, size: u8, value: u32) -> Option<u16> {
        if size != 4 || !offset.is_multiple_of(4) {
            return None;
        }
        match offset >> 2 {
            register::MASK => self.mask = value,
            register::STATUS => self.status = value,
            register::DOORBELL => return Some((value >> 16) as u16),
            _ => {}
        }
        None
    }
}

/// Returns the bits that so many bytes have.
const fn mask_of(size: u8) -> u32 {
    match size {
        1 => 0xFF,
        2 => 0xFFFF,
        _ => ALL_ONES,
    }
}

/// Returns `size` bytes of a word from `offset` on.
fn part(word: u32, offset: u64, size: u8) -> u32 {
    word.wrapping_shr((offset as u32 & 3).wrapping_mul(8)) & mask_of(size)
}

/// Returns what a load of a place without a function gives: all ones (PCI 3.0, 6.1).
#[must_use]
pub const fn nobody(size: u8) -> u32 {
    mask_of(size)
}

#[cfg(test)]
mod tests {
    use super::{Function, Place, nobody};

    const PLACE: Place = Place {
        registers: 0x3E00_0000,
        memory: 0x1_1000_0000,
        size: 0x10_0000,
        position: 2,
    };

    #[test]
    fn it_looks_like_ivshmem() {
        let function = Function::new();
        let config = |offset, size| function.read_config(&PLACE, offset, size);
        assert_eq!(config(0, 4), 0x1110_1AF4);
        assert_eq!((config(0, 2), config(2, 2)), (0x1AF4, 0x1110));
        assert_eq!((config(8, 1), config(0x0A, 2), config(0x0E, 1)), (0, 0x0500, 0));
        assert_eq!(config(0x2C, 4), 0x1100_1AF4);
        assert_eq!(config(0x3D, 1), 1);
        assert_eq!(config(0x34, 1), 0);
        assert_eq!((nobody(1), nobody(2), nobody(4)), (0xFF, 0xFFFF, u32::MAX));
    }

    #[test]
    fn base_addresses_tell_their_size_and_stay() {
        let mut function = Function::new();
        let bars =
            |function: &Function| [0x10, 0x18, 0x1C].map(|offset| function.read_config(&PLACE, offset, 4));
        let addresses = [0x3E00_0000, 0x1000_000C, 1];
        assert_eq!(bars(&function), addresses);
        for offset in (0x10..0x28).step_by(4) {
            function.write_config(offset, 4, u32::MAX);
        }
        assert_eq!(bars(&function), [0xFFFF_F000, 0xFFF0_000C, u32::MAX]);
        for offset in (0x10..0x28).step_by(4) {
            function.write_config(offset, 4, 0x1234_0000);
        }
        assert_eq!(bars(&function), addresses);
    }

    #[test]
    fn a_ring_is_an_interrupt_until_it_is_read_or_disabled() {
        let mut function = Function::new();
        function.ring();
        assert!(!function.level());
        assert_eq!(function.write_register(0, 4, 1), None);
        assert!(function.level());
        assert_eq!(function.read_config(&PLACE, 6, 2), 1 << 3);
        // INTx disable keeps the bit of the status register.
        function.write_config(4, 2, 0x0402);
        assert!(!function.level());
        assert_eq!(function.read_config(&PLACE, 4, 4), 0x0008_0402);
        function.write_config(5, 1, 0);
        assert!(function.level());
        assert_eq!(function.read_register(&PLACE, 4, 4), 1);
        assert!(!function.level());
        assert_eq!(function.read_register(&PLACE, 4, 4), 0);
    }

    #[test]
    fn the_doorbell_names_the_side_and_the_position_is_told() {
        let mut function = Function::new();
        assert_eq!(function.read_register(&PLACE, 8, 4), 2);
        assert_eq!(function.write_register(12, 4, 1 << 16), Some(1));
        assert_eq!(function.write_register(12, 2, 1 << 16), None);
        assert_eq!(function.write_register(13, 4, 1 << 16), None);
        assert_eq!(function.read_register(&PLACE, 12, 4), 0);
    }
}
