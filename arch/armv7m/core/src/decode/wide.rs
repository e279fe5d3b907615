// SPDX-License-Identifier: Apache-2.0
//! Loads and stores of 32 bits (Arm DDI 0403E.e, A5.3.5 to A5.3.10).

use super::float::float_transfer;
use super::{Direction, Registers, Transfer, field, register, signed_offset};

const PC: u8 = 15;

/// Decodes the load or store that this instruction is.
#[must_use]
pub fn wide_transfer(first: u16, second: u16) -> Option<Transfer> {
    match (field(first, 9, 7), field(first, 6, 1)) {
        (0b111_0100, 0) => multiple(first, second),
        (0b111_0100, _) => double_or_exclusive(first, second),
        (0b111_1100, _) => wide_single(first, second),
        (0b111_0110, _) => float_transfer(first, second),
        _ => None,
    }
}

fn direction(first: u16) -> Direction {
    if field(first, 4, 1) == 0 {
        Direction::Store
    } else {
        Direction::Load
    }
}

/// Decodes LDM, LDMDB, STM, STMDB.
fn multiple(first: u16, second: u16) -> Option<Transfer> {
    let base = register(first, 0);
    let bytes = second.count_ones() << 2;
    let (offset, change) = match field(first, 7, 2) {
        0b01 => (0, bytes),
        0b10 => (bytes.wrapping_neg(), bytes.wrapping_neg()),
        _ => return None,
    };
    let write_back = field(first, 5, 1) == 1;
    // SP is never in the list, PC never in one that is stored, and the PC is no base.
    let direction = direction(first);
    let forbidden = 1 << 13 | if direction == Direction::Store { 1 << 15 } else { 0 };
    if base == PC || second == 0 || second & forbidden != 0 {
        return None;
    }
    Some(Transfer {
        registers: Registers::List(second),
        change: write_back.then_some(change),
        ..Transfer::of_one(direction, 4, 0, base, offset)
    })
}

/// Decodes LDRD, STRD and the exclusive ones.
fn double_or_exclusive(first: u16, second: u16) -> Option<Transfer> {
    let base = register(first, 0);
    let (pre, add, write_back) = (
        field(first, 8, 1) == 1,
        field(first, 7, 1) == 1,
        field(first, 5, 1) == 1,
    );
    if !pre && !write_back {
        return exclusive(first, second, add);
    }
    let offset = signed_offset(add, u32::from(field(second, 0, 8)) << 2);
    let (rt, rt2) = (register(second, 12), register(second, 8));
    if base == PC && (write_back || direction(first) == Direction::Store) || rt == PC || rt2 == PC {
        return None;
    }
    Some(Transfer {
        registers: Registers::Two(rt, rt2),
        change: write_back.then_some(offset),
        ..Transfer::of_one(direction(first), 4, rt, base, if pre { offset } else { 0 })
    })
}

/// Decodes LDREX, STREX (with an offset), and their forms for bytes and halfwords.
fn exclusive(first: u16, second: u16, narrow: bool) -> Option<Transfer> {
    let direction = direction(first);
    let base = register(first, 0);
    // Fields that are not used are ones.
    let load = direction == Direction::Load;
    let unused = (narrow || load) && register(second, 8) != 15 || narrow && load && register(second, 0) != 15;
    if unused {
        return None;
    }
    let (size, offset, status) = if narrow {
        let size = match field(second, 4, 4) {
            0b0100 => 1,
            0b0101 => 2,
            // Table branches, and doublewords, which this class does not have.
            _ => return None,
        };
        (size, 0, register(second, 0))
    } else {
        (4, u32::from(field(second, 0, 8)) << 2, register(second, 8))
    };
    let rt = register(second, 12);
    if base == PC || rt == PC {
        return None;
    }
    Some(Transfer {
        status: (!load).then_some(status),
        ..Transfer::of_one(direction, size, rt, base, offset)
    })
}

/// Decodes a load or store of one register: byte, halfword or word. Requires: `first` is 0xF8xx or 0xF9xx.
#[inline(always)]
pub(crate) fn wide_single(first: u16, second: u16) -> Option<Transfer> {
    let direction = direction(first);
    let signed = field(first, 8, 1) == 1;
    let size = match field(first, 5, 2) {
        0b00 => 1,
        0b01 => 2,
        0b10 if !signed => 4,
        _ => return None,
    };
    let rt = register(second, 12);
    let base = register(first, 0);
    let store = direction == Direction::Store;
    // Loads of a byte or halfword into the PC are hints.
    if store && (signed || rt == PC || base == PC) || rt == PC && size != 4 {
        return None;
    }
    let imm12 = u32::from(field(second, 0, 12));
    let simple = |offset| Transfer {
        signed,
        ..Transfer::of_one(direction, size, rt, base, offset)
    };
    let long = field(first, 7, 1) == 1;
    if base == PC {
        return Some(simple(signed_offset(long, imm12)));
    }
    if long {
        return Some(simple(imm12));
    }
    if field(second, 6, 6) == 0 {
        let index = Some((register(second, 0), field(second, 4, 2) as u8));
        return Some(Transfer { index, ..simple(0) });
    }
    if field(second, 11, 1) == 0 {
        return None;
    }
    let (pre, add, write_back) = (
        field(second, 10, 1),
        field(second, 9, 1) == 1,
        field(second, 8, 1),
    );
    let offset = signed_offset(add, u32::from(field(second, 0, 8)));
    match (pre, write_back) {
        (1, 0) => Some(Transfer {
            unprivileged: add,
            ..simple(offset)
        }),
        (1, _) => Some(Transfer {
            change: Some(offset),
            ..simple(offset)
        }),
        (_, 1) => Some(Transfer {
            change: Some(offset),
            ..simple(0)
        }),
        _ => None,
    }
}
