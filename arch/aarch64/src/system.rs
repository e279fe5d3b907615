// SPDX-License-Identifier: Apache-2.0
//! System registers of a guest that trap: identification, debug, timers, and what it may not have.
//!
//! One rule for identification (HCR_EL2.TID3): a feature that is not virtualized is not advertised.
//! Each register is the hardware's value under a mask of the fields a guest can use without our help;
//! registers without an entry read as zero, which is what the architecture demands of unallocated ones.
//! What the guest could then only reach by ignoring those registers (PMU, SVE, pointer authentication, RAS,
//! LORegions, trace) and anything else that traps (implementation-defined registers, EL2's own) is a
//! health event, and by default undefined to the guest, exactly as on a CPU without the feature.

use crate::aarch32;
use crate::debug::Comparator;
use crate::entry::{ALL_REGISTERS, RESUME};
use crate::irq::{self, SysRegister};
use crate::machine::Machine;
use crate::sysreg::read_register;
use crate::timer::PhysicalTimer;
use crate::traps::{Trap, advance, advance_in_place, fault, length, resume, resume_or_wake, undefined};
use crate::vcpu::{Context, Pending};
use bulkhead_abi::HealthClass;
use bulkhead_arch_vgic::Vgic;

/// The name of a system register as one number: op0, op1, CRn, CRm, op2, packed as in the ISS.
const fn register(op0: u64, op1: u64, crn: u64, crm: u64, op2: u64) -> u64 {
    op0 << 20 | op2 << 17 | op1 << 14 | crn << 10 | crm << 1
}

/// Fields of the ISS that name the register.
const NAME_MASK: u64 = register(3, 7, 15, 15, 7);
/// ISS.Direction: a read.
const ISS_READ: u64 = 1;
/// A general register that takes no value.
const ZERO_REGISTER: u8 = 31;

const ACTLR_EL1: u64 = register(3, 0, 1, 0, 1);
const ICC_SGI1R_EL1: u64 = register(3, 0, 12, 11, 5);
const ICC_ASGI1R_EL1: u64 = register(3, 0, 12, 11, 6);
const ICC_SGI0R_EL1: u64 = register(3, 0, 12, 11, 7);
const ICC_SRE_EL1: u64 = register(3, 0, 12, 12, 5);
const ICC_DIR_EL1: u64 = register(3, 0, 12, 11, 1);
const CNTPCT_EL0: u64 = register(3, 3, 14, 0, 1);
const CNTP_TVAL_EL0: u64 = register(3, 3, 14, 2, 0);
const CNTP_CTL_EL0: u64 = register(3, 3, 14, 2, 1);
const CNTP_CVAL_EL0: u64 = register(3, 3, 14, 2, 2);

const OSDTRRX_EL1: u64 = register(2, 0, 0, 0, 2);
const MDCCINT_EL1: u64 = register(2, 0, 0, 2, 0);
const MDSCR_EL1: u64 = register(2, 0, 0, 2, 2);
const OSDTRTX_EL1: u64 = register(2, 0, 0, 3, 2);
const OSECCR_EL1: u64 = register(2, 0, 0, 6, 2);
const MDRAR_EL1: u64 = register(2, 0, 1, 0, 0);
const OSLAR_EL1: u64 = register(2, 0, 1, 0, 4);
const OSLSR_EL1: u64 = register(2, 0, 1, 1, 4);
const OSDLR_EL1: u64 = register(2, 0, 1, 3, 4);
const DBGPRCR_EL1: u64 = register(2, 0, 1, 4, 4);
const DBGCLAIMSET_EL1: u64 = register(2, 0, 7, 8, 6);
const DBGCLAIMCLR_EL1: u64 = register(2, 0, 7, 9, 6);
const DBGAUTHSTATUS_EL1: u64 = register(2, 0, 7, 14, 6);
const MDCCSR_EL0: u64 = register(2, 3, 0, 1, 0);
const DBGDTR_EL0: u64 = register(2, 3, 0, 4, 0);
const DBGDTRX_EL0: u64 = register(2, 3, 0, 5, 0);

