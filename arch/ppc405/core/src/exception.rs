// SPDX-License-Identifier: Apache-2.0
//! Interrupts of the guest: how each is taken, and which one is taken next (User's Manual, chapter 5).

use crate::registers::{Cpu, Frame, esr, msr};

/// Offsets of the vectors (table 5-1).
pub mod vector {
    /// Critical input.
    pub const CRITICAL: u32 = 0x100;
    /// Machine check.
    pub const MACHINE_CHECK: u32 = 0x200;
    /// Data storage.
    pub const DATA_STORAGE: u32 = 0x300;
    /// Instruction storage.
    pub const INSTRUCTION_STORAGE: u32 = 0x400;
    /// External input.
    pub const EXTERNAL: u32 = 0x500;
    /// Alignment.
    pub const ALIGNMENT: u32 = 0x600;
    /// Program.
    pub const PROGRAM: u32 = 0x700;
    /// System call.
    pub const SYSTEM_CALL: u32 = 0xC00;
    /// Programmable interval timer.
    pub const PROGRAMMABLE_TIMER: u32 = 0x1000;
    /// Fixed interval timer.
    pub const FIXED_TIMER: u32 = 0x1010;
    /// Watchdog.
    pub const WATCHDOG: u32 = 0x1020;
    /// Data translation miss.
    pub const DATA_MISS: u32 = 0x1100;
    /// Instruction translation miss.
    pub const INSTRUCTION_MISS: u32 = 0x1200;
    /// Debug.
    pub const DEBUG: u32 = 0x2000;
}

/// Bits of MSR that an interrupt leaves as they are.
pub const KEPT: u32 = msr::CE | msr::ME | msr::DE;
/// Bits of MSR that a critical interrupt leaves as they are.
const KEPT_BY_CRITICAL: u32 = msr::ME;

impl Cpu {
    /// Takes an interrupt that is not critical. The instruction at `frame.pc` is the one that comes next when
    /// the handler has ended.
    pub const fn take(&mut self, frame: &mut Frame, offset: u32) {
        let [first, second, ..] = &mut self.saved;
        *first = frame.pc;
        *second = self.msr;
        self.set_msr(self.msr & KEPT);
        frame.pc = (self.vectors & 0xFFFF_0000).wrapping_add(offset);
    }

    /// Takes a critical interrupt.
    pub const fn take_critical(&mut self, frame: &mut Frame, offset: u32) {
        let [.., third, fourth] = &mut self.saved;
        *third = frame.pc;
        *fourth = self.msr;
        self.changes.visible = true;
        self.set_msr(self.msr & KEPT_BY_CRITICAL);
        frame.pc = (self.vectors & 0xFFFF_0000).wrapping_add(offset);
    }

    /// Takes a program interrupt with this syndrome.
    pub const fn program(&mut self, frame: &mut Frame, syndrome: u32) {
        self.syndrome = syndrome;
        self.take(frame, vector::PROGRAM);
    }

    /// Takes a machine check for an access that the bus refuses.
    pub const fn machine_check(&mut self, frame: &mut Frame) {
        self.syndrome = esr::MCI;
        self.take_critical(frame, vector::MACHINE_CHECK);
    }

    /// Returns the bits of MSR that would let an interrupt through that waits.
    #[inline]
    #[must_use]
    pub const fn pending(&self) -> u32 {
        let critical = self.uic.critical() || self.timers.watchdog();
        let any = self.uic.external() || self.timers.programmable() || self.timers.fixed();
        (if critical { msr::CE } else { 0 }) | (if any { msr::EE } else { 0 })
    }

    /// Tells whether an interrupt waits that MSR allows.
    #[inline]
    #[must_use]
    pub const fn has_interrupt(&self) -> bool {
        self.msr & self.pending() != 0
    }

    /// Takes the interrupt that waits and comes first (table 5-2). Returns whether there was one.
    pub const fn deliver(&mut self, frame: &mut Frame) -> bool {
        if self.msr & msr::CE != 0 {
            if self.uic.critical() {
                self.take_critical(frame, vector::CRITICAL);
                return true;
            }
            if self.timers.watchdog() {
                self.take_critical(frame, vector::WATCHDOG);
                return true;
            }
        }
        if self.msr & msr::EE == 0 {
            return false;
        }
        let offset = if self.uic.external() {
            vector::EXTERNAL
        } else if self.timers.fixed() {
            vector::FIXED_TIMER
        } else if self.timers.programmable() {
            vector::PROGRAMMABLE_TIMER
        } else {
            return false;
        };
        self.take(frame, offset);
        true
    }
}
