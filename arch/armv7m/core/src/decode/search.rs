// SPDX-License-Identifier: Apache-2.0
//! Finding the store that an imprecise bus fault comes from.
//!
//! A CPU with a store buffer reports a refused store when the PC is a few instructions further and says
//! neither which one it was nor where it went (Arm DDI 0403E.e, B1.5.14, IMPRECISERR). The search goes
//! backwards from the PC and looks for a store with three properties. Straight-line code leads from the store
//! exactly to the PC. The address of the store, computed from the registers as they are now, is one that the
//! caller believes a late fault of. No instruction in between has changed these registers. Instructions have
//! two lengths, so code read backwards is ambiguous. If two ways of reading disagree, the search does not
//! guess. After a halfword that cannot be the first of two an instruction begins, with anything before it;
//! that is where the reading is anchored.

use super::{Direction, FLOATS, Transfer, field, is_wide, narrow_transfer, register, wide_transfer};

/// Halfwords looked at before the PC: the store buffer of a Cortex-M7 drains within fewer instructions.
const REACH: u32 = 16;

/// The guest's code and registers at the fault.
pub trait Code {
    /// Reads a halfword of code.
    fn fetch(&self, address: u32) -> Option<u16>;
    /// Reads a general register, the stack pointer included, at the fault.
    fn register(&self, number: u8) -> u32;
}

/// The result of the search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// This store, at this address, is the only one it can have been.
    Store {
        /// Where the instruction is.
        at: u32,
        /// The store.
        transfer: Transfer,
        /// Where it stores to.
        address: u32,
    },
    /// More than one could have been it.
    Ambiguous,
    /// None could have been it.
    Nothing,
}

/// Looks for the store before `pc` to an address that `refuses`.
pub fn search_back(code: &impl Code, pc: u32, refuses: impl Fn(u32) -> bool) -> Found {
    let mut found = Found::Nothing;
    for distance in 1..=REACH {
        let at = pc.wrapping_sub(distance << 1);
        let (Some((transfer, length)), Some(is_certain)) = (store_at(code, at), begins(code, at)) else {
            continue;
        };
        let Some(changed) = straight_to(code, at.wrapping_add(length), pc) else {
            continue;
        };
        let used = registers_used(&transfer);
        if used & changed != 0 || transfer.base == 15 {
            continue;
        }
        // The base register has its new value by now.
        let undone = transfer.change.unwrap_or(0);
        let value = |number| {
            let now = code.register(number);
            if number == transfer.base {
                now.wrapping_sub(undone)
            } else {
                now
            }
        };
        let address = transfer.address(value);
        if !refuses(address) {
            continue;
        }
        if found != Found::Nothing || !is_certain {
            return Found::Ambiguous;
        }
        found = Found::Store {
            at,
            transfer,
            address,
        };
    }
    found
}

/// Tells whether an instruction begins at `at`: certainly, or perhaps; `None` if `at` is its second half.
fn begins(code: &impl Code, at: u32) -> Option<bool> {
    let may_be_first = |distance: u32| code.fetch(at.wrapping_sub(distance)).is_some_and(is_wide);
    match (may_be_first(2), may_be_first(4)) {
        (false, _) => Some(true),
        // The halfword before begins an instruction itself, because the one before that cannot.
        (true, false) => None,
        (true, true) => Some(false),
    }
}

fn store_at(code: &impl Code, at: u32) -> Option<(Transfer, u32)> {
    let first = code.fetch(at)?;
    let (transfer, length) = if is_wide(first) {
        (wide_transfer(first, code.fetch(at.wrapping_add(2))?)?, 4)
    } else {
        (narrow_transfer(first)?, 2)
    };
    (transfer.direction == Direction::Store).then_some((transfer, length))
}

