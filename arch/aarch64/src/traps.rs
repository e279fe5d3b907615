// SPDX-License-Identifier: Apache-2.0
//! Exceptions from a guest: which code answers each of them.
//!
//! A handler runs on the stack of its pCPU with x0..x18 and x30 of the guest in the context. Everything else
//! is still in the hardware (ELR_EL2 and SPSR_EL2 too: no handler takes an exception). A handler returns
//! [`RESUME`] to go on in the guest, [`ALL_REGISTERS`] to have the handler of complete registers called, with
//! x19..x29 in the context as well, or the reason with which `run` returns.
//!
//! Every exception is counted by its cause in the log area, first of all: no answer, however short, is left
//! out. The kernel counts none of them.
//!
//! The most frequent exceptions are looked at first and are finished in a function that calls nothing, so
//! that the compiler saves no register for it. Everything else is a call in tail position. docs/paths.md
//! counts the instructions.

use crate::abort::{abort_address, memory_fault};
use crate::context::Context;
use crate::data_abort::data_abort;
use crate::enter::{ALL_REGISTERS, LEAVE_EXIT, RESUME};
use crate::machine::Machine;
use crate::outcome::{Trap, advance, advance_in_place, fault, leave, resume, undefined};
use crate::short_call::hypercall;
use crate::sysreg::read_register;
use crate::wait::wait_for;
use crate::{gic, psci, status, system};
use bulkhead_abi::HealthClass;
use bulkhead_abi::hypercall::FUNCTION_BASE;
use bulkhead_abi::log::{self, Exits};
use bulkhead_arch_aarch64_core::syndrome::{
    DETAILS, EC_CP14, EC_CP14_MEMORY, EC_CP14_PAIR, EC_CP15, EC_CP15_PAIR, EC_DATA_ABORT, EC_FP, EC_HVC32,
    EC_HVC64, EC_INSTRUCTION_ABORT, EC_SERROR, EC_SMC32, EC_SMC64, EC_SVC64, EC_SVE, EC_SYSTEM, EC_UNKNOWN,
    EC_VMRS, EC_WFX, ISS_READ, class, second_target, target,
};
use bulkhead_arch_aarch64_core::{aarch32, pstate};

/// ESR_EL2 of `hvc #0` in AArch64 state: class, a long instruction (IL), immediate 0 (Arm DDI 0487 D19.2.37).
const HVC_0: u64 = EC_HVC64 << 26 | 1 << 25;

/// Handles a synchronous exception. The arguments are the same for every handler, as `entry` passes them; the
/// free one is where the functions that end this one have an argument of their own.
///
/// # Safety
/// Called by `entry` only: `context` is the current vCPU's, `machine` is this pCPU's and was lent by `run`,
/// which uses neither until the handler has returned. A context is never inside a machine. `exits` are the
/// vCPU's.
pub(crate) unsafe extern "C" fn on_synchronous(
    context: &mut Context,
    machine: &mut Machine,
    syndrome: u64,
    _free: u64,
    exits: &Exits,
) -> u64 {
    synchronous(machine, context, syndrome, Some(exits))
}

/// Handles a synchronous exception again: [`on_synchronous`] has answered [`ALL_REGISTERS`].
///
/// # Safety
/// As for [`on_synchronous`].
pub(crate) unsafe extern "C" fn on_synchronous_complete(
    context: &mut Context,
    machine: &mut Machine,
    syndrome: u64,
) -> u64 {
    synchronous(machine, context, syndrome, None)
}

/// Answers a synchronous exception. The exception is counted if there are counters; if there are none, it
/// has been counted, and the registers are complete.
#[inline(always)]
fn synchronous(machine: &mut Machine, context: &mut Context, syndrome: u64, exits: Option<&Exits>) -> u64 {
    let trap = Trap {
        syndrome,
        complete: exits.is_none(),
    };
    if exits.is_none() {
        // Only these ask for complete registers.
        return match class(trap.syndrome) {
            EC_DATA_ABORT => data_abort::<false>(machine, context, trap),
            EC_SYSTEM => system::access(machine, context, trap),
            _ => rare(machine, context, trap, exits),
        };
    }
    // By far the most frequent call has this one syndrome, and costs others less than its class would.
    if trap.syndrome == HVC_0 {
        count(exits, EC_HVC64);
        return psci::call_0(context, machine);
    }
    match class(trap.syndrome) {
        EC_DATA_ABORT => {
            count(exits, EC_DATA_ABORT);
            data_abort::<false>(machine, context, trap)
        }
        EC_WFX => {
            count(exits, EC_WFX);
            wait_for(context, trap.syndrome)
        }
        EC_SYSTEM => {
            count(exits, EC_SYSTEM);
            system::access(machine, context, trap)
        }
        EC_SVC64 => {
            count(exits, EC_SVC64);
            task_call(machine, context, trap.syndrome)
        }
        EC_SMC64 => {
            count(exits, EC_SMC64);
            advance_in_place(context, trap.syndrome);
            psci::call(context, machine, trap.syndrome & 0xFFFF)
        }
        _ => rare(machine, context, trap, exits),
    }
}

