// SPDX-License-Identifier: Apache-2.0
//! A guest at one of its traps, as the model of its processor wants it.
//!
//! The frame is in the guest's memory, where the guest or a device of it may change it at any moment, so the
//! frame is read and written a word at a time. A caller has checked before that the whole frame is the
//! guest's. Either the CPU has pushed it with the guest's own rights, or [`Guest::reaches`] checked it when
//! the model made it the live one. The frame is checked once more all the same: a frame that neither has
//! vouched for is not touched.

use crate::context::{RETURN_BASIC, RETURN_EXTENDED, Registers};
use crate::fp;
use crate::protection::Space;
use bulkhead_arch_armv7m_core::{Guest, frame_size};
use bulkhead_arch_support::physical;

/// The guest.
pub(crate) struct Live<'a> {
    registers: &'a mut Registers,
    space: &'a Space,
    /// True if the frame is there. Otherwise its registers read as zero and cannot be changed.
    has_frame: bool,
}

impl<'a> Live<'a> {
    /// Makes the guest at a trap whose frame the CPU has pushed.
    pub(crate) fn new(registers: &'a mut Registers, space: &'a Space) -> Self {
        let has_frame = space.writable(registers.frame, frame_size(false));
        Self {
            registers,
            space,
            has_frame,
        }
    }

    /// Makes the guest at a trap whose frame is known to be in the partition's RAM.
    #[inline(always)]
    pub(crate) fn on_ram(registers: &'a mut Registers, space: &'a Space) -> Self {
        Self {
            registers,
            space,
            has_frame: true,
        }
    }

    /// Returns the PC of the code that trapped.
    #[inline(always)]
    pub(crate) fn pc(&self) -> u32 {
        self.word(6)
    }

    /// Makes the guest at a trap whose frame the CPU could not push.
    pub(crate) fn without_frame(registers: &'a mut Registers, space: &'a Space) -> Self {
        Self {
            registers,
            space,
            has_frame: false,
        }
    }

    /// Settles floating point for good, because its guest is left.
    pub(crate) fn leave_floating_point(&mut self) {
        let fits = self.has_full_frame();
        fp::settle_evenly(self.registers.frame, fits);
    }

    /// Tells whether the frame has room for floating-point registers, in memory the guest may write.
    fn has_full_frame(&self) -> bool {
        self.has_frame && self.extended() && self.space.writable(self.registers.frame, frame_size(true))
    }

    /// Returns the address of S`number` in the frame, if the register is there. Otherwise it is in the
    /// hardware.
    fn float_word(&self, number: u8) -> Option<u32> {
        let fits = self.has_full_frame();
        fp::settle(self.registers.frame, fits);
        (fits && number < STACKED_FLOATS).then(|| u32::from(number) + FIRST_FLOAT)
    }

    /// Returns word `index` of the frame.
    #[inline(always)]
    fn word(&self, index: u32) -> u32 {
        if !self.has_frame {
            return 0;
        }
        // SAFETY: inside the frame, which is the guest's memory (see above), at a multiple of 4.
        unsafe { physical::read_word32(self.registers.frame.wrapping_add(index << 2) as usize) }
    }

    #[inline(always)]
    fn set_word(&mut self, index: u32, value: u32) {
        if self.has_frame {
            // SAFETY: as for reading; no Rust reference to a guest's memory exists.
            unsafe { physical::write_word32(self.registers.frame.wrapping_add(index << 2) as usize, value) }
        }
    }
}

/// Returns the offset of a register in a frame, if it is there.
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
/// The word of S0: S0 to S15 are after the basic frame in an extended frame (B1.5.7).
const FIRST_FLOAT: u32 = 8;
const STACKED_FLOATS: u8 = 16;

impl Guest for Live<'_> {
    #[inline(always)]
    fn register(&self, number: u8) -> u32 {
        match (place(number), number) {
            (Some(index), _) => self.word(index),
            (None, 4..=11) => self
                .registers
                .general
                .get(usize::from(number - 4))
                .copied()
                .unwrap_or(0),
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

    fn words(&self) -> [u32; 8] {
        if !self.has_frame {
            return [0; 8];
        }
        let at = self.registers.frame as usize;
        let word = |index: usize| {
            // SAFETY: inside the frame, which is the guest's memory (see above), at a multiple of 4.
            unsafe { physical::read_word32(at.wrapping_add(4 * index)) }
        };
        [
            word(0),
            word(1),
            word(2),
            word(3),
            word(4),
            word(5),
            word(6),
            word(7),
        ]
    }

    fn push(&mut self, address: u32, words: &[u32; 8]) -> bool {
        let allowed = address & 3 == 0 && self.space.writable(address, 32);
        if allowed {
            for (index, word) in words.iter().enumerate() {
                // SAFETY: writable memory of the guest, at a multiple of 4; no Rust reference to it exists.
                unsafe { physical::write_word32(address as usize + 4 * index, *word) }
            }
        }
        allowed
    }

    fn frame(&self) -> u32 {
        self.registers.frame
    }

    fn extended(&self) -> bool {
        self.registers.exc_return & 0x10 == 0
    }

    fn set_frame(&mut self, address: u32, extended: bool) {
        self.registers.frame = address;
        self.registers.exc_return = if extended { RETURN_EXTENDED } else { RETURN_BASIC };
        self.has_frame = true;
    }

    fn reaches(&self, address: u32, bytes: u32) -> bool {
        self.space.writable(address, bytes)
    }

    fn load(&self, address: u32) -> Option<u32> {
        let allowed = address & 3 == 0 && self.space.readable(address, 4);
        // SAFETY: readable memory of the guest, at a multiple of 4.
        allowed.then(|| unsafe { physical::read_word32(address as usize) })
    }

    fn store(&mut self, address: u32, value: u32) -> bool {
        let allowed = address & 3 == 0 && self.space.writable(address, 4);
        if allowed {
            // SAFETY: writable memory of the guest, at a multiple of 4; no Rust reference to it exists.
            unsafe { physical::write_word32(address as usize, value) }
        }
        allowed
    }

    fn fetch(&self, address: u32) -> Option<u16> {
        let word = address & !3;
        let allowed = address & 1 == 0 && self.space.executable(word, 4);
        // SAFETY: code of the guest, which it may read as well, at a multiple of 4.
        let word = allowed.then(|| unsafe { physical::read_word32(word as usize) })?;
        Some(if address & 2 == 0 {
            word as u16
        } else {
            (word >> 16) as u16
        })
    }

    fn float(&self, number: u8) -> u32 {
        match self.float_word(number) {
            Some(index) => self.word(index),
            None => fp::register(number),
        }
    }

    fn set_float(&mut self, number: u8, value: u32) {
        match self.float_word(number) {
            Some(index) => self.set_word(index, value),
            None => fp::set_register(number, value),
        }
    }

    fn settle_floating_point(&mut self) {
        let fits = self.has_full_frame();
        fp::settle(self.registers.frame, fits);
    }

    fn drop_floating_point(&mut self) {
        fp::drop_lazy();
    }
}
