// SPDX-License-Identifier: Apache-2.0
//! System registers of a guest that trap. `bulkhead_arch_aarch64_core` says what each access does, and this
//! module does it.
//!
//! A register that is absent is a health event, and by default undefined to the guest, exactly as on a CPU
//! without the feature.

use crate::context::{Context, Pending};
use crate::enter::{ALL_REGISTERS, RESUME};
use crate::gic;
use crate::machine::Machine;
use crate::outcome::{
    Trap, advance, advance_in_place, fault, resume, resume_or_wake, send_to_one, undefined,
};
use crate::sysreg::read_register;
use bulkhead_abi::HealthClass;
use bulkhead_arch_aarch64_core::aarch32;
use bulkhead_arch_aarch64_core::registers::{
    self, CpuInterface, ICC_SGI1R_EL1, IdRegister, NAME, Read, Write, identification,
};
use bulkhead_arch_aarch64_core::syndrome::{ISS_READ, length, second_target, target};
use bulkhead_arch_vgic::Vgic;

/// A general register that takes no value.
const ZERO_REGISTER: u8 = 31;
/// True if a VM's CPU interface is system registers.
const IS_GICV3: bool = cfg!(not(feature = "gic-v2"));
const CPU_INTERFACE: CpuInterface = if IS_GICV3 {
    CpuInterface::Registers
} else {
    CpuInterface::Memory
};

/// Handles a trapped MRS, MSR or SYS. The frequent one comes first: a software-generated interrupt.
#[inline(always)]
pub(crate) fn access(machine: &mut Machine, context: &mut Context, trap: Trap) -> u64 {
    let target = target(trap.syndrome);
    if trap.misses(target) {
        return ALL_REGISTERS;
    }
    if IS_GICV3 && trap.syndrome & (NAME | ISS_READ) == ICC_SGI1R_EL1 {
        let value = context.read_general(target);
        if let Some((target, line)) = Vgic::single_target(value) {
            if gic::send_to_self(&mut context.irq, target, line) {
                advance_in_place(context, trap.syndrome);
                return resume(machine, context);
            }
            return send_to_one(machine, context, trap.syndrome, target, line);
        }
    }
    access_other(machine, context, trap.syndrome)
}

/// Handles a trapped MCR or MRC of CP15. All general registers are in the context.
pub(crate) fn access_cp15(machine: &mut Machine, context: &mut Context, syndrome: u64) -> u64 {
    access_other(machine, context, aarch32::as_system_access(syndrome))
}

/// Handles a trapped MCRR or MRRC of CP15. All general registers are in the context.
pub(crate) fn access_cp15_pair(machine: &mut Machine, context: &mut Context, syndrome: u64) -> u64 {
    let (low, high) = (target(syndrome), second_target(syndrome));
    let Some(name) = aarch32::register_of_pair(syndrome) else {
        return undefined(machine, context, syndrome);
    };
    if syndrome & ISS_READ == 0 {
        let value = context.read_general(high) << 32 | context.read_general(low) & 0xFFFF_FFFF;
        return write(machine, context, syndrome, name, value);
    }
    match read(context, name) {
        Some(value) => {
            context.write_general(low, value & 0xFFFF_FFFF);
            context.write_general(high, value >> 32);
            advance(context, syndrome);
            resume(machine, context)
        }
        None => undefined(machine, context, syndrome),
    }
}

/// Returns the value that VMRS reads of a media and floating-point feature register (HCR_EL2.TID3), by its
/// number (F5.1.302).
pub(crate) fn media_features(number: u64) -> u64 {
    match number {
        5 => read_register!("mvfr2_el1"),
        6 => read_register!("mvfr1_el1"),
        7 => read_register!("mvfr0_el1"),
        _ => 0,
    }
}

#[inline(never)]
fn access_other(machine: &mut Machine, context: &mut Context, syndrome: u64) -> u64 {
    let name = syndrome & NAME;
    let target = target(syndrome);
    if context.is_task() {
        return fault(context, HealthClass::Task, syndrome, None);
    }
    if syndrome & ISS_READ == 0 {
        let value = context.read_general(target);
        return write(machine, context, syndrome, name, value);
    }
    match read(context, name) {
        Some(value) => {
            context.write_general(target, value);
            advance(context, syndrome);
            resume(machine, context)
        }
        None => forbidden(machine, context, syndrome, target),
    }
}

