// SPDX-License-Identifier: Apache-2.0
//! The CPU: waiting, and the end.

use crate::context::RETURN_TASK;
use crate::enter::{bulkhead_enter, bulkhead_idle};
use crate::machine::Machine;
use crate::pair::SIGNAL;
use crate::sysreg::AIRCR;
use crate::{lines, sysreg};
use bulkhead_arch_api::{Cpus, Exit, PcpuId, StartError};
use bulkhead_arch_one_pcpu::{idle_frame, told};

/// AIRCR (D1.2.2): the key, SYSRESETREQ, and the bits that keep the Non-secure world in its place.
const RESET_REQUEST: u32 = 0x05FA_0004 | crate::bring_up::CONTROL;
/// [`StartError`] code: there is no other pCPU.
const NO_SUCH_PCPU: i64 = -2;
impl Machine {
    /// Lets the CPU sleep until an exception wants something.
    fn sleep(&mut self) {
        // SAFETY: no vCPU waits now, so the CPU is not in that code.
        self.idle.frame = unsafe { idle_frame(self.pcpu(), bulkhead_idle as *const () as u32) };
        self.idle.exc_return = RETURN_TASK;
        self.runs = false;
        let registers = &raw mut self.idle;
        sysreg::set_unprivileged(false);
        // SAFETY: `registers` and the machine are lent until the function returns; the frame leads to
        // `bulkhead_idle`.
        unsafe { bulkhead_enter(registers, core::ptr::from_mut(self), self.waiting_exits()) }
        sysreg::set_unprivileged(true);
    }
}

impl Cpus for Machine {
    fn current(&self) -> PcpuId {
        self.pcpu()
    }

    fn start(&mut self, _pcpu: PcpuId) -> Result<(), StartError> {
        if self.start_second() {
            return Ok(());
        }
        Err(StartError { code: NO_SUCH_PCPU })
    }

    fn signal(&mut self, pcpu: PcpuId) {
        if let Some(pair) = self.pair.first() {
            pair.call(pcpu, SIGNAL);
        }
    }

    fn wait(&mut self) -> Exit {
        if let Some(exit) = self.poll() {
            return exit;
        }
        self.settle_faults();
        self.set_timer();
        self.park();
        self.sleep();
        told(&mut self.exit)
    }

    fn poll(&mut self) -> Option<Exit> {
        // The vCPU that ran last does not run any more: an interrupt for it has to wake it.
        self.runs = false;
        // Between two looks the kernel may have armed the timer, and may not run a vCPU for long.
        self.set_timer();
        if self.take_tick() {
            return Some(Exit::Deadline);
        }
        // The lines of a VM that still has the Non-secure world are not seen from here.
        if self.tenant_has_lines() {
            self.park();
        }
        let line = lines::take_pending()?;
        self.interrupt(line).then(|| told(&mut self.exit))
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
