// SPDX-License-Identifier: Apache-2.0
//! Short runs of the hypervisor's own instructions in the Non-secure world: the way out of the handlers of
//! the VM that leaves, and into the handlers of the VM that comes (`bulkhead_arch_armv8m_core::unwind`).
//!
//! Each run ends with a load of Secure memory, which is an exception of the Secure world. An interrupt that
//! comes meanwhile is masked and waits until the run is over, so a run takes as many instructions at any
//! time.

use crate::answer::forget_pending;
use crate::attribution::block;
use crate::context::Registers;
use crate::enter::{
    FRAME_BYTES, FRAMES, bulkhead_enter, bulkhead_other_end, bulkhead_other_fault, bulkhead_other_frames,
};
use crate::line_set::{Lines, lowest, set};
use crate::machine::Machine;
use crate::sysreg::{
    self, CFSR, HFSR, NVIC_IABR, NVIC_ICER, NVIC_IPR, NVIC_ISER, NVIC_ISPR, SFSR, VTOR, other_space,
};
use crate::traps::AFTER_LINE;
use bulkhead_arch_api::MAX_PCPUS;
use bulkhead_arch_armv8m_core::unwind::{self, FRAME_WORDS, TAKEN_SECURE};
use bulkhead_arch_support::physical;

/// The first exception that is a line.
const FIRST_LINE: u32 = 16;
/// Priorities of lines while their handlers are entered again: the one that is to come, and those that have.
const NEXT: u8 = 0x40;
const DONE: u8 = 0x80;
/// The most frames of handlers at a time.
const AT_ONCE: usize = FRAMES / MAX_PCPUS - 1;
/// The bytes of a pCPU's frames.
const ROOM: u32 = (FRAMES / MAX_PCPUS * FRAME_BYTES) as u32;

/// Writes a frame.
fn put(at: u32, words: &[u32; FRAME_WORDS]) {
    for (place, word) in (at as usize..).step_by(4).zip(words) {
        // SAFETY: inside the frames of the Non-secure block, which no other code uses.
        unsafe { physical::write_word32(place, *word) }
    }
}

impl Machine {
    /// Returns the address of this pCPU's frames in the Non-secure block.
    fn frames(&self) -> u32 {
        (&raw const bulkhead_other_frames) as u32 + u32::from(self.pcpu().0) * ROOM
    }

    /// Runs the Non-secure world from the frame at `frame` on until it loads Secure memory.
    fn pass(&mut self, frame: u32, exc_return: u32) {
        sysreg::set_main_stack(frame);
        let mut registers = Registers {
            general: [0; 8],
            frame,
            exc_return,
        };
        self.passes = true;
        let machine = core::ptr::from_mut(self);
        // SAFETY: the registers and the machine are lent until the function returns, and no code uses them
        // meanwhile. The frame leads to code of the Non-secure block.
        unsafe { bulkhead_enter(&raw mut registers, machine, self.waiting_exits()) }
        self.passes = false;
        self.irq.reopen();
    }

    /// Handles an exception of a run. Returns 0 to go on with it.
    pub(crate) fn passed(&mut self, number: u32) -> u32 {
        if let Some(line) = number.checked_sub(FIRST_LINE) {
            self.irq.defer(line);
            return 0;
        }
        if number == AFTER_LINE {
            self.has_ticked();
            self.irq.repeat();
            return 0;
        }
        // QEMU 7.2 makes a HardFault of a SecureFault that interrupts an execution priority of 0x80.
        sysreg::write(SFSR, u32::MAX);
        sysreg::write(HFSR, u32::MAX);
        sysreg::write(CFSR, u32::MAX);
        forget_pending();
        1
    }

    /// Returns from all handlers of lines that are active in the Non-secure world. Requires: the Non-secure
    /// block is open, no exception of this world can be taken, and `active` has the lines.
    pub(crate) fn unwind(&mut self, active: &Lines) {
        let mut rest = *active;
        let (end, fault) = (
            (&raw const bulkhead_other_end) as u32 & !1,
            (&raw const bulkhead_other_fault) as u32 & !1,
        );
        let first = self.frames();
        // The handler whose frame comes first is the one that the CPU returns to at first.
        while lowest(&rest).is_some() {
            let mut at = first;
            for count in 1..=AT_ONCE {
                let Some(line) = lowest(&rest) else { break };
                set(&mut rest, line, false);
                let is_last = count == AT_ONCE || lowest(&rest).is_none();
                put(at, &unwind::handler((line + FIRST_LINE) as u8, end, is_last));
                at += 4 * FRAME_WORDS as u32;
            }
            put(at, &unwind::thread(fault));
            self.pass(first, unwind::TO_HANDLER | TAKEN_SECURE);
        }
    }

    /// Enters the handlers of these lines again, which are the VM's whose world has just been put into the
    /// hardware. No instruction of the VM's is executed. Requires: as for [`Machine::unwind`], with PRIMASK
    /// clear and nothing enabled.
    pub(crate) fn rewind(&mut self, active: &Lines) {
        let fault = (&raw const bulkhead_other_fault) as u32 & !1;
        let top = self.frames() + ROOM;
        other_space().write32(VTOR, block());
        let mut rest = *active;
        while let Some(line) = lowest(&rest) {
            set(&mut rest, line, false);
            let (word, bit) = (4 * (line as usize >> 5), 1_u32.wrapping_shl(line));
            other_space().write8(NVIC_IPR + line as usize, NEXT);
            other_space().write32(NVIC_ISER + word, bit);
            other_space().write32(NVIC_ISPR + word, bit);
            // The frame below is left when the line comes: its handler's own frame is on the VM's stack.
            let frame = top - 2 * 4 * FRAME_WORDS as u32;
            put(frame, &unwind::thread(fault));
            self.pass(frame, unwind::TO_THREAD | TAKEN_SECURE);
            other_space().write32(NVIC_ICER + word, bit);
            other_space().write8(NVIC_IPR + line as usize, DONE);
        }
    }
}

/// Returns the lines of the Non-secure world whose handlers are active.
pub(crate) fn active() -> Lines {
    core::array::from_fn(|word| other_space().read32(NVIC_IABR + 4 * word))
}