/// Answers a synchronous exception of another class.
#[inline(never)]
fn rare(machine: &mut Machine, context: &mut Context, trap: Trap, exits: Option<&Exits>) -> u64 {
    count(exits, class(trap.syndrome));
    if read_register!("spsr_el2") & pstate::AARCH32 != 0 {
        return from_aarch32(machine, context, trap);
    }
    other_exceptions(machine, context, trap.syndrome)
}

/// Counts an exception of this class. Where the class is known, one counter goes up, and nothing is decided.
#[inline(always)]
fn count(exits: Option<&Exits>, class: u64) {
    let Some(exits) = exits else { return };
    log::count(match class {
        EC_HVC64 | EC_HVC32 | EC_SMC64 | EC_SMC32 | EC_SVC64 => &exits.calls,
        EC_DATA_ABORT => &exits.accesses,
        EC_SYSTEM | EC_CP15..=EC_CP14_MEMORY | EC_CP14_PAIR | EC_VMRS => &exits.instructions,
        EC_WFX => &exits.idle,
        EC_FP => &exits.fp,
        _ => &exits.other,
    });
}

/// Handles a synchronous exception of a VM with a 32-bit kernel. This handler has a vector of its own, so
/// that other VMs pay nothing for the registers' names.
///
/// # Safety
/// As for [`on_synchronous`].
pub(crate) unsafe extern "C" fn on_synchronous_aarch32(
    context: &mut Context,
    machine: &mut Machine,
    syndrome: u64,
    _free: u64,
    exits: &Exits,
) -> u64 {
    count(Some(exits), class(syndrome));
    synchronous_aarch32(machine, context, syndrome, false)
}

/// Handles a synchronous exception again: [`on_synchronous_aarch32`] has answered [`ALL_REGISTERS`].
///
/// # Safety
/// As for [`on_synchronous`].
pub(crate) unsafe extern "C" fn on_synchronous_aarch32_complete(
    context: &mut Context,
    machine: &mut Machine,
    syndrome: u64,
) -> u64 {
    synchronous_aarch32(machine, context, syndrome, true)
}

/// Answers a synchronous exception of a VM with a 32-bit kernel.
#[inline(always)]
fn synchronous_aarch32(machine: &mut Machine, context: &mut Context, syndrome: u64, complete: bool) -> u64 {
    let trap = |syndrome| Trap { syndrome, complete };
    match class(syndrome) {
        EC_HVC32 if syndrome & 0xFFFF == status::VISIT && status::is_visit() => LEAVE_EXIT,
        EC_HVC32 => psci::call_aarch32(context, machine, syndrome & 0xFFFF),
        EC_DATA_ABORT => data_abort::<true>(machine, context, trap(with_view(syndrome, 16))),
        EC_VMRS => from_aarch32(machine, context, trap(with_view(syndrome, 5))),
        _ => from_aarch32(machine, context, trap(syndrome)),
    }
}

/// Returns the syndrome with the general register at bits `shift` and up named as it is in x0..x30.
fn with_view(syndrome: u64, shift: u32) -> u64 {
    aarch32::with_view(syndrome, shift, read_register!("spsr_el2"))
}

