// SPDX-License-Identifier: Apache-2.0
//! Accesses of a guest that stage 2 refused. Registers of its virtual interrupt controller are answered here,
//! registers of other virtual devices by the kernel. Everything else is a fault.

use crate::abort::{abort_address, access, faulting_address, memory_fault, misaligned};
use crate::context::{Context, Pending};
use crate::enter::{ALL_REGISTERS, LEAVE_REGISTER, RESUME};
use crate::machine::Machine;
use crate::outcome::{self, Trap, advance, advance_in_place, resume, resume_or_wake};
use crate::sysreg::{read_register, write_guest_register};
use crate::{flash, gic, short_call, undescribed};
use bulkhead_arch_aarch64_core::data::{Load, stored};
use bulkhead_arch_aarch64_core::pstate::{
    AARCH32, BIG_ENDIAN, SCTLR_BIG_ENDIAN_EL0, SCTLR_BIG_ENDIAN_EL1, is_big_endian, stepped,
};
use bulkhead_arch_aarch64_core::syndrome::{
    DataAbort, DataAccess, data_abort as decode, data_register, is_part_of_word, is_word, is_write, length,
    refused_access, size,
};
use bulkhead_arch_api::{AccessKind, GuestPhys, REGISTER_WINDOW};

/// Handles a load or store that stage 2 refused, of a VM whose kernel is 32-bit, or not.
#[inline(always)]
pub(crate) fn data_abort<const IS_AARCH32: bool>(
    machine: &mut Machine,
    context: &mut Context,
    trap: Trap,
) -> u64 {
    let register = data_register(trap.syndrome);
    // A word, mostly of the interrupt controller.
    if is_word(trap.syndrome) {
        if !trap.misses(register)
            && let pstate = read_register!("spsr_el2")
            && is_little_endian::<IS_AARCH32>(pstate)
        {
            let address = faulting_address();
            if !is_write(trap.syndrome) {
                if let Some(value) = gic::read_word(&context.irq, address) {
                    context.write_general(register, u64::from(value));
                    step_over::<IS_AARCH32>(context, trap.syndrome, pstate);
                    return resume(machine, context);
                }
            } else {
                let value = context.read_general(register) as u32;
                if let Some(sent) = gic::sent_by_word(&context.irq, address, value) {
                    return send_by_word(machine, context, trap.syndrome, sent.0, sent.1);
                }
                if let Some(changed) = gic::write_word(&context.irq, address, value) {
                    step_over::<IS_AARCH32>(context, trap.syndrome, pstate);
                    if changed == 0 {
                        return resume(machine, context);
                    }
                    return enable_changed(machine, context, address, changed);
                }
            }
            if !trap.complete && is_register(context, address, 4) {
                return touch_register(machine, context, trap.syndrome, address);
            }
            if let Some(offset) = gic::own_offset(&context.irq, address) {
                return redistributor(machine, context, trap, offset);
            }
        }
    } else if !trap.complete
        && is_part_of_word(trap.syndrome)
        && let address = faulting_address()
        && is_register(context, address, size(trap.syndrome))
        && !trap.misses(register)
        && is_little_endian::<IS_AARCH32>(read_register!("spsr_el2"))
    {
        return touch_register(machine, context, trap.syndrome, address);
    }
    emulate(machine, context, trap)
}

/// Tells whether an access is for a register in the vCPU's window, and aligned.
#[inline(always)]
fn is_register(context: &Context, GuestPhys(address): GuestPhys, size: u8) -> bool {
    let alignment = u64::from(size) - 1;
    address & (!(REGISTER_WINDOW - 1) | alignment) == context.window
}

/// Handles an access to a register in the vCPU's window. Mostly the kernel answers at once.
#[inline(always)]
fn touch_register(machine: &mut Machine, context: &mut Context, syndrome: u64, address: GuestPhys) -> u64 {
    let offset = address.0 % REGISTER_WINDOW;
    if is_write(syndrome) {
        store_register(machine, context, syndrome, offset)
    } else {
        load_register(machine, context, syndrome, offset)
    }
}

#[inline(never)]
fn load_register(machine: &mut Machine, context: &mut Context, syndrome: u64, offset: u64) -> u64 {
    let Some(value) = short_call::register(context, machine, offset, size(syndrome), None) else {
        return leave_for_register(context, syndrome);
    };
    context.write_general(data_register(syndrome), value);
    advance_in_place(context, syndrome);
    resume(machine, context)
}

#[inline(never)]
fn store_register(machine: &mut Machine, context: &mut Context, syndrome: u64, offset: u64) -> u64 {
    let size = size(syndrome);
    let value = stored(context.read_general(data_register(syndrome)), size, false);
    if short_call::register(context, machine, offset, size, Some(value)).is_none() {
        return leave_for_register(context, syndrome);
    }
    advance_in_place(context, syndrome);
    resume(machine, context)
}

#[inline(always)]
fn leave_for_register(context: &mut Context, syndrome: u64) -> u64 {
    context.trapped = syndrome;
    LEAVE_REGISTER
}

/// Handles a store of a word that sends a software-generated interrupt to one vCPU, by its index.
#[inline(never)]
fn send_by_word(
    machine: &mut Machine,
    context: &mut Context,
    syndrome: u64,
    target: usize,
    line: u32,
) -> u64 {
    if !gic::send_to_self(&mut context.irq, target, line) {
        return outcome::send_to_one(machine, context, syndrome, target, line);
    }
    advance_in_place(context, syndrome);
    resume(machine, context)
}

