// SPDX-License-Identifier: Apache-2.0
//! Hypercalls and registers that the kernel answers without an exit: the handler asks what the kernel has
//! lent for this run ([`ShortCalls`]), on the guest's way back. docs/paths.md counts the instructions.

use crate::context::Context;
use crate::enter::{LEAVE_HYPERCALL, RESUME};
use crate::gic::{self, Pulsed};
use crate::machine::{Lent, Machine};
use crate::outcome::leave;
use bulkhead_abi::Operation;
use bulkhead_arch_api::{Exit, PartitionId, ShortCalls, VcpuSet, VirtualLine};
use core::ptr::NonNull;

const CALL: u16 = Operation::PortSendReceiveDonate as u16;
const REPLY_RECEIVE: u16 = Operation::PortReceiveDonate as u16;

/// Lends `calls`. The loan is over before `calls` is.
#[inline(always)]
pub(crate) fn lend<C: ShortCalls<Machine>>(calls: &C) -> Option<Lent> {
    Some(Lent {
        calls: NonNull::from(calls).as_ptr().cast_const().cast(),
        call: ask::<C>,
        register: ask_register::<C>,
    })
}

/// Answers a hypercall whose arguments are in the general registers, or leaves with it.
#[inline(always)]
pub(crate) fn hypercall(context: &mut Context, machine: &mut Machine) -> u64 {
    let Some(lent) = machine.lent else {
        return LEAVE_HYPERCALL;
    };
    // SAFETY: `run_answering` has lent all together, and the guest runs within that call.
    unsafe { (lent.call)(context, machine, lent.calls) }
}

/// Answers an access of `size` bytes to a register in the vCPU's window. Returns `None` if nothing was done.
#[inline(always)]
pub(crate) fn register(
    context: &Context,
    machine: &Machine,
    offset: u64,
    size: u8,
    stored: Option<u64>,
) -> Option<u64> {
    let lent = machine.lent?;
    // SAFETY: as in `hypercall`.
    unsafe { (lent.register)(context.plan.partition, offset, size, stored, lent.calls) }
}

/// Asks for a register.
///
/// # Safety
/// As for [`ask`].
unsafe fn ask_register<C: ShortCalls<Machine>>(
    caller: PartitionId,
    offset: u64,
    size: u8,
    stored: Option<u64>,
    calls: *const (),
) -> Option<u64> {
    // SAFETY: the caller's promise.
    unsafe { &*calls.cast::<C>() }.register(caller, offset, size, stored)
}

/// Asks. Doorbells come first, and everything about them is done in place or by a call in tail position: so
/// their way needs no frame.
///
/// # Safety
/// `calls` is a `C` that lives, and is not part of the machine.
unsafe fn ask<C: ShortCalls<Machine>>(context: &mut Context, machine: &mut Machine, calls: *const ()) -> u64 {
    // SAFETY: the caller's promise.
    let calls = unsafe { &*calls.cast::<C>() };
    let Some(registers) = context.general.first_chunk_mut::<7>() else {
        return LEAVE_HYPERCALL;
    };
    let [operation, ..] = *registers;
    if operation as u16 != Operation::ChannelDoorbell as u16 {
        // These lead to another vCPU, or wait.
        if matches!(operation as u16, CALL | REPLY_RECEIVE) {
            return LEAVE_HYPERCALL;
        }
        return ask_other(context, machine, calls);
    }
    let Some((partition, line)) = calls.bell(context.plan.partition, registers) else {
        return LEAVE_HYPERCALL;
    };
    let [status, x1, x2, x3, x4, ..] = registers;
    (*status, *x1, *x2, *x3, *x4) = (0, 0, 0, 0, 0);
    match gic::pulse_quickly(&machine.irq, partition, line) {
        Pulsed::Done => RESUME,
        Pulsed::Woken(vcpu) => leave(context, Exit::Wake(VcpuSet::of(vcpu))),
        Pulsed::Loose => ring(context, machine, partition, line),
    }
}

/// Ends a doorbell whose line no vCPU has.
#[inline(never)]
fn ring(context: &mut Context, machine: &mut Machine, partition: PartitionId, line: VirtualLine) -> u64 {
    let woken = gic::pulsed(&mut machine.irq, partition, line);
    done(context, woken)
}

/// Asks for any other call.
#[inline(never)]
fn ask_other<C: ShortCalls<Machine>>(context: &mut Context, machine: &mut Machine, calls: &C) -> u64 {
    let registers = context.general.first_chunk_mut();
    match registers.and_then(|registers| calls.answer(machine, context.id, registers)) {
        Some(woken) => done(context, woken),
        None => LEAVE_HYPERCALL,
    }
}

/// Ends a call that was answered. Nothing was done to the vCPU's own interrupts.
#[inline(always)]
fn done(context: &mut Context, woken: VcpuSet) -> u64 {
    if woken.is_empty() {
        RESUME
    } else {
        leave(context, Exit::Wake(woken))
    }
}
