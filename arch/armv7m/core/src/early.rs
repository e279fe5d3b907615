// SPDX-License-Identifier: Apache-2.0
//! A handler of a line that starts before the hypervisor has time for its guest.
//!
//! While a guest sleeps, the backend asks once how the handler of any of its lines would be entered
//! ([`VirtualCore::line_entry`]). When a line interrupts, the backend enters the handler by this description
//! and does not touch the virtual CPU. Later it tells the virtual CPU ([`VirtualCore::line_entered`]), which
//! is then as after [`VirtualCore::deliver`] of that line.

use crate::exception::{ExcReturn, Exception, Stack, Target, frame_size};
use crate::guest::Guest;
use crate::processor::VirtualCore;
use crate::sequence::{FLAGS, PADDED};

/// The way into the handler of any line, from the state in which the guest sleeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LineEntry {
    /// The address of the frame that leads into the handler.
    pub frame: u32,
    /// The words of this frame. The PC and the bit xPSR.T come from the vector and are 0.
    pub words: [u32; 8],
    /// The address of the vector table.
    pub vectors: u32,
}

impl VirtualCore {
    /// Returns how the handler of a line is entered, if the guest takes every line that it has enabled: a
    /// thread runs, and nothing is masked or waits. A frame with floating-point registers, a protection unit
    /// that is on, and changes that the backend has not heard of need the usual way.
    #[must_use]
    pub fn line_entry(&self, guest: &impl Guest) -> Option<LineEntry> {
        let is_plain = self.is_open() && !self.has_changed() && !self.protected() && !self.events_on_pend();
        if !is_plain || guest.extended() {
            return None;
        }
        let stack = self.stack();
        let mut words = guest.words();
        let [.., lr, pc, xpsr] = &mut words;
        let main = match stack {
            Stack::Main => guest.frame(),
            Stack::Process => self.main_sp,
        };
        let target = Target {
            handler: false,
            stack,
        };
        *lr = ExcReturn::new(target, false).0;
        *pc = 0;
        *xpsr = *xpsr & FLAGS | if main & 4 != 0 { PADDED } else { 0 };
        Some(LineEntry {
            frame: (main & !7).wrapping_sub(frame_size(false)),
            words,
            vectors: self.vector_table,
        })
    }

    /// Notes that the handler of `line` has been entered as [`VirtualCore::line_entry`] has described.
    /// `guest` still has the frame of the thread.
    pub fn line_entered(&mut self, guest: &impl Guest, line: u8) {
        self.set_banked(self.stack(), guest.frame());
        let exception = Exception::of_line(line);
        self.activate(exception);
        self.event = true;
        self.ipsr = u16::from(exception.0);
        self.process_stack = false;
    }
}
