// SPDX-License-Identifier: Apache-2.0
//! The one CPU: waiting, and the end.

use crate::context::RETURN_BASIC;
use crate::entry::{bulkhead_enter, bulkhead_exit_emulator, bulkhead_idle};
use crate::machine::Machine;
use crate::sysreg::AIRCR;
use crate::{lines, log, starts, sysreg};
use bulkhead_arch_api::{Cpus, Exit, PcpuId, StartError};
use bulkhead_arch_one_pcpu::{idle_frame, told};

/// SYS_EXIT's reason "ADP_Stopped_ApplicationExit" of Arm's semihosting.
const APPLICATION_EXIT: u32 = 0x2_0026;
/// AIRCR (B3.2.6): the key, and SYSRESETREQ.
const RESET_REQUEST: u32 = 0x05FA_0004;
/// [`StartError`] code: there is no other pCPU.
const NO_SUCH_PCPU: i64 = -2;
impl Machine {
    /// Lets the CPU sleep until an exception wants something.
    fn sleep(&mut self) {
        // SAFETY: no vCPU waits now, so the CPU is not in that code.
        self.idle.frame = unsafe { idle_frame(PcpuId(0), bulkhead_idle as *const () as u32) };
        self.idle.exc_return = RETURN_BASIC;
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
        self.set_timer(self.deadline);
        self.sleep();
        told(&mut self.exit)
    }

    fn poll(&mut self) -> Option<Exit> {
        // The vCPU that ran last does not run any more: an interrupt for it has to wake it.
        self.runs = false;
        // Between two looks the kernel may have armed the timer, and may not run a vCPU for long.
        self.set_timer(self.deadline);
        if starts::has_ended() || starts::IS_THERE && self.early_untold.is_some() {
            return self.early_exit();
        }
        let line = lines::take_pending()?;
        self.interrupt(line).then(|| told(&mut self.exit))
    }

    fn stop(&mut self) -> ! {
        crate::crash::stop()
    }

    /// Switches the board off. An emulated board is switched off by a reset: an emulator that takes a reset
    /// for the end can still be asked for the board's memory. An emulator that is told of the end by
    /// semihosting is gone.
    fn power_off(&mut self) {
        if self.is_emulated {
            sysreg::write(AIRCR, RESET_REQUEST);
            sysreg::synchronize();
            self.stop();
        }
        // SAFETY: ends everything, or does nothing (see `entry`).
        unsafe { bulkhead_exit_emulator(APPLICATION_EXIT) }
    }
}
