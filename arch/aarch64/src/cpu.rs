// SPDX-License-Identifier: Apache-2.0
//! Physical CPUs: the firmware's PSCI (Arm DEN 0022E) by SMC.

use crate::board::BOARD;
use crate::firmware::firmware;
use crate::machine::Machine;
use crate::sysreg::instruction;
use crate::{enter, gic, serror};
use bulkhead_arch_api::{Cpus, Exit, PcpuId, StartError};

/// PSCI functions.
const CPU_ON_64: u64 = 0xC400_0003;
const SYSTEM_OFF: u64 = 0x8400_0008;
/// [`StartError`] code: the board has no such pCPU.
const NO_SUCH_PCPU: i64 = -2;

impl Machine {
    /// Handles an acknowledged interrupt, outside a guest.
    fn take_interrupt(&mut self, line: u32) -> Option<Exit> {
        let exit = gic::handle_idle(&mut self.irq, line);
        // The kick is taken before this. A pCPU that asks from now on kicks again.
        if gic::concerns_loaded(&self.irq, line) {
            self.answer(line);
        }
        exit
    }
}

impl Cpus for Machine {
    fn current(&self) -> PcpuId {
        self.pcpu
    }

    fn start(&mut self, pcpu: PcpuId) -> Result<(), StartError> {
        let hardware_id = BOARD
            .get()
            .and_then(|board| board.hardware_ids.get(usize::from(pcpu.0)));
        let Some(hardware_id) = hardware_id else {
            return Err(StartError { code: NO_SUCH_PCPU });
        };
        // Everything that was written for the other CPU must be in memory that this CPU sees once its caches
        // are on.
        instruction!("dsb sy");
        let entry = enter::bulkhead_secondary_start as *const () as u64;
        match firmware(CPU_ON_64, [*hardware_id, entry, u64::from(pcpu.0)]) {
            0 => Ok(()),
            code => Err(StartError { code }),
        }
    }

    fn signal(&mut self, pcpu: PcpuId) {
        gic::signal(&mut self.irq, pcpu);
    }

    fn wait(&mut self) -> Exit {
        loop {
            let line = gic::acknowledge();
            // The usual ends of a wait do not look at other causes.
            if gic::takes_signal(line) {
                return Exit::Signal;
            }
            if gic::takes_deadline(&self.irq, line) {
                return Exit::Deadline;
            }
            if gic::is_none(line) {
                instruction!("dsb sy");
                // A pending SError would end every wait at once (Arm DDI 0487 D1.6.2).
                if serror::is_pending() {
                    self.unload();
                    // If no vCPU is current, the vCPU that caused the SError is off.
                    serror::take();
                }
                instruction!("wfi");
            } else if let Some(exit) = self.take_interrupt(line) {
                return exit;
            }
        }
    }

    fn poll(&mut self) -> Option<Exit> {
        for _ in 0..gic::IDLE_BURST {
            let line = gic::acknowledge();
            if gic::is_none(line) {
                break;
            }
            if let Some(exit) = self.take_interrupt(line) {
                return Some(exit);
            }
        }
        None
    }

    fn stop(&mut self) -> ! {
        loop {
            instruction!("wfi");
            instruction!("wfe");
        }
    }

    fn power_off(&mut self) {
        firmware(SYSTEM_OFF, [0; 3]);
    }
}