/// Answers the other exceptions from AArch32 state: of a VM with a 32-bit kernel, or of a 32-bit program.
#[inline(never)]
fn from_aarch32(machine: &mut Machine, context: &mut Context, trap: Trap) -> u64 {
    // The instruction may name any register, and an exception is taken in the banked ones.
    if !trap.complete {
        return ALL_REGISTERS;
    }
    let syndrome = trap.syndrome;
    let class = class(syndrome);
    let conditional = matches!(class, EC_WFX | EC_CP15..=EC_SMC32) && class != EC_HVC32;
    if conditional && !aarch32::passes(syndrome, read_register!("spsr_el2")) {
        advance(context, syndrome);
        return RESUME;
    }
    match class {
        EC_WFX => wait_for(context, syndrome),
        EC_HVC32 => psci::call_aarch32(context, machine, syndrome & 0xFFFF),
        EC_SMC32 => {
            advance(context, syndrome);
            psci::call_aarch32(context, machine, 0)
        }
        EC_CP15 => system::access_cp15(machine, context, syndrome),
        EC_CP15_PAIR => system::access_cp15_pair(machine, context, syndrome),
        EC_CP14 | EC_CP14_PAIR if pstate::is_privileged_aarch32(read_register!("spsr_el2")) => {
            // These are the debug registers of a CPU without debug: they read as zero, and no code listens to
            // writes.
            if syndrome & ISS_READ != 0 {
                context.write_general(target(syndrome), 0);
                if class == EC_CP14_PAIR {
                    context.write_general(second_target(syndrome), 0);
                }
            }
            advance(context, syndrome);
            RESUME
        }
        EC_VMRS => {
            let value = system::media_features(syndrome >> 10 & 0xF);
            context.write_general(target(syndrome), value);
            advance(context, syndrome);
            RESUME
        }
        _ => other_exceptions(machine, context, syndrome),
    }
}

/// Handles the other exception classes.
#[inline(never)]
fn other_exceptions(machine: &mut Machine, context: &mut Context, syndrome: u64) -> u64 {
    let reason = match class(syndrome) {
        EC_FP => {
            machine.fp_take(context);
            RESUME
        }
        EC_HVC64 => psci::refuse(context),
        EC_INSTRUCTION_ABORT => memory_fault(context, syndrome, abort_address(syndrome)),
        EC_UNKNOWN | EC_SVE => undefined(machine, context, syndrome),
        EC_CP15..=EC_CP14_MEMORY | EC_CP14_PAIR => undefined(machine, context, syndrome),
        _ => fault(context, other_class(context), syndrome, None),
    };
    if reason == RESUME {
        return resume(machine, context);
    }
    reason
}

/// See [`on_synchronous`].
///
/// # Safety
/// As for [`on_synchronous`].
pub(crate) unsafe extern "C" fn on_interrupt(
    context: &mut Context,
    machine: &mut Machine,
    exits: &Exits,
) -> u64 {
    log::count(&exits.interrupts);
    let line = gic::acknowledge();
    if gic::deliver_timer(&machine.irq, &mut context.irq, line) {
        return RESUME;
    }
    if gic::take_kick(&machine.irq, &context.irq, line) {
        return resume(machine, context);
    }
    interrupted(machine, context, line)
}

/// Handles any other acknowledged interrupt.
#[inline(never)]
fn interrupted(machine: &mut Machine, context: &mut Context, line: u32) -> u64 {
    match gic::interrupt(&mut machine.irq, &mut context.irq, line) {
        None => resume(machine, context),
        Some(exit) => leave(context, exit),
    }
}

/// Handles an SError that became pending while the guest ran: its device or memory access is the cause.
///
/// # Safety
/// As for [`on_synchronous`].
pub(crate) unsafe extern "C" fn on_serror(
    context: &mut Context,
    _machine: &mut Machine,
    exits: &Exits,
) -> u64 {
    log::count(&exits.other);
    let syndrome = read_register!("esr_el2") & DETAILS | EC_SERROR << 26;
    fault(context, HealthClass::Memory, syndrome, None)
}

/// Returns the class of an event that is neither about memory nor a known trap.
fn other_class(context: &Context) -> HealthClass {
    if context.is_task() {
        HealthClass::Task
    } else {
        HealthClass::System
    }
}

/// Handles SVC of a task: the hypercall, or nothing else.
#[inline(never)]
fn task_call(machine: &mut Machine, context: &mut Context, syndrome: u64) -> u64 {
    let function = context.read_general(0);
    if syndrome & 0xFFFF == 0 && function & 0xFFFF_0000 == u64::from(FUNCTION_BASE) {
        return hypercall(context, machine);
    }
    context.write_general(0, bulkhead_abi::Error::NotSupported as i64 as u64);
    RESUME
}
