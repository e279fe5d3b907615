// SPDX-License-Identifier: Apache-2.0
//! Decodes Thumb instructions, as far as they can trap: loads and stores (Arm DDI 0403E.e, A5 and A7.7),
//! and the instructions the host tool replaces.
//!
//! A load or store is a [`Transfer`] in any encoding: a first address, registers, and what happens to
//! the base register. Registers of the floating-point unit have numbers of their own ([`FLOATS`] and up).

mod float;
mod narrow;
mod replaced;
mod search;
mod special;
mod wide;

pub(crate) use narrow::narrow_single;
pub use narrow::narrow_transfer;
pub(crate) use replaced::wide_undefined_replaced;
pub use replaced::{Hint, Replaced, narrow_replaced, narrow_replacement, wide_replaced, wide_replacement};
pub use search::{Code, Found, search_back};
pub use special::Special;
pub(crate) use wide::wide_single;
pub use wide::wide_transfer;

/// Tells whether this halfword is the first of two (A5.1).
#[must_use]
pub const fn is_wide(first: u16) -> bool {
    first >> 11 >= 0b11101
}

/// Which way a transfer goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From memory to registers.
    Load,
    /// From registers to memory.
    Store,
}

/// The registers of a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Registers {
    /// One.
    One(u8),
    /// Two, in this order.
    Two(u8, u8),
    /// Those whose bit is set, the lowest at the lowest address.
    List(u16),
    /// Words of the floating-point unit: the first one, S0 to S31, and how many.
    Floats(u8, u8),
}

/// The number of S0 among the registers of a [`Step`].
pub const FLOATS: u8 = 16;

/// A load or store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transfer {
    /// Which way.
    pub direction: Direction,
    /// Bytes of each access: 1, 2 or 4.
    pub size: u8,
    /// True if the value that is loaded is sign-extended.
    pub signed: bool,
    /// The base register; 15 is the PC, rounded down to a multiple of 4.
    pub base: u8,
    /// The value that is added to the base for the first address.
    pub offset: u32,
    /// The register whose value, shifted left, is added too.
    pub index: Option<(u8, u8)>,
    /// The value by which the base register changes.
    pub change: Option<u32>,
    /// The registers that are loaded or stored.
    pub registers: Registers,
    /// The register that tells whether an exclusive store has been done.
    pub status: Option<u8>,
    /// True if it is done with the rights of unprivileged code (LDRT, STRT).
    pub unprivileged: bool,
}

/// One access of a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// Register that is loaded or stored; [`FLOATS`] and up: of the floating-point unit.
    pub register: u8,
    /// Address.
    pub address: u32,
}

impl Transfer {
    /// Makes a transfer of one register at `base` + `offset`.
    pub(crate) const fn of_one(direction: Direction, size: u8, register: u8, base: u8, offset: u32) -> Self {
        Self {
            direction,
            size,
            signed: false,
            base,
            offset,
            index: None,
            change: None,
            registers: Registers::One(register),
            status: None,
            unprivileged: false,
        }
    }

    /// Returns the first address, with the values that the registers have before the instruction (15: its own
    /// address plus 4).
    pub fn address(&self, value: impl Fn(u8) -> u32) -> u32 {
        let base = if self.base == 15 {
            value(15) & !3
        } else {
            value(self.base)
        };
        let index = self.index.map_or(0, |(register, shift)| {
            value(register).wrapping_shl(u32::from(shift))
        });
        base.wrapping_add(self.offset).wrapping_add(index)
    }

    /// Returns the base register's new value, if it gets one.
    pub fn written_back(&self, value: impl Fn(u8) -> u32) -> Option<(u8, u32)> {
        self.change
            .map(|change| (self.base, value(self.base).wrapping_add(change)))
    }

    /// Returns the number of registers it loads or stores.
    #[must_use]
    #[inline(never)]
    pub const fn count(&self) -> u32 {
        match self.registers {
            Registers::One(_) => 1,
            Registers::Two(..) => 2,
            Registers::List(list) => list.count_ones(),
            Registers::Floats(_, count) => count as u32,
        }
    }

    /// Returns the number of bytes from the first address to the end of the last access.
    #[must_use]
    pub const fn bytes(&self) -> u32 {
        self.count().wrapping_mul(self.size as u32)
    }

    /// Returns its register, if it is only one.
    #[must_use]
    pub const fn single(&self) -> Option<u8> {
        match self.registers {
            Registers::One(register) => Some(register),
            Registers::Two(..) => None,
            Registers::List(list) if list.count_ones() == 1 => Some(list.trailing_zeros() as u8),
            Registers::Floats(first, 1) => Some(first.wrapping_add(FLOATS)),
            Registers::List(_) | Registers::Floats(..) => None,
        }
    }

    /// Returns the accesses in their order.
    pub fn steps(&self, first: u32) -> impl Iterator<Item = Step> + use<> {
        let registers = self.registers;
        let size = u32::from(self.size);
        (0..self.count()).map_while(move |index| {
            let address = first.wrapping_add(index.wrapping_mul(size));
            register_at(registers, index).map(|register| Step { register, address })
        })
    }

    /// Returns what a register holds after these bytes have been loaded into it.
    #[must_use]
    pub const fn extend(&self, value: u32) -> u32 {
        match (self.size, self.signed) {
            (1, false) => value & 0xFF,
            (1, true) => value as u8 as i8 as u32,
            (2, false) => value & 0xFFFF,
            (2, true) => value as u16 as i16 as u32,
            _ => value,
        }
    }
}

fn register_at(registers: Registers, index: u32) -> Option<u8> {
    match (registers, index) {
        (Registers::One(register), 0)
        | (Registers::Two(register, _), 0)
        | (Registers::Two(_, register), 1) => Some(register),
        (Registers::List(list), index) => {
            let mut rest = list;
            for _ in 0..index.min(16) {
                rest &= rest.wrapping_sub(1);
            }
            (rest != 0).then_some(rest.trailing_zeros() as u8)
        }
        (Registers::Floats(first, count), index) if index < u32::from(count) => {
            Some(first.wrapping_add(index as u8).wrapping_add(FLOATS))
        }
        _ => None,
    }
}

/// Returns bits \[`low` + `width` - 1 : `low`\] of a halfword.
pub(crate) const fn field(halfword: u16, low: u32, width: u32) -> u16 {
    halfword.wrapping_shr(low) & 1_u16.wrapping_shl(width).wrapping_sub(1)
}

/// Returns a register field of 4 bits.
pub(crate) const fn register(halfword: u16, low: u32) -> u8 {
    field(halfword, low, 4) as u8
}

/// Returns a register field of 3 bits.
pub(crate) const fn low_register(halfword: u16, low: u32) -> u8 {
    field(halfword, low, 3) as u8
}

/// Returns `offset`, or its negative.
pub(crate) const fn signed_offset(add: bool, offset: u32) -> u32 {
    if add { offset } else { offset.wrapping_neg() }
}
