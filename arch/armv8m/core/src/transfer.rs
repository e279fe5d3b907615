// SPDX-License-Identifier: Apache-2.0
//! A load or store that a virtual device answers, decoded at the PC of the code that trapped.

use bulkhead_arch_armv7m_core::decode::{self, Direction};
use bulkhead_arch_armv7m_core::{Guest, GuestAccess, fetch_transfer, frame_size, step};

/// A load or store of one general register.
#[derive(Clone, Copy, Debug)]
pub struct Transfer {
    decoded: decode::Transfer,
    register: u8,
    length: u32,
    /// The access.
    pub access: GuestAccess,
}

/// xPSR: the frame has a word that makes its address a multiple of 8 (B3.19).
const PADDED: u32 = 1 << 9;
const SP: u8 = 13;
const PC: u8 = 15;

/// Returns a register as an operand of the instruction that trapped.
fn operand(guest: &impl Guest, number: u8) -> u32 {
    match number {
        SP => {
            let padding = if guest.xpsr() & PADDED != 0 { 4 } else { 0 };
            guest
                .frame()
                .wrapping_add(frame_size(guest.extended()))
                .wrapping_add(padding)
        }
        // An instruction reads a PC that is 4 ahead.
        PC => guest.register(PC).wrapping_add(4),
        number => guest.register(number),
    }
}

impl Transfer {
    /// Decodes the instruction at the PC. Returns `None` if it is no load or store of one general register,
    /// or if it changes the stack pointer or the PC.
    #[must_use]
    pub fn at_pc(guest: &impl Guest) -> Option<Self> {
        let (decoded, length) = fetch_transfer(guest, guest.register(PC))?;
        let register = decoded.single()?;
        let is_general = |number: u8| number < PC && number != SP;
        if !is_general(register) || decoded.change.is_some() && !is_general(decoded.base) {
            return None;
        }
        let store = (decoded.direction == Direction::Store).then(|| operand(guest, register));
        Some(Self {
            decoded,
            register,
            length,
            access: GuestAccess {
                address: decoded.address(|number| operand(guest, number)),
                size: decoded.size,
                store,
            },
        })
    }

    /// Ends the instruction; `value` is what it loads.
    pub fn complete(&self, guest: &mut impl Guest, value: u32) {
        let written_back = self.decoded.written_back(|number| operand(guest, number));
        step(guest, self.length);
        if let Some((register, value)) = written_back {
            guest.set_register(register, value);
        }
        if self.decoded.direction == Direction::Load {
            guest.set_register(self.register, self.decoded.extend(value));
        }
        if let Some(register) = self.decoded.status {
            // No other code stores there, so an exclusive store has always been done.
            guest.set_register(register, 0);
        }
    }
}
