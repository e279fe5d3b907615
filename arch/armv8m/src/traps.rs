// SPDX-License-Identifier: Apache-2.0
//! Traps: the way of every Secure exception, from the moment the registers of the code that was interrupted
//! are saved to the moment they are loaded again or the run is over.

use crate::context::{OF_SECURE, Pending};
use crate::machine::Machine;
use crate::sysreg::{self, ICSR};
use bulkhead_arch_api::{Exit, VcpuId};

/// The number of the exception SVCall (B3.8).
pub(crate) const SUPERVISOR_CALL: u32 = 11;
/// SysTick, by which the hypervisor leaves the handler of a line ([`Machine::leave_line`]). It is the last
/// exception before the lines.
pub(crate) const AFTER_LINE: u32 = 15;
/// Number of the exception of line 0, counted from [`AFTER_LINE`].
const LINES_PAST: u32 = 1;
/// ICSR.PENDSTSET (D1.2.146).
const AFTER_LINE_PENDING: u32 = 1 << 26;

/// Handles every Secure exception that interrupts a partition. Returns 0 to go on there.
///
/// # Safety
/// Called by `entry` only: `machine` was lent by `run`, `wait` or `pass`, which do not use it again until
/// this has answered 1.
pub(crate) unsafe extern "C" fn on_trap(machine: *mut Machine, number: u32) -> u32 {
    // SAFETY: see above.
    let machine = unsafe { &mut *machine };
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
    let exit = match (number.checked_sub(AFTER_LINE), running) {
        (Some(0), _) if machine.has_ticked() => machine.timer_fired().then_some(Exit::Deadline),
        (Some(0), _) => return machine.after_line(),
        (Some(past), _) => {
            let line = past - LINES_PAST;
            if machine.interrupt(line) {
                return machine.leave_line();
            }
            None
        }
        (None, Some(vcpu)) => machine.trap(vcpu, number),
        (None, None) => crate::crash::crash(machine.idle.frame, number),
    };
    machine.leave(exit, running)
}

impl Machine {
    /// Leaves the handler of a line that has interrupted: out of the partition.
    ///
    /// A line of a VM is Non-secure while the VM runs, and the exception of a line that has become so cannot
    /// be returned from as the Secure one that it was (B3.18). So that exception is over before the VM runs:
    /// SysTick, which is not used otherwise, is taken as this one returns, with no instruction in between.
    /// The hypervisor leaves the partition as the handler of SysTick. Requires: the exit is noted.
    fn leave_line(&mut self) -> u32 {
        if !matches!(self.exit, Exit::Device(..)) {
            return 1;
        }
        if let Some(pair) = self.second() {
            pair.leaves_line = true;
        }
        sysreg::write(ICSR, AFTER_LINE_PENDING);
        sysreg::synchronize();
        0
    }

    /// Leaves the partition, whose handler of a line has ended. A fault that the CPU tells of late can come
    /// between the two. The exit is the fault's then, and the line interrupts once more.
    fn after_line(&mut self) -> u32 {
        let is_told = matches!(self.exit, Exit::Device(..));
        if !is_told {
            self.irq.repeat();
        }
        is_told.into()
    }

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
