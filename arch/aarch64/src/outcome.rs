// SPDX-License-Identifier: Apache-2.0
//! The end of a handler: the guest goes on, after its instruction or in an exception, or is left with an
//! exit.

use crate::context::{Context, Pending};
use crate::enter::{LEAVE_EXIT, RESUME};
use crate::machine::Machine;
use crate::sysreg::{read_register, write_guest_register};
use crate::{gic, inject};
use bulkhead_abi::HealthClass;
use bulkhead_arch_aarch64_core::pstate::{AARCH32, is_el1, is_privileged_aarch32, stepped};
use bulkhead_arch_aarch64_core::syndrome::{has_virtual_address, length};
use bulkhead_arch_api::{Exit, FaultReport, GuestPhys, VcpuSet};

/// A synchronous exception.
#[derive(Clone, Copy)]
pub(crate) struct Trap {
    /// ESR_EL2.
    pub(crate) syndrome: u64,
    /// The context holds x19..x29 too.
    pub(crate) complete: bool,
}

impl Trap {
    /// Tells whether the context does not hold general register `number`.
    #[inline(always)]
    pub(crate) const fn misses(self, number: u8) -> bool {
        number.wrapping_sub(19) < 11 && !self.complete
    }
}

/// Goes on in the guest, whose interrupts may have to be looked at.
#[inline(always)]
pub(crate) fn resume(machine: &mut Machine, context: &mut Context) -> u64 {
    if gic::is_settled(&context.irq) {
        return RESUME;
    }
    settle(machine, context)
}

#[inline(never)]
fn settle(machine: &mut Machine, context: &mut Context) -> u64 {
    let wake = gic::settle(&mut machine.irq, &mut context.irq);
    if wake.is_empty() {
        RESUME
    } else {
        leave(context, Exit::Wake(wake))
    }
}

/// Leaves the guest with this exit.
#[inline]
pub(crate) fn leave(context: &mut Context, exit: Exit) -> u64 {
    context.exit = exit;
    LEAVE_EXIT
}

/// Steps over the instruction that trapped.
#[inline(never)]
pub(crate) fn advance(context: &Context, syndrome: u64) {
    advance_in_place(context, syndrome);
}

/// Does the same as [`advance`] without a call, for frequent exits: a handler without calls needs no frame.
#[inline(always)]
pub(crate) fn advance_in_place(context: &Context, syndrome: u64) {
    write_guest_register!(
        "elr_el2",
        read_register!("elr_el2").wrapping_add(length(syndrome))
    );
    let pstate = read_register!("spsr_el2");
    if pstate & AARCH32 != 0 || context.debug.stepping() {
        write_guest_register!("spsr_el2", stepped(pstate));
    }
}

/// Makes a report of the guest's present instruction.
pub(crate) fn report(class: HealthClass, syndrome: u64, address: Option<GuestPhys>) -> FaultReport {
    let virtual_address = has_virtual_address(syndrome).then(|| read_register!("far_el2"));
    FaultReport {
        class,
        syndrome,
        pc: read_register!("elr_el2"),
        address,
        virtual_address,
    }
}

/// Leaves the guest with a fault.
pub(crate) fn fault(
    context: &mut Context,
    class: HealthClass,
    syndrome: u64,
    address: Option<GuestPhys>,
) -> u64 {
    context.pending = Pending::Nothing;
    leave(context, Exit::Fault(report(class, syndrome, address)))
}

/// Answers an instruction that a machine without the feature would not know. The use of such an instruction
/// is a fault of the partition, unless it comes from EL0 of a VM. A program is no reason to end a machine
/// whose kernel lets the program run.
pub(crate) fn undefined(machine: &mut Machine, context: &mut Context, syndrome: u64) -> u64 {
    if context.is_task() {
        return fault(context, HealthClass::Task, syndrome, None);
    }
    let pstate = read_register!("spsr_el2");
    if context.is_aarch32() {
        if is_privileged_aarch32(pstate) {
            return fault(context, HealthClass::System, syndrome, None);
        }
        inject::undefined_now_aarch32(machine, context);
        return RESUME;
    }
    if !is_el1(pstate) {
        inject::undefined_now();
        return RESUME;
    }
    fault(context, HealthClass::System, syndrome, None)
}

/// Finishes an instruction that may have given this vCPU or others something to do.
#[inline]
pub(crate) fn resume_or_wake(machine: &mut Machine, context: &mut Context, wake: VcpuSet) -> u64 {
    if wake.is_empty() {
        resume(machine, context)
    } else {
        leave(context, Exit::Wake(wake))
    }
}

/// Finishes an instruction that sends software-generated interrupt `line` to the vCPU with the index
/// `target`.
#[inline(never)]
pub(crate) fn send_to_one(
    machine: &mut Machine,
    context: &mut Context,
    syndrome: u64,
    target: usize,
    line: u32,
) -> u64 {
    advance_in_place(context, syndrome);
    let wake = gic::send_to_one(&mut machine.irq, &context.irq, target, line);
    resume_or_wake(machine, context, wake)
}