/// Whether a VM's CPU interface is system registers, and what ICC_SRE_EL1 then says: SRE, and no bypass (DFB, DIB).
const SYSTEM_INTERFACE: bool = cfg!(not(feature = "gic-v2"));
const SYSTEM_INTERFACE_ENABLE: u64 = 7;

/// DBGCLAIMSET_EL1 reads as ones: eight claim bits exist.
const CLAIM_BITS: u64 = 0xFF;

/// A trapped MRS, MSR or SYS. The one that is frequent comes first: a software-generated interrupt.
#[inline(always)]
pub(crate) fn access(machine: &mut Machine, context: &mut Context, trap: Trap) -> u64 {
    let target = (trap.syndrome >> 5 & 31) as u8;
    if trap.misses(target) {
        return ALL_REGISTERS;
    }
    if SYSTEM_INTERFACE && trap.syndrome & (NAME_MASK | ISS_READ) == ICC_SGI1R_EL1 {
        let value = context.read_general(target);
        if let Some((target, line)) = Vgic::single_target(value) {
            if irq::send_to_self(&mut context.irq, target, line) {
                advance_in_place(context, trap.syndrome);
                return resume(machine, context);
            }
            return send_to_one(machine, context, trap.syndrome, (target, line));
        }
    }
    access_other(machine, context, trap.syndrome)
}

/// What traps sends a software-generated interrupt to one vCPU, of which `target` is the index.
#[inline(never)]
pub(crate) fn send_to_one(
    machine: &mut Machine,
    context: &mut Context,
    syndrome: u64,
    (target, line): (usize, u32),
) -> u64 {
    advance_in_place(context, syndrome);
    let wake = irq::send_to_one(&mut machine.irq, &context.irq, target, line);
    resume_or_wake(machine, context, wake)
}

/// A trapped MCR or MRC of CP15. All general registers are in the context.
pub(crate) fn access_narrow(machine: &mut Machine, context: &mut Context, syndrome: u64) -> u64 {
    access_other(machine, context, aarch32::register_of_mcr(syndrome))
}

/// A trapped MCRR or MRRC of CP15. All general registers are in the context.
pub(crate) fn access_pair(machine: &mut Machine, context: &mut Context, syndrome: u64) -> u64 {
    let (low, high) = ((syndrome >> 5 & 31) as u8, (syndrome >> 10 & 31) as u8);
    let Some((op1, crn, crm, op2)) = aarch32::register_of_mcrr(syndrome) else {
        return undefined(machine, context, syndrome);
    };
    let name = register(3, op1, crn, crm, op2);
    if syndrome & ISS_READ == 0 {
        let value = context.read_general(high) << 32 | context.read_general(low) & 0xFFFF_FFFF;
        return write(machine, context, (syndrome, name), value);
    }
    match read(context, name) {
        Found::Value(value) => {
            context.write_general(low, value & 0xFFFF_FFFF);
            context.write_general(high, value >> 32);
            advance(context, syndrome);
            resume(machine, context)
        }
        Found::Absent => undefined(machine, context, syndrome),
    }
}

/// VMRS of a media and floating-point feature register (HCR_EL2.TID3), by its number (F5.1.302).
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
    let name = syndrome & NAME_MASK;
    let target = (syndrome >> 5 & 31) as u8;
    if context.is_task() {
        return fault(context, HealthClass::Task, syndrome, None);
    }
    if syndrome & ISS_READ == 0 {
        let value = context.read_general(target);
        return write(machine, context, (syndrome, name), value);
    }
    match read(context, name) {
        Found::Value(value) => {
            context.write_general(target, value);
            advance(context, syndrome);
            resume(machine, context)
        }
        Found::Absent => forbidden(machine, context, syndrome, target),
    }
}

/// A register that this machine does not have, or that is no guest's business: undefined, but can be skipped.
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

/// What a register is to a guest.
enum Found {
    Value(u64),
    /// Nothing a guest should touch.
    Absent,
}