/// Handles an access to a word of the vCPU's redistributor.
#[inline(never)]
fn redistributor(machine: &mut Machine, context: &mut Context, trap: Trap, offset: u32) -> u64 {
    let register = data_register(trap.syndrome);
    if !is_write(trap.syndrome) {
        let Some(value) = gic::read_own_word(&context.irq, offset) else {
            return emulate(machine, context, trap);
        };
        context.write_general(register, u64::from(value));
        advance_in_place(context, trap.syndrome);
        return resume(machine, context);
    }
    match gic::write_own_word(&context.irq, offset, context.read_general(register) as u32) {
        None => emulate(machine, context, trap),
        Some(changed) => {
            advance_in_place(context, trap.syndrome);
            if changed == 0 {
                return resume(machine, context);
            }
            enable_changed(machine, context, faulting_address(), changed)
        }
    }
}

#[inline(never)]
fn enable_changed(machine: &mut Machine, context: &mut Context, address: GuestPhys, changed: u32) -> u64 {
    let wake = gic::enable_changed(&mut machine.irq, &context.irq, address, changed);
    resume_or_wake(machine, context, wake)
}

#[inline(never)]
fn emulate(machine: &mut Machine, context: &mut Context, trap: Trap) -> u64 {
    let syndrome = trap.syndrome;
    let (address, access) = match decode(syndrome) {
        DataAbort::Emulate(access) => (faulting_address(), access),
        DataAbort::CacheMaintenance => {
            // There is no memory at the address, so nothing there could be cached.
            advance(context, syndrome);
            return RESUME;
        }
        DataAbort::Undescribed => return undescribed::emulate(machine, context, trap),
        DataAbort::Fault => match refused(context, syndrome) {
            Some(found) => found,
            None => return memory_fault(context, syndrome, abort_address(syndrome)),
        },
    };
    let at = Location {
        address,
        access,
        big_endian: is_big_endian(read_register!("spsr_el2"), read_register!("sctlr_el1")),
    };
    if at.address.0 & (u64::from(access.size) - 1) != 0 {
        return misaligned(context, syndrome, at.address);
    }
    if trap.misses(access.register) {
        return ALL_REGISTERS;
    }
    if access.write {
        store(machine, context, syndrome, at)
    } else {
        load(machine, context, syndrome, at)
    }
}

/// Returns the access that stage 2 refused although memory is mapped there, and its address, if the access is
/// one to a virtual flash. Everywhere else such an access is a fault.
#[cold]
#[inline(never)]
fn refused(context: &Context, syndrome: u64) -> Option<(GuestPhys, DataAccess)> {
    let address = abort_address(syndrome)?;
    let access = refused_access(syndrome)?;
    flash::covers(context.plan.partition, address).then_some((address, access))
}

/// An access, its address, and the order of the bytes in its register.
struct Location {
    address: GuestPhys,
    access: DataAccess,
    big_endian: bool,
}

/// Tells in two looks whether [`is_big_endian`] is surely false. A 32-bit program under a 64-bit kernel is
/// not looked at so closely.
#[inline(always)]
fn is_little_endian<const IS_AARCH32: bool>(pstate: u64) -> bool {
    if IS_AARCH32 {
        return pstate & BIG_ENDIAN == 0;
    }
    pstate & AARCH32 == 0 && read_register!("sctlr_el1") & (SCTLR_BIG_ENDIAN_EL0 | SCTLR_BIG_ENDIAN_EL1) == 0
}

/// Does the same as [`advance_in_place`], where it is known whether the guest is in AArch32 state.
#[inline(always)]
fn step_over<const IS_AARCH32: bool>(context: &Context, syndrome: u64, pstate: u64) {
    write_guest_register!(
        "elr_el2",
        read_register!("elr_el2").wrapping_add(length(syndrome))
    );
    if IS_AARCH32 || context.debug.stepping() {
        write_guest_register!("spsr_el2", stepped(pstate));
    }
}

#[inline]
fn load(machine: &mut Machine, context: &mut Context, syndrome: u64, at: Location) -> u64 {
    let load = Load {
        register: at.access.register,
        size: at.access.size,
        sign_extend: at.access.sign_extend,
        wide: at.access.wide,
        big_endian: at.big_endian,
    };
    if let Some(answer) = gic::mmio_read(&mut machine.irq, &mut context.irq, at.address, at.access.size) {
        context.finish_load(load, answer.value);
        advance(context, syndrome);
        return resume_or_wake(machine, context, answer.wake);
    }
    context.pending = Pending::Load {
        load,
        length: length(syndrome),
    };
    access(context, syndrome, at.address, at.access.size, AccessKind::Read)
}

#[inline]
fn store(machine: &mut Machine, context: &mut Context, syndrome: u64, at: Location) -> u64 {
    let value = stored(
        context.read_general(at.access.register),
        at.access.size,
        at.big_endian,
    );
    if let Some(answer) = gic::mmio_write(
        &mut machine.irq,
        &mut context.irq,
        at.address,
        at.access.size,
        value,
    ) {
        advance(context, syndrome);
        return resume_or_wake(machine, context, answer.wake);
    }
    context.pending = Pending::Store {
        length: length(syndrome),
    };
    access(
        context,
        syndrome,
        at.address,
        at.access.size,
        AccessKind::Write(value),
    )
}
