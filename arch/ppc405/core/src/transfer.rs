// SPDX-License-Identifier: Apache-2.0
//! Loads and stores that no memory answers: what each asks for, and how its answer reaches the registers.

use crate::registers::Frame;

/// The way of a load or store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// A load; true if the value is sign-extended.
    Load(bool),
    /// A store of this value.
    Store(u32),
}

/// A load or store of one value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transfer {
    /// The address of the program.
    pub address: u32,
    /// Bytes: 1, 2 or 4.
    pub size: u8,
    /// Its way.
    pub direction: Direction,
    /// The register of the program.
    target: u8,
    /// True if the bytes are exchanged.
    is_reversed: bool,
    /// The register that takes the address.
    update: Option<u8>,
}

/// The facts of an opcode: bytes, store, sign extension, exchange of bytes, update.
#[derive(Clone, Copy)]
struct Form {
    size: u8,
    is_store: bool,
    is_signed: bool,
    is_reversed: bool,
    updates: bool,
}

const fn form(size: u8, is_store: bool, updates: bool) -> Form {
    Form {
        size,
        is_store,
        is_signed: false,
        is_reversed: false,
        updates,
    }
}

const fn signed(updates: bool) -> Form {
    Form {
        is_signed: true,
        ..form(2, false, updates)
    }
}

const fn reversed(size: u8, is_store: bool) -> Form {
    Form {
        is_reversed: true,
        ..form(size, is_store, false)
    }
}

/// Returns the form of an instruction with a displacement.
const fn displaced(opcode: u32) -> Option<Form> {
    Some(match opcode {
        32 | 33 => form(4, false, opcode & 1 != 0),
        34 | 35 => form(1, false, opcode & 1 != 0),
        36 | 37 => form(4, true, opcode & 1 != 0),
        38 | 39 => form(1, true, opcode & 1 != 0),
        40 | 41 => form(2, false, opcode & 1 != 0),
        42 | 43 => signed(opcode & 1 != 0),
        44 | 45 => form(2, true, opcode & 1 != 0),
        _ => return None,
    })
}

/// Returns the form of an instruction with two registers for the address.
const fn indexed(extended: u32) -> Option<Form> {
    let updates = extended & 32 != 0;
    Some(match extended {
        23 | 55 => form(4, false, updates),
        87 | 119 => form(1, false, updates),
        151 | 183 => form(4, true, updates),
        215 | 247 => form(1, true, updates),
        279 | 311 => form(2, false, updates),
        343 | 375 => signed(updates),
        407 | 439 => form(2, true, updates),
        534 => reversed(4, false),
        662 => reversed(4, true),
        790 => reversed(2, false),
        918 => reversed(2, true),
        _ => return None,
    })
}

/// Returns the load or store that a word is, with the registers of the program; `None` for any other word.
#[must_use]
pub fn decode(word: u32, frame: &Frame) -> Option<Transfer> {
    let field = |first: u32| (word.wrapping_shr(27_u32.wrapping_sub(first)) & 31) as u8;
    let (target, first, second) = (field(6), field(11), field(16));
    let (form, offset) = match word >> 26 {
        31 => (indexed(word >> 1 & 0x3FF)?, frame.register(second)),
        opcode => (displaced(opcode)?, word as i16 as u32),
    };
    let base = if form.updates {
        frame.register(first)
    } else {
        frame.base(first)
    };
    let stored = frame.register(target);
    let direction = if form.is_store {
        Direction::Store(arrange(stored, form.size, form.is_reversed))
    } else {
        Direction::Load(form.is_signed)
    };
    Some(Transfer {
        address: base.wrapping_add(offset),
        size: form.size,
        direction,
        target,
        is_reversed: form.is_reversed,
        update: form.updates.then_some(first),
    })
}

/// Cuts a value to its size, and exchanges its bytes.
const fn arrange(value: u32, size: u8, is_reversed: bool) -> u32 {
    match (size, is_reversed) {
        (1, _) => value & 0xFF,
        (2, false) => value & 0xFFFF,
        (2, true) => (value as u16).swap_bytes() as u32,
        (_, false) => value,
        (_, true) => value.swap_bytes(),
    }
}

impl Transfer {
    /// Completes the instruction with the value that was loaded, and goes to the next one.
    pub fn complete(&self, frame: &mut Frame, value: u32) {
        if let Some(register) = self.update {
            frame.set_register(register, self.address);
        }
        if let Direction::Load(is_signed) = self.direction {
            let value = arrange(value, self.size, self.is_reversed);
            let value = if is_signed { value as i16 as u32 } else { value };
            frame.set_register(self.target, value);
        }
        frame.step();
    }

    /// Tells whether it is a store.
    #[must_use]
    pub const fn is_store(&self) -> bool {
        matches!(self.direction, Direction::Store(_))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(word: u32, value: u32) -> (Transfer, Frame) {
        let mut frame = Frame::ZERO;
        frame.general[3] = 0x8182_8384;
        frame.general[4] = 0x1000;
        frame.general[5] = 0x20;
        let transfer = decode(word, &frame).expect("a load or store");
        transfer.complete(&mut frame, value);
        (transfer, frame)
    }

    #[test]
    fn loads_are_cut_extended_and_exchanged() {
        // lbz, lhz, lha, lwz r3, -4(r4); lwzux, lhbrx, lwbrx r3, r4, r5.
        for (word, loaded, result, address) in [
            (0x8864_FFFC, 0x1FF, 0xFF, 0xFFC),
            (0xA064_FFFC, 0x1_8001, 0x8001, 0xFFC),
            (0xA864_FFFC, 0x8001, 0xFFFF_8001, 0xFFC),
            (0x8064_FFFC, 0x8001, 0x8001, 0xFFC),
            (0x7C64_286E, 0x1234_5678, 0x1234_5678, 0x1020),
            (0x7C64_2E2C, 0x1234, 0x3412, 0x1020),
            (0x7C64_2C2C, 0x1234_5678, 0x7856_3412, 0x1020),
        ] {
            let (transfer, frame) = run(word, loaded);
            assert_eq!(
                (transfer.address, frame.general[3]),
                (address, result),
                "{word:#x}"
            );
            let base = if word == 0x7C64_286E { 0x1020 } else { 0x1000 };
            assert_eq!((frame.general[4], frame.pc), (base, 4));
        }
    }

    #[test]
    fn stores_are_cut_and_exchanged() {
        // stb, sth, stwu r3, 8(r4); sthbrx, stwbrx r3, r4, r5.
        for (word, stored, size) in [
            (0x9864_0008, 0x84, 1),
            (0xB064_0008, 0x8384, 2),
            (0x9464_0008, 0x8182_8384, 4),
            (0x7C64_2F2C, 0x8483, 2),
            (0x7C64_2D2C, 0x8483_8281, 4),
        ] {
            let (transfer, frame) = run(word, 0);
            assert_eq!(
                (transfer.direction, transfer.size),
                (Direction::Store(stored), size)
            );
            assert!(transfer.is_store());
            assert_eq!(frame.general[3], 0x8182_8384);
        }
        assert_eq!(decode(0x7C64_2A14, &Frame::ZERO), None, "add");
        assert_eq!(decode(0xB864_0000, &Frame::ZERO), None, "lmw");
    }
}