fn read(context: &mut Context, name: u64) -> Found {
    let (op0, crn) = (name >> 20 & 3, name >> 10 & 15);
    if op0 == 3 && crn == 0 {
        return Found::Value(identification(name));
    }
    let value = match name {
        ACTLR_EL1 => read_register!("actlr_el1"),
        ICC_SRE_EL1 if SYSTEM_INTERFACE => SYSTEM_INTERFACE_ENABLE,
        CNTPCT_EL0 | CNTP_TVAL_EL0 | CNTP_CTL_EL0 | CNTP_CVAL_EL0 => {
            physical_timer(name).read(&context.timers)
        }
        MDSCR_EL1 => context.debug.mdscr(),
        OSLSR_EL1 => context.debug.os_lock_status(),
        DBGCLAIMSET_EL1 => CLAIM_BITS,
        OSDTRRX_EL1 | OSDTRTX_EL1 | MDCCINT_EL1 | OSECCR_EL1 | MDRAR_EL1 | OSDLR_EL1 | DBGPRCR_EL1
        | DBGCLAIMCLR_EL1 | DBGAUTHSTATUS_EL1 | MDCCSR_EL0 | DBGDTR_EL0 | DBGDTRX_EL0 => 0,
        _ => match comparator(name) {
            Some((kind, number)) => match context.debug.comparator(kind, number) {
                Some(value) => *value,
                None => return Found::Absent,
            },
            None => return Found::Absent,
        },
    };
    Found::Value(value)
}

fn write(machine: &mut Machine, context: &mut Context, (syndrome, name): (u64, u64), value: u64) -> u64 {
    let interrupt_register = match name {
        ICC_SGI1R_EL1 => Some(SysRegister::Sgi1r),
        ICC_ASGI1R_EL1 => Some(SysRegister::Asgi1r),
        ICC_SGI0R_EL1 => Some(SysRegister::Sgi0r),
        ICC_DIR_EL1 => Some(SysRegister::Dir),
        _ => None,
    };
    if let Some(which) = interrupt_register {
        advance(context, syndrome);
        let wake = irq::sysreg_write(&mut machine.irq, &mut context.irq, which, value);
        return resume_or_wake(machine, context, wake);
    }
    match name {
        // Hints of the CPU's implementation and debug-channel registers nobody listens on: ignored.
        ACTLR_EL1 | OSDTRRX_EL1 | OSDTRTX_EL1 | MDCCINT_EL1 | OSECCR_EL1 | OSDLR_EL1 | DBGPRCR_EL1
        | DBGCLAIMSET_EL1 | DBGCLAIMCLR_EL1 | DBGDTR_EL0 | DBGDTRX_EL0 => {}
        // The interrupt controller's CPU interface has no other form than system registers.
        ICC_SRE_EL1 if SYSTEM_INTERFACE => {}
        CNTP_TVAL_EL0 | CNTP_CTL_EL0 | CNTP_CVAL_EL0 => physical_timer(name).write(&context.timers, value),
        MDSCR_EL1 => {
            context.debug.write_mdscr(value);
            context.note_debug();
        }
        OSLAR_EL1 => {
            context.debug.write_os_lock(value);
            context.note_debug();
        }
        _ => {
            if let Some((kind, number)) = comparator(name) {
                if !context.debug.write_comparator(kind, number, value) {
                    return forbidden(machine, context, syndrome, ZERO_REGISTER);
                }
            } else {
                return forbidden(machine, context, syndrome, ZERO_REGISTER);
            }
        }
    }
    advance(context, syndrome);
    resume(machine, context)
}

const fn physical_timer(name: u64) -> PhysicalTimer {
    match name {
        CNTP_TVAL_EL0 => PhysicalTimer::Value,
        CNTP_CTL_EL0 => PhysicalTimer::Control,
        CNTP_CVAL_EL0 => PhysicalTimer::Compare,
        _ => PhysicalTimer::Counter,
    }
}

/// DBGBVR<n>, DBGBCR<n>, DBGWVR<n>, DBGWCR<n>: op0 2, op1 0, CRn 0, CRm n, op2 4..7.
const fn comparator(name: u64) -> Option<(Comparator, usize)> {
    let number = (name >> 1 & 15) as usize;
    let same_family = name & !(register(0, 0, 0, 15, 3)) == register(2, 0, 0, 0, 4);
    if !same_family {
        return None;
    }
    let kind = match name >> 17 & 3 {
        0 => Comparator::BreakValue,
        1 => Comparator::BreakControl,
        2 => Comparator::WatchValue,
        _ => Comparator::WatchControl,
    };
    Some((kind, number))
}

