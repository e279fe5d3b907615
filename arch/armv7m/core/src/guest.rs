// SPDX-License-Identifier: Apache-2.0
//! The part of the guest that the backend lends while it handles one of the guest's traps.
//!
//! The guest always runs in physical Thread mode, unprivileged, on the physical PSP. When it traps, the CPU
//! pushes a frame on the guest's own stack: the *live frame*, holding r0-r3, r12, LR, PC and xPSR of the code
//! that trapped. When the backend returns to the guest, the CPU pops the frame that is live then. So an
//! exception of the guest costs no copy of the frame that interrupts it: the live frame stays where it is and
//! becomes the frame the guest's handler finds, and a second one, below the main stack, that carries the CPU
//! into the handler, becomes the live one.
//!
//! Requires of the backend: before it lends a guest, it has made sure that the whole live frame is in
//! memory the guest may read and write.

/// One guest at one of its traps.
pub trait Guest {
    /// Returns register 0 to 12, 14 (LR) or 15 (PC) of the code that trapped; 0 for any other number.
    fn register(&self, number: u8) -> u32;
    /// Changes one of those registers; any other number changes nothing.
    fn set_register(&mut self, number: u8, value: u32);
    /// Returns the xPSR of the code that trapped, as it is in the live frame.
    fn xpsr(&self) -> u32;
    /// Changes it.
    fn set_xpsr(&mut self, value: u32);
    /// Returns the live frame's eight words: r0 to r3, r12, LR, PC and xPSR.
    fn words(&self) -> [u32; 8] {
        let [r0, r1, r2, r3, r12, lr, pc] = [0, 1, 2, 3, 12, 14, 15].map(|number| self.register(number));
        [r0, r1, r2, r3, r12, lr, pc, self.xpsr()]
    }
    /// Writes a frame of eight words at `address`, if all of that is memory the guest may read and write;
    /// false, and nothing is written, if not.
    fn push(&mut self, address: u32, words: &[u32; 8]) -> bool {
        self.reaches(address, 32)
            && (0_u32..)
                .zip(words)
                .all(|(index, word)| self.store(address.wrapping_add(index << 2), *word))
    }
    /// Address of the live frame (the physical PSP).
    fn frame(&self) -> u32;
    /// Tells whether the live frame has a floating-point part (bit 4 of the physical EXC_RETURN is 0).
    fn extended(&self) -> bool;
    /// Makes the frame at `address` the live one. Requires: [`Guest::reaches`] of its whole length.
    fn set_frame(&mut self, address: u32, extended: bool);
    /// Tells whether all of these bytes are memory the guest may read and write.
    fn reaches(&self, address: u32, bytes: u32) -> bool;
    /// Reads a word of the guest's memory, as far as it may read it. The address is a multiple of 4.
    fn load(&self, address: u32) -> Option<u32>;
    /// Changes a word of the guest's memory, if the guest may write it; false if not. The address is a
    /// multiple of 4.
    fn store(&mut self, address: u32, value: u32) -> bool;
    /// Reads a halfword of the guest's code.
    fn fetch(&self, address: u32) -> Option<u16>;
    /// S`number` of the code that trapped, 0 to 31.
    fn float(&self, number: u8) -> u32;
    /// Changes it.
    fn set_float(&mut self, number: u8, value: u32);
    /// Writes floating-point registers that belong to the live frame but are not there yet (lazy
    /// stacking) into it. Called before an extended live frame is left or moved.
    fn settle_floating_point(&mut self);
    /// Prepares for the live frame to be forgotten: nothing may be written into its floating-point part any
    /// more.
    fn drop_floating_point(&mut self);
}
