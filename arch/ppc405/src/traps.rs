// SPDX-License-Identifier: Apache-2.0
//! Traps: the way of every interrupt of the CPU, from the moment the guest's registers are saved to the
//! moment they are loaded again or its run is over.

use crate::context::Trap;
use crate::guest;
use crate::machine::Machine;
use crate::sysreg::{SRR2, SRR3};
use crate::{crash, log, sysreg};
use bulkhead_abi::log::Exits;
use bulkhead_arch_api::{Exit, ResetKind, Ticks, VcpuId};
use bulkhead_arch_ppc405_core::exception::vector;
use bulkhead_arch_ppc405_core::mmu::Kind;
use bulkhead_arch_ppc405_core::registers::{esr, msr};
use core::sync::atomic::{AtomicU32, Ordering};

/// Counts an interrupt by its cause.
fn count(exits: &Exits, vector: u32) {
    let counter = match vector {
        vector::EXTERNAL | vector::PROGRAMMABLE_TIMER => &exits.interrupts,
        vector::SYSTEM_CALL => &exits.calls,
        vector::PROGRAM => &exits.instructions,
        vector::DATA_MISS | vector::DATA_STORAGE | vector::INSTRUCTION_MISS | vector::INSTRUCTION_STORAGE => {
            &exits.accesses
        }
        _ => &exits.other,
    };
    add_one(counter);
}

/// Counts what the short path has not counted itself.
fn count_short(exits: &Exits, counts: [u32; 3]) {
    for (counter, traps) in [&exits.instructions, &exits.calls, &exits.accesses]
        .into_iter()
        .zip(counts)
    {
        let counted = counter.load(Ordering::Relaxed).wrapping_add(traps);
        counter.store(counted, Ordering::Relaxed);
    }
}

/// Counts up. No other code writes the counter.
fn add_one(counter: &AtomicU32) {
    counter.store(counter.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
}

/// Handles every interrupt. Returns 0 to go on there.
///
/// # Safety
/// Called by `entry` only: `machine` was lent by `run` or `wait`, which do not use it again until this has
/// answered 1.
pub(crate) unsafe extern "C" fn on_trap(machine: *mut Machine, vector: u32) -> u32 {
    // SAFETY: see above.
    let machine = unsafe { &mut *machine };
    let Some(vcpu) = machine.current.filter(|_| machine.runs) else {
        return u32::from(machine.while_waiting(vector));
    };
    let Some(context) = machine.contexts.get(vcpu) else {
        return 1;
    };
    let trap = context.registers.trap;
    if !context.is_task() {
        // QEMU 7.2 lets the guest write them without a trap.
        let [.., critical_pc, critical_state] = &mut context.cpu.saved;
        *critical_pc = sysreg::read_spr::<SRR2>();
        *critical_state = sysreg::read_spr::<SRR3>();
    }
    let pc = context.registers.frame.pc;
    if trap.state & msr::PR == 0 {
        crash::interrupted(vector, pc, &trap);
    }
    if let Some(exits) = log::exits(vcpu) {
        count(exits, vector);
        count_short(exits, context.short.take_counts());
    }
    let leaves = match vector {
        vector::EXTERNAL => machine.interrupt(),
        vector::PROGRAMMABLE_TIMER => machine.deadline_came(),
        vector::SYSTEM_CALL => machine.system_call(vcpu),
        _ => {
            let exit = machine.guest_trap(vcpu, vector, pc, &trap);
            machine.leave(exit)
        }
    };
    if leaves {
        return 1;
    }
    if vector != vector::PROGRAMMABLE_TIMER && machine.is_calm(vcpu) {
        return 0;
    }
    let exit = machine.settle(vcpu);
    u32::from(machine.leave(exit))
}

impl Machine {
    /// Handles an interrupt of the code that waits. Tells whether it is over.
    fn while_waiting(&mut self, vector: u32) -> bool {
        match vector {
            vector::EXTERNAL => self.interrupt(),
            vector::PROGRAMMABLE_TIMER => {
                let is_over = self.deadline_came();
                if !is_over {
                    self.set_timer(self.deadline);
                }
                is_over
            }
            _ => crash::interrupted(vector, self.idle.frame.pc, &self.idle.trap),
        }
    }

    /// Handles an interrupt of the timer. Tells whether the kernel's deadline has come.
    fn deadline_came(&mut self) -> bool {
        self.exit = Exit::Deadline;
        self.timer_fired()
    }

    /// Leaves the guest with this exit, if there is one. Returns whether there is. The exit is written where
    /// the run reads it: on this class, to copy an exit costs as much as to handle it.
    #[inline(always)]
    fn leave(&mut self, exit: Option<Exit>) -> bool {
        let Some(exit) = exit else { return false };
        self.exit = exit;
        true
    }

    /// Handles an interrupt of the guest's own making, other than a system call.
    fn guest_trap(&mut self, vcpu: VcpuId, vector: u32, pc: u32, trap: &Trap) -> Option<Exit> {
        let data = if trap.syndrome & esr::DST != 0 {
            Kind::Store
        } else {
            Kind::Load
        };
        match vector {
            vector::DATA_MISS | vector::DATA_STORAGE => self.refused(vcpu, vector, trap.address, data),
            vector::INSTRUCTION_MISS | vector::INSTRUCTION_STORAGE => {
                self.refused(vcpu, vector, pc, Kind::Fetch)
            }
            vector::PROGRAM => self.program(vcpu),
            vector::ALIGNMENT => {
                let context = self.contexts.get(vcpu)?;
                if context.is_task() {
                    return Some(context.task_fault(vector));
                }
                context.cpu.data_address = trap.address;
                context.cpu.syndrome = trap.syndrome & esr::DST;
                context.cpu.take(&mut context.registers.frame, vector);
                None
            }
            _ => crash::interrupted(vector, pc, trap),
        }
    }

    /// Tells whether the current vCPU can go on as it is. The timer is set for its next event already.
    fn is_calm(&mut self, vcpu: VcpuId) -> bool {
        self.armed != Ticks(0)
            && !self.holds_lines()
            && self
                .contexts
                .get(vcpu)
                .is_some_and(|context| context.cpu.is_calm())
    }

    /// Brings the current vCPU up to now, before it goes on: interrupts that became pending are taken, and
    /// the real processor follows. Returns the exit if the vCPU cannot go on.
    pub(crate) fn settle(&mut self, vcpu: VcpuId) -> Option<Exit> {
        let deadline = self.deadline;
        let (context, _, buffer) = self.guest(vcpu)?;
        if context.is_task() {
            guest::follow(context, buffer);
            self.set_timer(deadline);
            return None;
        }
        let now = sysreg::time();
        let cpu = &mut context.cpu;
        if now >= cpu.timers.next_event() {
            cpu.timers.advance(now);
            if cpu.timers.has_bitten() {
                return Some(Exit::Reset(ResetKind::Cold));
            }
        }
        cpu.deliver(&mut context.registers.frame);
        if context.cpu.msr & msr::WE != 0 {
            return Some(context.waits());
        }
        let own = Ticks(context.cpu.timers.next_event());
        guest::follow(context, buffer);
        let partition = context.partition;
        if self.holds_lines() {
            self.release_lines(partition);
        }
        self.set_timer(deadline.min(own));
        None
    }
}
