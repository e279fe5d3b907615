// SPDX-License-Identifier: Apache-2.0
//! The one CPU: waiting, and the end.

use crate::context::RETURN_TASK;
use crate::enter::{bulkhead_enter, bulkhead_idle};
use crate::machine::Machine;
use crate::sysreg::AIRCR;
use crate::{lines, log, sysreg};
use bulkhead_arch_api::{Cpus, Exit, PcpuId, StartError};
use bulkhead_arch_one_pcpu::told;
use core::cell::UnsafeCell;

/// AIRCR (D1.2.2): the key, SYSRESETREQ, and the bits that keep the Non-secure world in its place.
const RESET_REQUEST: u32 = 0x05FA_0004 | crate::bring_up::CONTROL;
/// [`StartError`] code: there is no other pCPU.
const NO_SUCH_PCPU: i64 = -2;
/// xPSR.T.
const THUMB: u32 = 1 << 24;
/// Words of a frame, and the places of its PC and xPSR.
const FRAME_WORDS: usize = 8;
const FRAME_PC: usize = 6;
const FRAME_STATE: usize = 7;

/// The frame with which the code that waits is entered, and on which it is interrupted.
#[repr(C, align(8))]
struct IdleFrame(UnsafeCell<[u32; FRAME_WORDS]>);

// SAFETY: only the CPU itself and `Machine::wait` touch the frame, and there is one of either.
unsafe impl Sync for IdleFrame {}

static IDLE_FRAME: IdleFrame = IdleFrame(UnsafeCell::new([0; FRAME_WORDS]));

impl Machine {
    /// Lets the CPU sleep until an exception wants something.
    fn sleep(&mut self) {
        let mut frame = [0; FRAME_WORDS];
        if let Some(pc) = frame.get_mut(FRAME_PC) {
            *pc = bulkhead_idle as *const () as u32 & !1;
        }
        if let Some(state) = frame.get_mut(FRAME_STATE) {
            *state = THUMB;
        }
        // SAFETY: no vCPU waits now, so no code uses the frame.
        unsafe { IDLE_FRAME.0.get().write_volatile(frame) }
        self.idle.frame = IDLE_FRAME.0.get() as u32;
        self.idle.exc_return = RETURN_TASK;
        self.runs = false;
        let registers = &raw mut self.idle;
        sysreg::set_unprivileged(false);
        // SAFETY: `registers` and the machine are lent until the function returns; the frame leads to
        // `bulkhead_idle`.
        unsafe { bulkhead_enter(registers, core::ptr::from_mut(self), log::exits(None)) }
        sysreg::set_unprivileged(true);
    }
}

impl Cpus for Machine {
    fn current(&self) -> PcpuId {
        PcpuId(0)
    }

    fn start(&mut self, _pcpu: PcpuId) -> Result<(), StartError> {
        Err(StartError { code: NO_SUCH_PCPU })
    }

    fn signal(&mut self, _pcpu: PcpuId) {}

    fn wait(&mut self) -> Exit {
        if let Some(exit) = self.poll() {
            return exit;
        }
        self.set_timer();
        self.park();
        self.sleep();
        told(&self.exit)
    }

    fn poll(&mut self) -> Option<Exit> {
        // The vCPU that ran last does not run any more: an interrupt for it has to wake it.
        self.runs = false;
        let line = lines::take_pending()?;
        self.interrupt(line).then(|| told(&self.exit))
    }

    fn stop(&mut self) -> ! {
        crate::crash::stop()
    }

    /// Switches the board off. An emulated board is switched off by a reset: an emulator that takes a reset
    /// for the end can still be asked for the board's memory. Hardware has no way to switch itself off.
    fn power_off(&mut self) {
        if self.is_emulated {
            sysreg::write(AIRCR, RESET_REQUEST);
            sysreg::synchronize();
            self.stop();
        }
    }
}
