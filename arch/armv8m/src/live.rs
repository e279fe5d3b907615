// SPDX-License-Identifier: Apache-2.0
//! A partition at one of its traps: its registers, its frame and its memory.
//!
//! The frame is in the partition's memory, where a device of the partition may change it at any moment, so
//! the frame is read and written a word at a time. It is the partition's memory as a whole, or it is not
//! touched.

use crate::context::{BASIC, Registers};
use crate::protection::Space;
use bulkhead_arch_armv7m_core::{Guest, frame_size};
use bulkhead_arch_support::physical;

/// The partition.
pub(crate) struct Live<'a> {
    registers: &'a mut Registers,
    space: &'a Space,
    /// True if the frame is there. Otherwise its registers read as zero and cannot be changed.
    has_frame: bool,
}

impl<'a> Live<'a> {
    pub(crate) fn new(registers: &'a mut Registers, space: &'a Space) -> Self {
        let size = frame_size(registers.exc_return & BASIC == 0);
        let has_frame = registers.frame & 3 == 0 && space.writable(registers.frame, size);
        Self {
            registers,
            space,
            has_frame,
        }
    }

    /// Tells whether the whole frame is the partition's memory.
    pub(crate) const fn has_frame(&self) -> bool {
        self.has_frame
    }

    /// Returns word `index` of the frame.
    fn word(&self, index: u32) -> u32 {
        if !self.has_frame {
            return 0;
        }
        // SAFETY: inside the frame, which is the partition's memory (see above), at a multiple of 4.
        unsafe { physical::read_word32(self.registers.frame.wrapping_add(index << 2) as usize) }
    }

    fn set_word(&mut self, index: u32, value: u32) {
        if self.has_frame {
            // SAFETY: as for reading; no Rust reference to a partition's memory exists.
            unsafe { physical::write_word32(self.registers.frame.wrapping_add(index << 2) as usize, value) }
        }
    }
}

/// Returns the place of a register in a frame, if it is there (B3.19).
const fn place(number: u8) -> Option<u32> {
    match number {
        0..=3 => Some(number as u32),
        12 => Some(4),
        14 => Some(5),
        15 => Some(6),
        _ => None,
    }
}

const STATE: u32 = 7;

impl Guest for Live<'_> {
    fn register(&self, number: u8) -> u32 {
        match (place(number), number) {
            (Some(index), _) => self.word(index),
            (None, 4..=11) => {
                let general = self.registers.general.get(usize::from(number - 4));
                general.copied().unwrap_or(0)
            }
            _ => 0,
        }
    }

    fn set_register(&mut self, number: u8, value: u32) {
        match (place(number), number) {
            (Some(index), _) => self.set_word(index, value),
            (None, 4..=11) => {
                if let Some(register) = self.registers.general.get_mut(usize::from(number - 4)) {
                    *register = value;
                }
            }
            _ => {}
        }
    }

    fn xpsr(&self) -> u32 {
        self.word(STATE)
    }

    fn set_xpsr(&mut self, value: u32) {
        self.set_word(STATE, value);
    }

    fn frame(&self) -> u32 {
        self.registers.frame
    }

    fn extended(&self) -> bool {
        self.registers.exc_return & BASIC == 0
    }

    fn set_frame(&mut self, address: u32, _extended: bool) {
        self.registers.frame = address;
    }

    fn reaches(&self, address: u32, bytes: u32) -> bool {
        self.space.writable(address, bytes)
    }

    fn load(&self, address: u32) -> Option<u32> {
        let allowed = address & 3 == 0 && self.space.readable(address, 4);
        // SAFETY: readable memory of the partition, at a multiple of 4.
        allowed.then(|| unsafe { physical::read_word32(address as usize) })
    }

    fn store(&mut self, address: u32, value: u32) -> bool {
        let allowed = address & 3 == 0 && self.space.writable(address, 4);
        if allowed {
            // SAFETY: writable memory of the partition, at a multiple of 4; no Rust reference to it exists.
            unsafe { physical::write_word32(address as usize, value) }
        }
        allowed
    }

    fn fetch(&self, address: u32) -> Option<u16> {
        let word = self.load(address & !3)?;
        Some(if address & 2 == 0 {
            word as u16
        } else {
            (word >> 16) as u16
        })
    }

    /// Returns nothing: the registers of floating point are never operands here.
    fn float(&self, _number: u8) -> u32 {
        0
    }

    fn set_float(&mut self, _number: u8, _value: u32) {}

    fn settle_floating_point(&mut self) {}

    fn drop_floating_point(&mut self) {}
}