/// Returns the registers that the code from `from` to `to` may change, if it leads there without a branch.
fn straight_to(code: &impl Code, from: u32, to: u32) -> Option<u32> {
    let mut at = from;
    let mut changed = 0;
    // Each step is at least a halfword.
    for _ in 0..=REACH {
        if at == to {
            return Some(changed);
        }
        let first = code.fetch(at)?;
        let (more, length) = if is_wide(first) {
            (wide_changes(first, code.fetch(at.wrapping_add(2))?)?, 4)
        } else {
            (narrow_changes(first)?, 2)
        };
        changed |= more;
        at = at.wrapping_add(length);
        if at.wrapping_sub(from) > to.wrapping_sub(from) {
            return None;
        }
    }
    None
}

fn registers_used(transfer: &Transfer) -> u32 {
    let stored = transfer.steps(0).fold(0, |set, step| set | bit(step.register));
    let index = transfer.index.map_or(0, |(register, _)| bit(register));
    stored | index | bit(transfer.base)
}

/// Returns the bit of a register. The registers of the floating-point unit share one bit.
const fn bit(register: u8) -> u32 {
    if register >= FLOATS {
        1_u32.wrapping_shl(FLOATS as u32)
    } else {
        1_u32.wrapping_shl(register as u32)
    }
}

fn transfer_changes(transfer: &Transfer) -> Option<u32> {
    let base = if transfer.change.is_some() {
        bit(transfer.base)
    } else {
        0
    };
    let status = transfer.status.map_or(0, bit);
    let loaded = match transfer.direction {
        Direction::Load => transfer.steps(0).fold(0, |set, step| set | bit(step.register)),
        Direction::Store => 0,
    };
    let all = base | status | loaded;
    (all & bit(15) == 0).then_some(all)
}

/// Returns the registers that a 16-bit instruction may change, `None` for one that may branch.
fn narrow_changes(instruction: u16) -> Option<u32> {
    if let Some(transfer) = narrow_transfer(instruction) {
        return transfer_changes(&transfer);
    }
    let low = bit(field(instruction, 0, 3) as u8);
    match field(instruction, 10, 6) {
        // Shifts, additions, moves of immediates (A5.2.1): three-bit destination, or the one in bits [10:8].
        0b00_0000..=0b00_0111 => Some(low),
        0b00_1000..=0b00_1111 => Some(bit(field(instruction, 8, 3) as u8)),
        // Data processing (A5.2.2).
        0b01_0000 => Some(low),
        // Special data processing and branches by register (A5.2.3).
        0b01_0001 => {
            let destination = field(instruction, 0, 3) as u8 | (field(instruction, 7, 1) as u8) << 3;
            (field(instruction, 8, 2) != 0b11 && destination != 15).then_some(bit(destination))
        }
        // ADR, and the stack pointer plus an immediate.
        0b10_1000..=0b10_1011 => Some(bit(field(instruction, 8, 3) as u8)),
        // Miscellaneous (A5.2.5), but for compare and branch.
        0b10_1100..=0b10_1111 if field(instruction, 8, 1) == 0 => Some(low | bit(13)),
        0b10_1111 => Some(0),
        _ => None,
    }
}

/// Returns the registers that a 32-bit instruction may change, `None` for one that may branch.
fn wide_changes(first: u16, second: u16) -> Option<u32> {
    if let Some(transfer) = wide_transfer(first, second) {
        return transfer_changes(&transfer);
    }
    match field(first, 11, 2) {
        // Table branches are among the exclusive ones; the rest is data processing and coprocessors.
        0b01 if field(first, 9, 2) == 0 => None,
        0b10 if field(second, 15, 1) == 1 => {
            // Barriers and MSR change no general register; everything else here may branch.
            (field(first, 4, 12) == 0xF3B).then_some(0)
        }
        // Data processing with an immediate: part of it is where others have a second destination.
        0b10 => Some(bit(register(second, 8)) & !bit(15)),
        // Any field that can name a destination counts as one; a coprocessor's instruction may change
        // registers of the floating-point unit.
        _ => {
            let floats = if field(first, 10, 1) == 1 { bit(FLOATS) } else { 0 };
            Some((bit(register(second, 8)) | bit(register(second, 12))) & !bit(15) | floats)
        }
    }
}