/// Identification registers, ID group (op0 3, op1 0, CRn 0, CRm 1..7) under their masks.
fn identification(name: u64) -> u64 {
    const GIC_32: u64 = if cfg!(feature = "gic-v2") { 0 } else { 1 << 28 };
    const NO_DOUBLE_LOCK: u64 = 0xF << 36;
    match (name >> 1 & 15, name >> 17 & 7) {
        // ID_PFR0, ID_PFR1, ID_DFR0 without RAS, AMU, virtualization, trace, PMU.
        (1, 0) => read_register!("id_pfr0_el1") & 0x0F0F_FFFF,
        (1, 1) => read_register!("id_pfr1_el1") & 0x000F_0FFF | GIC_32,
        (1, 2) => read_register!("id_dfr0_el1") & 0x0000_0FFF,
        (1, 4) => read_register!("id_mmfr0_el1"),
        (1, 5) => read_register!("id_mmfr1_el1"),
        (1, 6) => read_register!("id_mmfr2_el1"),
        (1, 7) => read_register!("id_mmfr3_el1"),
        (2, 0) => read_register!("id_isar0_el1"),
        (2, 1) => read_register!("id_isar1_el1"),
        (2, 2) => read_register!("id_isar2_el1"),
        (2, 3) => read_register!("id_isar3_el1"),
        (2, 4) => read_register!("id_isar4_el1"),
        (2, 5) => read_register!("id_isar5_el1"),
        (2, 6) => read_register!("id_mmfr4_el1") & 0x0FFF_FFF0,
        (3, 0) => read_register!("mvfr0_el1"),
        (3, 1) => read_register!("mvfr1_el1"),
        (3, 2) => read_register!("mvfr2_el1"),
        // EL0, EL1 (AArch64 only: HCR_EL2.RW), FP, AdvSIMD, DIT; no EL2, EL3, RAS, SVE, AMU, MPAM.
        (4, 0) => processor_features(),
        // BT, SSBS.
        (4, 1) => read_register!("id_aa64pfr1_el1") & 0xFF,
        // DebugVer, breakpoints, watchpoints, context comparators; no PMU, trace, SPE.
        (5, 0) => read_register!("id_aa64dfr0_el1") & 0xF0F0_F00F | NO_DOUBLE_LOCK,
        // All but TME.
        (6, 0) => read_register!("id_aa64isar0_el1") & !(0xF << 24),
        // All but pointer authentication, LS64, XS.
        (6, 1) => read_register!("id_aa64isar1_el1") & 0x00FF_FFFF_00FF_F00F,
        (7, 0) => memory_features(),
        // HAFDBS, HPDS, PAN, ETS.
        (7, 1) => read_register!("id_aa64mmfr1_el1") & 0x0000_00F0_00F0_F00F,
        // CnP, UAO, LSM, VARange, CCIDX, ST, AT, TTL, BBM, E0PD.
        (7, 2) => read_register!("id_aa64mmfr2_el1") & 0xF0FF_000F_F0FF_0FFF,
        _ => 0,
    }
}

/// ID_AA64PFR0_EL1.
fn processor_features() -> u64 {
    const EL1_AARCH64: u64 = 1 << 4;
    const GIC_SYSTEM_REGISTERS: u64 = if cfg!(feature = "gic-v2") { 0 } else { 1 << 24 };
    let hardware = read_register!("id_aa64pfr0_el1");
    // CSV2 2 and above would promise SCXTNUM_ELx.
    let csv2 = (hardware >> 56 & 0xF).min(1) << 56;
    hardware & 0xF00F_0000_00FF_000F | EL1_AARCH64 | GIC_SYSTEM_REGISTERS | csv2
}

/// ID_AA64MMFR0_EL1: no stage-2 granules, FGT, ECV; the physical addresses are those of stage 2.
fn memory_features() -> u64 {
    const FORTY_BITS: u64 = 2;
    let hardware = read_register!("id_aa64mmfr0_el1");
    hardware & 0xFFFF_FFF0 | (hardware & 0xF).min(FORTY_BITS)
}
