// SPDX-License-Identifier: Apache-2.0
//! Traps: the way of every Secure exception, from the moment the registers of the code that was interrupted
//! are saved to the moment they are loaded again or the run is over.

use crate::context::{OF_SECURE, Pending};
use crate::machine::Machine;
use bulkhead_arch_api::{Exit, VcpuId};

/// The number of the exception SVCall (B3.8).
pub(crate) const SUPERVISOR_CALL: u32 = 11;
/// The first exception that is a line.
pub(crate) const FIRST_LINE: u32 = 16;

/// Handles every Secure exception that interrupts a partition. Returns 0 to go on there.
///
/// # Safety
/// Called by `entry` only: `machine` was lent by `run`, `wait` or `pass`, which do not use it again until
/// this has answered 1.
pub(crate) unsafe extern "C" fn on_trap(machine: *mut Machine, number: u32) -> u32 {
    // SAFETY: see above.
    let machine = unsafe { &mut *machine };
    machine.exception = number;
    if machine.passes {
        return machine.passed(number);
    }
    let running = machine.current.filter(|_| machine.runs);
    if let Some(context) = running.and_then(|vcpu| machine.contexts.get(vcpu))
        && context.is_task()
        && context.registers.exc_return & OF_SECURE == 0
    {
        context.pending = Pending::Stuck;
    }
    let exit = match (number.checked_sub(FIRST_LINE), running) {
        (Some(line), _) if machine.interrupt(line) => return 1,
        (Some(_), _) => None,
        (None, Some(vcpu)) => machine.trap(vcpu, number),
        (None, None) => crate::crash::crash(machine.idle.frame, number),
    };
    machine.leave(exit, running)
}

impl Machine {
    /// Leaves the handler: back to the partition, or out of it.
    fn leave(&mut self, exit: Option<Exit>, running: Option<VcpuId>) -> u32 {
        match exit {
            Some(exit) => {
                self.exit = exit;
                1
            }
            None => {
                self.set_timer();
                if let Some(vcpu) = running {
                    self.raise_levels(vcpu);
                }
                0
            }
        }
    }
}
