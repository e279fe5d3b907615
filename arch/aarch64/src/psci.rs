// SPDX-License-Identifier: Apache-2.0
//! Calls of a guest by HVC and SMC: PSCI, SMCCC and the hypercalls. `bulkhead_arch_aarch64_core` knows the
//! answers.

use crate::context::Context;
use crate::enter::{LEAVE_CPU_ON, LEAVE_HYPERCALL, RESUME};
use crate::machine::Machine;
use crate::outcome::leave;
use crate::short_call::hypercall;
use crate::{space, wait};
use bulkhead_abi::hypercall::FUNCTION_BASE;
use bulkhead_arch_aarch64_core::psci::{
    self, Answer, CPU_ON_64, Caller, INVALID_ADDRESS, NOT_SUPPORTED, NULL_HYPERCALL, PSCI_1_1, PSCI_VERSION,
    SUCCESS, is_beyond_aarch32, refuse_start,
};
use bulkhead_arch_api::{Exit, GuestPhys};

/// Handles an HVC or SMC of a VM. The PC is already after the instruction.
#[inline(always)]
pub(crate) fn call(context: &mut Context, machine: &mut Machine, immediate: u64) -> u64 {
    if immediate != 0 {
        return refuse(context);
    }
    call_0(context, machine)
}

/// Handles a call with another immediate.
pub(crate) fn refuse(context: &mut Context) -> u64 {
    answer(context, NOT_SUPPORTED)
}

/// Handles a call with the immediate 0, the only one with a meaning. Hypercalls are looked for first.
#[inline(always)]
pub(crate) fn call_0(context: &mut Context, machine: &mut Machine) -> u64 {
    let function = context.read_general(0) as u32;
    if function & 0xFFFF_0000 == FUNCTION_BASE {
        if function == NULL_HYPERCALL {
            let [x0, x1, x2, x3, x4, ..] = &mut context.general;
            (*x0, *x1, *x2, *x3, *x4) = (SUCCESS, 0, 0, 0, 0);
            return RESUME;
        }
        return hypercall(context, machine);
    }
    if function == PSCI_VERSION {
        return answer(context, PSCI_1_1);
    }
    start_or_other(context)
}

/// Handles any other call. The call of a start is looked for first.
#[inline(never)]
fn start_or_other(context: &mut Context) -> u64 {
    if context.read_general(0) as u32 == CPU_ON_64 {
        return cpu_on(context);
    }
    call_other(context)
}

/// Handles an HVC or SMC from AArch32 state: arguments have 32 bits.
pub(crate) fn call_aarch32(context: &mut Context, machine: &mut Machine, immediate: u64) -> u64 {
    for number in 0..7 {
        context.write_general(number, u64::from(context.read_general(number) as u32));
    }
    if is_beyond_aarch32(context.read_general(0) as u32) {
        return answer(context, NOT_SUPPORTED);
    }
    call(context, machine, immediate)
}

#[inline(never)]
fn call_other(context: &mut Context) -> u64 {
    let [function, first, second, third, ..] = context.general;
    let is_memory = |address| space::is_memory(context.plan.partition, GuestPhys(address));
    match psci::answer(
        function as u32,
        [first, second, third],
        caller(context),
        is_memory,
    ) {
        Answer::Value(value) => answer(context, value),
        Answer::Pair(values) => {
            let [x0, x1, ..] = &mut context.general;
            [*x0, *x1] = values;
            RESUME
        }
        Answer::Values(values) => {
            let [x0, x1, x2, x3, ..] = &mut context.general;
            [*x0, *x1, *x2, *x3] = values;
            RESUME
        }
        Answer::Hypercall => LEAVE_HYPERCALL,
        Answer::Start(arguments) => {
            let [_, x1, x2, x3, ..] = &mut context.general;
            [*x1, *x2, *x3] = arguments;
            LEAVE_CPU_ON
        }
        Answer::Off => leave(context, Exit::CpuOff),
        Answer::Power(target) => leave(context, Exit::CpuPower { target }),
        Answer::Reset(kind) => leave(context, Exit::Reset(kind)),
        Answer::Wait => {
            context.write_general(0, SUCCESS);
            wait::idle(context)
        }
    }
}

#[inline(always)]
fn caller(context: &Context) -> Caller {
    Caller {
        vcpus: context.plan.count,
        aarch32: context.is_aarch32(),
    }
}

/// Puts the result into x0 and goes on.
fn answer(context: &mut Context, result: u64) -> u64 {
    context.write_general(0, result);
    RESUME
}

/// Handles CPU_ON with x1..x3 as arguments.
#[inline(never)]
fn cpu_on(context: &mut Context) -> u64 {
    let [_, target, entry, ..] = context.general;
    if let Some(error) = refuse_start(caller(context), target, entry) {
        return answer(context, error);
    }
    if space::is_in_largest(context.plan.partition, GuestPhys(entry)) {
        return LEAVE_CPU_ON;
    }
    cpu_on_elsewhere(context, GuestPhys(entry))
}

/// Handles CPU_ON with an entry that is not in the partition's largest region.
#[inline(never)]
fn cpu_on_elsewhere(context: &mut Context, entry: GuestPhys) -> u64 {
    if space::is_memory(context.plan.partition, entry) {
        LEAVE_CPU_ON
    } else {
        answer(context, INVALID_ADDRESS)
    }
}
