// SPDX-License-Identifier: Apache-2.0
//! The HardFault of a VM.
//!
//! With AIRCR.BFHFNMINS clear, which AIRCR.PRIS needs (D1.2.2), each HardFault is one of the Secure world. So
//! the hypervisor gets the faults that a VM cannot take itself, and shows the VM its HardFault. The frame
//! that the CPU has pushed is the one that the VM's handler finds. A second frame leads the CPU into the
//! handler.
//!
//! Some exception of the VM's must be active meanwhile, because the handler's return ends one. That is
//! MemManage, or UsageFault if MemManage is active, and IPSR says so. FAULTMASK gives the handler the
//! priority that it expects. The CPU clears FAULTMASK when the handler returns.
//!
//! **A lost frame.** If the CPU could not push the frame (a stack limit, the VM's own protection unit, a
//! stack pointer to nowhere), the handler runs all the same, as on the bare board (B3.24). It finds old words
//! at the stack pointer.

use crate::answer::Trapped;
use crate::context::{BASIC, Pending, SPSEL};
use crate::live::Live;
use crate::sysreg::{self, SHCSR, VTOR, other_space};
use bulkhead_arch_armv7m_core::{Exception, Guest};
use bulkhead_arch_armv8m_core::unwind::{TAKEN_SECURE, TO_HANDLER};

/// SHCSR (D1.2.240): MemManage and UsageFault are active.
const MEMORY_ACTIVE: u32 = 1;
const USAGE_ACTIVE: u32 = 1 << 3;
/// EXC_RETURN: the frame is on the process stack.
const PROCESS: u32 = 1 << 2;
/// Bytes of the second frame.
const FRAME: u32 = 32;
const THUMB: u32 = 1 << 24;

/// Returns the exception that stands for the HardFault, and its bit.
fn carrier() -> Option<(Exception, u32)> {
    let handlers = other_space().read32(SHCSR);
    if handlers & MEMORY_ACTIVE == 0 {
        Some((Exception::MEMORY_FAULT, MEMORY_ACTIVE))
    } else if handlers & USAGE_ACTIVE == 0 {
        Some((Exception::USAGE_FAULT, USAGE_ACTIVE))
    } else {
        None
    }
}

/// Returns the place of the second frame, which is popped at once: below the main stack. If there is no room
/// above the limit, as after the overflow of this stack, the frame takes the last bytes of the stack: others
/// may use those below the limit.
fn second_frame() -> u32 {
    let below = sysreg::main_stack().wrapping_sub(FRAME) & !7;
    below.max(sysreg::main_limit())
}

impl Trapped<'_> {
    /// Shows the VM its fault. A processor that stops because of the fault is another event, which has its
    /// own action. Requires: as for [`Trapped::hard_fault`].
    pub(crate) fn show_fault(&mut self) {
        self.context.pending = match self.hard_fault() {
            Some(()) => Pending::Nothing,
            None => Pending::Stuck,
        };
    }

    /// Makes the VM go on in its handler of HardFault. Returns `None` if its processor would have stopped: it
    /// is in such a handler already, or the vector table or the stack are not there. Requires: the VM's world
    /// is in the hardware.
    pub(crate) fn hard_fault(&mut self) -> Option<()> {
        if sysreg::faultmask() != 0 {
            return None;
        }
        let (exception, active) = carrier()?;
        let returns = self.context.registers.exc_return;
        let live = self.live();
        let table = other_space().read32(VTOR);
        let vector = live.load(table.wrapping_add(Exception::HARD_FAULT.vector_offset()))?;
        let frame = second_frame();
        let [r0, r1, r2, r3, r12, ..] = live.words();
        let thumb = if vector & 1 != 0 { THUMB } else { 0 };
        // The same place, as the exception of the VM's own that it seems to be.
        let control = sysreg::control();
        let is_process = self.context.registers.is_on_process_stack();
        let stack = if is_process { PROCESS } else { 0 };
        let link = returns & !(TAKEN_SECURE | PROCESS) | stack;
        let state = thumb | u32::from(exception.0);
        let words = [r0, r1, r2, r3, r12, link, vector & !1, state];
        if !Live::new(&mut self.context.registers, self.space).push(frame, &words) {
            return None;
        }
        other_space().write32(SHCSR, other_space().read32(SHCSR) | active);
        sysreg::set_main_stack(frame);
        sysreg::set_control(control & !SPSEL);
        sysreg::set_faultmask(1);
        self.context.registers.frame = frame;
        self.context.registers.exc_return = TO_HANDLER | TAKEN_SECURE;
        Some(())
    }
}

const _: () = assert!(TO_HANDLER & BASIC != 0 && TO_HANDLER & PROCESS == 0);
