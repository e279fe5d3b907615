// SPDX-License-Identifier: Apache-2.0
//! Loads and stores of floating-point registers (Arm DDI 0403E.e, A6.5 and A7.7).

use super::{Direction, FLOATS, Registers, Transfer, field, register, signed_offset};

const PC: u8 = 15;
/// S0 to S31, which D0 to D15 are made of.
const COUNT: u8 = 32;

/// VLDR, VSTR, VLDM, VSTM, VPUSH and VPOP. Requires: `first` is 0xECxx or 0xEDxx.
pub(super) fn float_transfer(first: u16, second: u16) -> Option<Transfer> {
    if field(second, 9, 3) != 0b101 {
        return None;
    }
    let direction = if field(first, 4, 1) == 0 {
        Direction::Store
    } else {
        Direction::Load
    };
    let base = register(first, 0);
    let add = field(first, 7, 1) == 1;
    let words = field(second, 0, 8);
    let bytes = u32::from(words) << 2;
    let (low, high) = (field(first, 6, 1) as u8, register(second, 12));
    let is_double = field(second, 8, 1) == 1;
    // D16 to D31 are not there.
    let first_word = match (is_double, low) {
        (true, 0) => high << 1,
        (true, _) => return None,
        (false, low) => high << 1 | low,
    };
    let of = |count: u8, offset: u32, change: Option<u32>| Transfer {
        registers: Registers::Floats(first_word, count),
        change,
        ..Transfer::of_one(direction, 4, FLOATS, base, offset)
    };
    // P, U and W.
    match (field(first, 8, 1), add, field(first, 5, 1)) {
        (1, _, 0) if base != PC || direction == Direction::Load => {
            Some(of(if is_double { 2 } else { 1 }, signed_offset(add, bytes), None))
        }
        (0, true, _) | (1, false, 1) => {
            let count = u8::try_from(words).ok()?;
            let fits = count != 0 && count <= COUNT.saturating_sub(first_word);
            // An odd number of words is of a format that no code uses any more (FLDMX).
            if base == PC || !fits || is_double && count & 1 == 1 {
                return None;
            }
            let change = (field(first, 5, 1) == 1).then_some(signed_offset(add, bytes));
            Some(of(count, if add { 0 } else { bytes.wrapping_neg() }, change))
        }
        _ => None,
    }
}
