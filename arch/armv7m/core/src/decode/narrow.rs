// SPDX-License-Identifier: Apache-2.0
//! Loads and stores of 16 bits (Arm DDI 0403E.e, A5.2.4 and A5.2.5).

use super::{Direction, Registers, Transfer, field, low_register};

const SP: u8 = 13;
const LR: u32 = 14;
const PC: u32 = 15;

/// Decodes the load or store that this instruction is.
#[must_use]
pub fn narrow_transfer(instruction: u16) -> Option<Transfer> {
    narrow_single(instruction).or_else(|| {
        let direction = direction(instruction);
        match field(instruction, 11, 5) {
            0b11000 | 0b11001 => multiple(direction, low_register(instruction, 8), field(instruction, 0, 8)),
            0b10110 | 0b10111 => stack(instruction),
            _ => None,
        }
    })
}

const fn direction(instruction: u16) -> Direction {
    if field(instruction, 11, 1) == 0 {
        Direction::Store
    } else {
        Direction::Load
    }
}

/// Decodes a load or store of one register, other than PUSH and POP.
#[inline(always)]
pub(crate) fn narrow_single(instruction: u16) -> Option<Transfer> {
    let rt = low_register(instruction, 0);
    let rn = low_register(instruction, 3);
    let wide_rt = low_register(instruction, 8);
    let imm5 = u32::from(field(instruction, 6, 5));
    let imm8 = u32::from(field(instruction, 0, 8));
    let one = Transfer::of_one;
    let direction = direction(instruction);
    Some(match field(instruction, 11, 5) {
        0b01001 => one(Direction::Load, 4, wide_rt, 15, imm8 << 2),
        0b01010 | 0b01011 => register_offset(instruction),
        0b01100 | 0b01101 => one(direction, 4, rt, rn, imm5 << 2),
        0b01110 | 0b01111 => one(direction, 1, rt, rn, imm5),
        0b10000 | 0b10001 => one(direction, 2, rt, rn, imm5 << 1),
        0b10010 | 0b10011 => one(direction, 4, wide_rt, SP, imm8 << 2),
        _ => return None,
    })
}

#[inline(always)]
fn register_offset(instruction: u16) -> Transfer {
    let (direction, size, signed) = match field(instruction, 9, 3) {
        0b000 => (Direction::Store, 4, false),
        0b001 => (Direction::Store, 2, false),
        0b010 => (Direction::Store, 1, false),
        0b011 => (Direction::Load, 1, true),
        0b100 => (Direction::Load, 4, false),
        0b101 => (Direction::Load, 2, false),
        0b110 => (Direction::Load, 1, false),
        _ => (Direction::Load, 2, true),
    };
    let base = low_register(instruction, 3);
    Transfer {
        signed,
        index: Some((low_register(instruction, 6), 0)),
        ..Transfer::of_one(direction, size, low_register(instruction, 0), base, 0)
    }
}

/// Decodes LDM and STM: the base register is changed unless it is loaded (A7.7.41).
fn multiple(direction: Direction, base: u8, list: u16) -> Option<Transfer> {
    let loaded = direction == Direction::Load && list & 1_u16.wrapping_shl(u32::from(base)) != 0;
    let change = (!loaded).then_some(list.count_ones() << 2);
    (list != 0).then_some(Transfer {
        registers: Registers::List(list),
        change,
        ..Transfer::of_one(direction, 4, 0, base, 0)
    })
}

/// Decodes PUSH and POP.
fn stack(instruction: u16) -> Option<Transfer> {
    let list = field(instruction, 0, 8);
    let more = field(instruction, 8, 1);
    let (direction, list) = match field(instruction, 9, 7) {
        0b101_1010 => (Direction::Store, list | more << LR),
        0b101_1110 => (Direction::Load, list | more << PC),
        _ => return None,
    };
    let bytes = list.count_ones() << 2;
    let (offset, change) = match direction {
        Direction::Store => (bytes.wrapping_neg(), bytes.wrapping_neg()),
        Direction::Load => (0, bytes),
    };
    (list != 0).then_some(Transfer {
        registers: Registers::List(list),
        change: Some(change),
        ..Transfer::of_one(direction, 4, 0, SP, offset)
    })
}
