// SPDX-License-Identifier: Apache-2.0
//! Loads and stores of general registers that a syndrome does not describe, decoded from the instruction
//! (Arm DDI 0487 C4.1.94): A64 forms with post- and pre-index, and pairs.
//!
//! The word that is decoded may be another one than the word that trapped, because another vCPU can write the
//! program meanwhile. So [`Transfer::explains`] compares the decoded form with the fault.

use crate::data::{Load, stored};

/// The number of the stack pointer as a base. As a register of data, it is the zero register.
pub const STACK_POINTER: u8 = 31;
/// Bits of an address that are compared. A tag may be above them.
const ADDRESS: u64 = (1 << 56) - 1;

/// A load or store of one or two general registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transfer {
    /// The registers, in the order of their addresses. The second one means nothing without a pair.
    pub registers: [u8; 2],
    /// The number of registers: 1 or 2.
    pub count: u8,
    /// Bytes of each register: 1, 2, 4 or 8.
    pub size: u8,
    /// A store.
    pub write: bool,
    /// A load extends the sign.
    pub sign_extend: bool,
    /// The registers are 64 bits wide.
    pub wide: bool,
    /// The register that holds the address, or [`STACK_POINTER`].
    pub base: u8,
    /// The distance of the first byte from the base.
    pub offset: i64,
    /// The distance by which the base moves in the end, if the form writes the base.
    pub write_back: Option<i64>,
}

impl Transfer {
    /// Decodes an instruction. Returns `None` if the instruction is of another form, or if the architecture
    /// leaves its effect open (a base that is loaded too, one register for both halves of a pair).
    #[must_use]
    pub const fn decode(instruction: u32) -> Option<Self> {
        // The fixed bits of both groups, with V = 0: no vector register.
        let decoded = match instruction >> 24 & 0x3F {
            0b11_1000 => single(instruction),
            0b10_1000 | 0b10_1001 => pair(instruction),
            _ => None,
        };
        match decoded {
            Some(transfer) if transfer.is_defined() => Some(transfer),
            _ => None,
        }
    }

    /// Tells whether an access of this form with this base faults at `address` in this direction.
    #[must_use]
    pub const fn explains(&self, base: u64, address: u64, write: bool) -> bool {
        let start = base.wrapping_add_signed(self.offset);
        (start ^ address) & ADDRESS == 0 && self.write == write
    }

    /// Returns the value that the base has in the end, if the form writes the base.
    #[must_use]
    pub const fn base_after(&self, base: u64) -> Option<u64> {
        match self.write_back {
            Some(distance) => Some(base.wrapping_add_signed(distance)),
            None => None,
        }
    }

    /// Returns the number of bytes of all registers.
    #[must_use]
    pub const fn bytes(&self) -> u64 {
        self.count as u64 * self.size as u64
    }

    /// Tells whether the architecture says what the instruction does (C6.2, "CONSTRAINED UNPREDICTABLE").
    const fn is_defined(&self) -> bool {
        let [first, second] = self.registers;
        let is_pair = self.count == 2;
        let moves_itself = self.write_back.is_some()
            && self.base != STACK_POINTER
            && (first == self.base || is_pair && second == self.base);
        let loads_twice = is_pair && !self.write && first == second;
        !moves_itself && !loads_twice
    }
}

/// Decodes "load/store register (immediate)", post- and pre-indexed.
const fn single(instruction: u32) -> Option<Transfer> {
    if bits(instruction, 21, 1) != 0 {
        return None;
    }
    let distance = signed(bits(instruction, 12, 9), 9);
    let offset = match bits(instruction, 10, 2) {
        0b01 => 0,
        0b11 => distance,
        _ => return None,
    };
    let size = bits(instruction, 30, 2);
    let (write, sign_extend, wide) = match (bits(instruction, 22, 2), size) {
        (0b00, _) => (true, false, size == 3),
        (0b01, _) => (false, false, size == 3),
        (0b10, 0..=2) => (false, true, true),
        (0b11, 0..=1) => (false, true, false),
        _ => return None,
    };
    Some(Transfer {
        registers: [register(instruction, 0), 0],
        count: 1,
        size: 1 << size,
        write,
        sign_extend,
        wide,
        base: register(instruction, 5),
        offset,
        write_back: Some(distance),
    })
}

