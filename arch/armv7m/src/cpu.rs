// SPDX-License-Identifier: Apache-2.0
//! The one CPU: waiting, and the end.

use crate::entry::{RETURN_BASIC, Registers, bulkhead_enter, bulkhead_exit_emulator, bulkhead_idle};
use crate::machine::Machine;
use crate::system::AIRCR;
use crate::{irq, system};
use bulkhead_arch_api::{Cpus, Exit, PcpuId, StartError};
use core::cell::UnsafeCell;

/// SYS_EXIT's reason "ADP_Stopped_ApplicationExit" of Arm's semihosting.
const APPLICATION_EXIT: u32 = 0x2_0026;
/// AIRCR (B3.2.6): the key, and SYSRESETREQ.
const RESET_REQUEST: u32 = 0x05FA_0004;
/// [`StartError`] code: there is no other pCPU.
const NO_SUCH_PCPU: i64 = -2;
/// xPSR.T.
const THUMB: u32 = 1 << 24;
/// Words of a frame, and where its PC and xPSR are.
const FRAME_WORDS: usize = 8;
const FRAME_PC: usize = 6;
const FRAME_STATE: usize = 7;

/// The frame with which the code that waits is entered, and on which it is interrupted.
#[repr(C, align(8))]
struct IdleFrame(UnsafeCell<[u32; FRAME_WORDS]>);

// SAFETY: only the CPU itself and `Machine::wait` touch it, and there is one of either.
unsafe impl Sync for IdleFrame {}

static IDLE_FRAME: IdleFrame = IdleFrame(UnsafeCell::new([0; FRAME_WORDS]));

pub(crate) fn idle_registers() -> Registers {
    Registers {
        general: [0; 8],
        frame: 0,
        exc_return: RETURN_BASIC,
    }
}

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
        // SAFETY: nobody waits now, so nobody uses the frame.
        unsafe { IDLE_FRAME.0.get().write_volatile(frame) }
        self.idle.frame = IDLE_FRAME.0.get() as u32;
        self.idle.exc_return = RETURN_BASIC;
        self.runs = false;
        let registers = &raw mut self.idle;
        system::set_unprivileged(false);
        // SAFETY: `registers` and the machine are lent until it returns; the frame leads to `bulkhead_idle`.
        unsafe { bulkhead_enter(registers, core::ptr::from_mut(self)) }
        system::set_unprivileged(true);
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
        self.set_timer(self.deadline);
        self.sleep();
        self.told()
    }

    fn poll(&mut self) -> Option<Exit> {
        // Who ran last does not: what comes for it has to wake it.
        self.runs = false;
        let line = irq::take_pending()?;
        self.interrupt(line).then(|| self.told())
    }

    fn stop(&mut self) -> ! {
        crate::crash::stop()
    }

    /// An emulator that takes a reset for the end can still be asked for the board's memory, one that is told of the end by semihosting is gone.
    fn power_off(&mut self) {
        if self.is_emulated {
            system::write(AIRCR, RESET_REQUEST);
            system::synchronize();
            self.stop();
        }
        // SAFETY: ends everything, or does nothing (see `entry`).
        unsafe { bulkhead_exit_emulator(APPLICATION_EXIT) }
    }
}
