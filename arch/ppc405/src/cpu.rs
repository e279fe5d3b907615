// SPDX-License-Identifier: Apache-2.0
//! The one CPU: waiting, and the end.

use crate::crash;
use crate::entry::{bulkhead_enter, bulkhead_idle};
use crate::machine::Machine;
use crate::sysreg::{self, DBCR0, UIC_ENABLE};
use bulkhead_arch_api::{Cpus, Exit, PcpuId, StartError};

/// DBCR0: a reset of the system (User's Manual, section 8.5.1).
const SYSTEM_RESET: u32 = 0x3000_0000;
/// [`StartError`] code: there is no other pCPU.
const NO_SUCH_PCPU: i64 = -2;

impl Machine {
    /// Lets the CPU sleep until an interrupt wants something.
    fn sleep(&mut self) {
        self.runs = false;
        self.idle.frame.pc = bulkhead_idle as *const () as u32;
        let registers = &raw mut self.idle;
        let machine = core::ptr::from_mut(self);
        // SAFETY: registers and machine are lent until the function returns. The code that waits uses no
        // stack and no memory.
        unsafe { bulkhead_enter(registers, machine) }
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
        crash::check_stack();
        self.set_timer(self.deadline);
        self.sleep();
        self.exit
    }

    fn poll(&mut self) -> Option<Exit> {
        // The vCPU that ran last does not run any more: an interrupt for it has to wake it.
        self.runs = false;
        if Self::has_interrupt() && self.interrupt() {
            return Some(self.exit);
        }
        self.take_deadline().then_some(Exit::Deadline)
    }

    fn stop(&mut self) -> ! {
        sysreg::write_dcr::<UIC_ENABLE>(0);
        crash::stop()
    }

    /// Switches the board off by a reset of the system, which an emulator takes for the end. A real board
    /// would start again, so only an image for an emulator asks for it.
    fn power_off(&mut self) {
        if self.is_emulated {
            sysreg::write_spr::<DBCR0>(SYSTEM_RESET);
        }
    }
}