/// Decodes "load/store register pair", and "no-allocate pair".
const fn pair(instruction: u32) -> Option<Transfer> {
    const NO_ALLOCATE: u32 = 0b00;
    let index = bits(instruction, 23, 2);
    let write = bits(instruction, 22, 1) == 0;
    let (size, sign_extend) = match bits(instruction, 30, 2) {
        0b00 => (4, false),
        0b01 if !write && index != NO_ALLOCATE => (4, true),
        0b10 => (8, false),
        _ => return None,
    };
    let distance = signed(bits(instruction, 15, 7), 7) * size as i64;
    let (offset, write_back) = match index {
        0b01 => (0, Some(distance)),
        0b11 => (distance, Some(distance)),
        _ => (distance, None),
    };
    Some(Transfer {
        registers: [register(instruction, 0), register(instruction, 10)],
        count: 2,
        size,
        write,
        sign_extend,
        wide: size == 8 || sign_extend,
        base: register(instruction, 5),
        offset,
        write_back,
    })
}

const fn bits(instruction: u32, low: u32, count: u32) -> u32 {
    instruction >> low & ((1 << count) - 1)
}

const fn register(instruction: u32, low: u32) -> u8 {
    bits(instruction, low, 5) as u8
}

/// Returns the two's complement number in the lowest `count` bits.
const fn signed(number: u32, count: u32) -> i64 {
    let shift = 64 - count;
    (((number as u64) << shift) as i64) >> shift
}

/// A transfer under way: each register is an access of its own. Nothing reaches the vCPU's registers before
/// all accesses are done, so that a fault of the second one changes no register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    transfer: Transfer,
    base: u64,
    big_endian: bool,
    answers: [u64; 2],
    done: u8,
}

/// The next access of a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// The distance from the first byte of the transfer.
    pub distance: u64,
    /// The register.
    pub register: u8,
}

impl Progress {
    /// Returns a transfer with nothing done, with the value of its base and the order of bytes.
    #[must_use]
    pub const fn new(transfer: Transfer, base: u64, big_endian: bool) -> Self {
        Self {
            transfer,
            base,
            big_endian,
            answers: [0; 2],
            done: 0,
        }
    }

    /// Returns the form.
    #[must_use]
    pub const fn transfer(&self) -> &Transfer {
        &self.transfer
    }

    /// Tells whether a part of the accesses is done.
    #[must_use]
    pub const fn is_begun(&self) -> bool {
        self.done != 0
    }

    /// Returns the next access. Returns `None` if all are done.
    #[must_use]
    pub fn next(&self) -> Option<Step> {
        let register = *self.transfer.registers.get(usize::from(self.done))?;
        (self.done < self.transfer.count).then_some(Step {
            distance: u64::from(self.done) * u64::from(self.transfer.size),
            register,
        })
    }

    /// Returns the value that a store of this content of the register has for the device.
    #[must_use]
    pub fn stored(&self, register: u64) -> u64 {
        stored(register, self.transfer.size, self.big_endian)
    }

    /// Notes the answer to the next access. The answer to a store means nothing.
    pub fn answered(&mut self, value: u64) {
        if let Some(answer) = self.answers.get_mut(usize::from(self.done)) {
            *answer = value;
        }
        self.done += 1;
    }

    /// Returns the registers that change in the end and their values, except for the base.
    pub fn loaded(&self) -> impl Iterator<Item = (u8, u64)> {
        let count = if self.transfer.write {
            0
        } else {
            usize::from(self.transfer.count)
        };
        let Transfer {
            size,
            sign_extend,
            wide,
            ..
        } = self.transfer;
        let big_endian = self.big_endian;
        let pairs = self.transfer.registers.into_iter().zip(self.answers);
        pairs.take(count).map(move |(register, answer)| {
            let load = Load {
                register,
                size,
                sign_extend,
                wide,
                big_endian,
            };
            (register, load.result(answer))
        })
    }

    /// Returns the base and the value that the base has in the end, if the form writes the base.
    #[must_use]
    pub fn moved_base(&self) -> Option<(u8, u64)> {
        Some((self.transfer.base, self.transfer.base_after(self.base)?))
    }
}