/// Answers an access to a register that this machine does not have, or that is no guest's business. The
/// instruction is undefined, but can be skipped.
fn forbidden(machine: &mut Machine, context: &mut Context, syndrome: u64, target: u8) -> u64 {
    let reason = undefined(machine, context, syndrome);
    if reason != RESUME {
        context.pending = Pending::Register {
            target,
            length: length(syndrome),
        };
    }
    reason
}

/// Returns the value of a register, if the guest may read it.
fn read(context: &mut Context, name: u64) -> Option<u64> {
    Some(match registers::read(name, CPU_INTERFACE) {
        Read::Identification => identification(name, CPU_INTERFACE, hardware),
        Read::Constant(value) => value,
        Read::Auxiliary => read_register!("actlr_el1"),
        Read::PhysicalTimer(register) => context.timers.read_physical(register),
        Read::DebugControl => context.debug.mdscr(),
        Read::OsLockStatus => context.debug.os_lock_status(),
        Read::Comparator(kind, number) => *context.debug.comparator(kind, number)?,
        Read::Absent => return None,
    })
}

fn write(machine: &mut Machine, context: &mut Context, syndrome: u64, name: u64, value: u64) -> u64 {
    match registers::write(name, CPU_INTERFACE) {
        Write::Interrupt(register) => {
            advance(context, syndrome);
            let wake = gic::sysreg_write(&mut machine.irq, &mut context.irq, register, value);
            return resume_or_wake(machine, context, wake);
        }
        Write::Ignored => {}
        Write::PhysicalTimer(register) => context.timers.write_physical(register, value),
        Write::DebugControl => {
            context.debug.write_mdscr(value);
            context.note_debug();
        }
        Write::OsLock => {
            context.debug.write_os_lock(value);
            context.note_debug();
        }
        Write::Comparator(kind, number) if context.debug.write_comparator(kind, number, value) => {}
        Write::Comparator(..) | Write::Absent => {
            return forbidden(machine, context, syndrome, ZERO_REGISTER);
        }
    }
    advance(context, syndrome);
    resume(machine, context)
}

/// Reads an identification register of the CPU.
fn hardware(register: IdRegister) -> u64 {
    match register {
        IdRegister::Pfr0 => read_register!("id_pfr0_el1"),
        IdRegister::Pfr1 => read_register!("id_pfr1_el1"),
        IdRegister::Dfr0 => read_register!("id_dfr0_el1"),
        IdRegister::Mmfr0 => read_register!("id_mmfr0_el1"),
        IdRegister::Mmfr1 => read_register!("id_mmfr1_el1"),
        IdRegister::Mmfr2 => read_register!("id_mmfr2_el1"),
        IdRegister::Mmfr3 => read_register!("id_mmfr3_el1"),
        IdRegister::Isar0 => read_register!("id_isar0_el1"),
        IdRegister::Isar1 => read_register!("id_isar1_el1"),
        IdRegister::Isar2 => read_register!("id_isar2_el1"),
        IdRegister::Isar3 => read_register!("id_isar3_el1"),
        IdRegister::Isar4 => read_register!("id_isar4_el1"),
        IdRegister::Isar5 => read_register!("id_isar5_el1"),
        IdRegister::Mmfr4 => read_register!("id_mmfr4_el1"),
        IdRegister::Mvfr0 => read_register!("mvfr0_el1"),
        IdRegister::Mvfr1 => read_register!("mvfr1_el1"),
        IdRegister::Mvfr2 => read_register!("mvfr2_el1"),
        IdRegister::Aa64Pfr0 => read_register!("id_aa64pfr0_el1"),
        IdRegister::Aa64Pfr1 => read_register!("id_aa64pfr1_el1"),
        IdRegister::Aa64Dfr0 => read_register!("id_aa64dfr0_el1"),
        IdRegister::Aa64Isar0 => read_register!("id_aa64isar0_el1"),
        IdRegister::Aa64Isar1 => read_register!("id_aa64isar1_el1"),
        IdRegister::Aa64Mmfr0 => read_register!("id_aa64mmfr0_el1"),
        IdRegister::Aa64Mmfr1 => read_register!("id_aa64mmfr1_el1"),
        IdRegister::Aa64Mmfr2 => read_register!("id_aa64mmfr2_el1"),
    }
}
