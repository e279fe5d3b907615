// SPDX-License-Identifier: Apache-2.0
//! The special registers and the instructions that read and write them: MRS, MSR and CPS (Arm DDI 0403E.e,
//! B5.2). Unprivileged code reads zeros and changes nothing but its flags, as it does without a hypervisor.

use crate::decode::{Replaced, Special};
use crate::exception::Stack;
use crate::guest::Guest;
use crate::processor::VirtualCore;

/// The flags N, Z, C, V and Q.
const FLAGS: u32 = 0xF800_0000;
/// GE, of the DSP extension.
const GREATER_EQUAL: u32 = 0x000F_0000;

/// The stack pointer's number.
const SP: u8 = 13;

impl VirtualCore {
    /// Does MRS.
    #[must_use]
    pub fn read_special(&self, guest: &impl Guest, register: Special) -> u32 {
        match register.0 {
            number @ 0..=7 => {
                let flags = if number & 4 == 0 {
                    guest.xpsr() & (FLAGS | GREATER_EQUAL)
                } else {
                    0
                };
                let handler = if number & 1 != 0 { u32::from(self.ipsr) } else { 0 };
                flags | handler
            }
            Special::CONTROL => {
                u32::from(self.unprivileged)
                    | u32::from(self.process_stack) << 1
                    | u32::from(guest.extended()) << 2
            }
            _ if !self.privileged() => 0,
            Special::MSP => self.special_stack(guest, Stack::Main),
            Special::PSP => self.special_stack(guest, Stack::Process),
            Special::PRIMASK => u32::from(self.primask),
            Special::BASEPRI | Special::BASEPRI_MAX => u32::from(self.basepri),
            Special::FAULTMASK => u32::from(self.faultmask),
            _ => 0,
        }
    }

    fn special_stack(&self, guest: &impl Guest, stack: Stack) -> u32 {
        if stack == self.stack() {
            self.stack_pointer(guest)
        } else {
            self.banked(stack)
        }
    }

    /// Does MSR with the given mask. False if it asked for a stack in use that is not the guest's memory: the
    /// guest would not survive its next instruction, and nothing has been changed.
    pub fn write_special(&mut self, guest: &mut impl Guest, register: Special, mask: u8, value: u32) -> bool {
        match register.0 {
            0..=3 => {
                let flags = if mask & 2 != 0 { FLAGS } else { 0 };
                let greater = if mask & 1 != 0 { GREATER_EQUAL } else { 0 };
                let changed = flags | greater;
                guest.set_xpsr(guest.xpsr() & !changed | value & changed);
            }
            _ if !self.privileged() => {}
            Special::MSP => return self.set_special_stack(guest, Stack::Main, value & !3),
            Special::PSP => return self.set_special_stack(guest, Stack::Process, value & !3),
            Special::PRIMASK => self.primask = value & 1 != 0,
            Special::BASEPRI | Special::BASEPRI_MAX => self.set_basepri(register, value),
            Special::FAULTMASK => self.set_faultmask(value & 1 != 0),
            Special::CONTROL => return self.write_control(guest, value),
            _ => {}
        }
        true
    }

    /// Sets FAULTMASK, which cannot be set where it would lower the priority (B5.2.3).
    fn set_faultmask(&mut self, value: bool) {
        if !value || self.execution_priority() > -1 {
            self.is_returning = false;
            self.faultmask = value;
        }
    }

    fn set_special_stack(&mut self, guest: &mut impl Guest, stack: Stack, value: u32) -> bool {
        if stack == self.stack() {
            return self.move_frame(guest, value, guest.extended());
        }
        self.set_banked(stack, value);
        true
    }

    /// Writes CONTROL. Of FPCA only clearing has an effect: the next frame has no floating-point part then.
    fn write_control(&mut self, guest: &mut impl Guest, value: u32) -> bool {
        let extended = guest.extended() && value & 4 != 0;
        let before = self.stack();
        let process_stack = if self.ipsr == 0 {
            value & 2 != 0
        } else {
            self.process_stack
        };
        let after = if self.ipsr == 0 && process_stack {
            Stack::Process
        } else {
            Stack::Main
        };
        if after != before || extended != guest.extended() {
            let leaving = self.stack_pointer(guest);
            // A reset leaves PSP unknown (B1.5.5). Kernels that write CONTROL before PSP (LiteOS-M) need a
            // stack for the trap of the second.
            let is_unknown = after == Stack::Process && self.process_sp == 0;
            let target = if after == before || is_unknown {
                leaving
            } else {
                self.banked(after)
            };
            if !self.move_frame(guest, target, extended) {
                return false;
            }
            self.set_banked(before, leaving);
        }
        self.process_stack = process_stack;
        self.is_returning = false;
        self.unprivileged = value & 1 != 0;
        true
    }

    /// Does the instructions of an RTOS that are replaced most often: masks, the number of the handler, and
    /// PSP where it is not in use. Does one, but for the PC and the IT state, if it is of these and changes
    /// nothing that the backend has to act on but what waits.
    #[inline(always)]
    pub(crate) fn special_quickly(&mut self, guest: &mut impl Guest, replaced: Replaced) -> bool {
        let quick = |special: Special| match special.0 {
            Special::IPSR | Special::PRIMASK..=Special::BASEPRI_MAX => true,
            Special::PSP => self.stack() == Stack::Main,
            _ => false,
        };
        match replaced {
            Replaced::ReadSpecial { register, special } if quick(special) && register < SP => {
                let value = match special.0 {
                    Special::IPSR => u32::from(self.ipsr),
                    _ if !self.privileged() => 0,
                    Special::PSP => self.process_sp,
                    Special::PRIMASK => u32::from(self.primask),
                    _ => u32::from(self.basepri),
                };
                guest.set_register(register, value);
                true
            }
            Replaced::WriteSpecial {
                register, special, ..
            } if quick(special) && special.0 != Special::IPSR && register < SP => {
                let value = guest.register(register);
                if !self.privileged() {
                    return true;
                }
                match special.0 {
                    Special::PSP => self.process_sp = value & !3,
                    Special::PRIMASK => self.primask = value & 1 != 0,
                    _ => self.set_basepri(special, value),
                }
                true
            }
            Replaced::ChangeMasks {
                disable,
                primask,
                faultmask: false,
            } => {
                self.change_masks(disable, primask, false);
                true
            }
            _ => false,
        }
    }

    /// Sets BASEPRI, or BASEPRI_MAX, which only raises it.
    fn set_basepri(&mut self, register: Special, value: u32) {
        let value = value as u8 & self.model.priority_bits;
        let raises = value != 0 && (value < self.basepri || self.basepri == 0);
        if register.0 == Special::BASEPRI || raises {
            self.basepri = value;
        }
    }

    /// Does CPSIE or CPSID of PRIMASK and FAULTMASK.
    pub fn change_masks(&mut self, disable: bool, primask: bool, faultmask: bool) {
        if !self.privileged() {
            return;
        }
        if primask {
            self.primask = disable;
        }
        if faultmask {
            self.set_faultmask(disable);
        }
    }
}
