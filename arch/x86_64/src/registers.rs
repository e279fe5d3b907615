// SPDX-License-Identifier: Apache-2.0
//! Instructions about the processor itself: CPUID, model-specific registers, CR4.
//!
//! The emulator has neither decode assists nor the address of the next instruction, so lengths are found by
//! a look at the instruction where prefixes are usual, and are those without prefixes elsewhere.

use crate::context::{Context, Pending, RAX, RBX, RCX, RDX};
use crate::emulate::take_effect;
use crate::guest::{self, PROTECTION};
use crate::machine::Machine;
use crate::{platform, svm, sysreg};
use bulkhead_abi::HealthClass;
use bulkhead_arch_api::class::x86_64::REGISTERS;
use bulkhead_arch_api::{Access, AccessKind, AddressSpace, Exit, GuestPhys, Treatment, treatment};
use bulkhead_arch_x86_64_core::cpuid::{self, Processor};
use bulkhead_arch_x86_64_core::decode;

/// Bytes of CPUID, RDMSR and WRMSR without prefixes.
const LENGTH: u8 = 2;
const TSC: u32 = 0x10;
const APIC_BASE: u32 = 0x1B;
const TSC_DEADLINE: u32 = 0x6E0;
const X2APIC: u32 = 0x800;
const X2APIC_END: u32 = 0x8FF;

/// EFER: SCE, LME, LMA, NXE, FFXSR, TCE.
const EFER_LME: u64 = 1 << 8;
const EFER_LMA: u64 = 1 << 10;
const EFER_CHANGEABLE: u64 = 1 | EFER_LME | 1 << 11 | 1 << 14;
const CR0_PG: u64 = 1 << 31;
/// CR4: VME to PCE, OSFXSR, OSXMMEXCPT. Other bits need state that is not switched, or are not announced.
const CR4_ALLOWED: u64 = 0x1FF | 1 << 9 | 1 << 10;
/// CR4: FSGSBASE, SMEP and SMAP, each with its bit of leaf 7, EBX. VMRUN refuses a bit that the processor
/// does not have.
const CR4_FEATURES: [(u64, u32); 3] = [(1 << 16, 1), (1 << 20, 1 << 7), (1 << 21, 1 << 20)];

/// Handles CPUID.
pub(crate) fn cpuid(context: &mut Context) -> Option<Exit> {
    let processor = Processor {
        id: context.plan.index.into(),
        count: context.plan.count.into(),
    };
    let (leaf, subleaf) = (context.general(RAX) as u32, context.general(RCX) as u32);
    let [a, b, c, d] = cpuid::answer(leaf, subleaf, processor, sysreg::cpuid);
    for (register, value) in [(RAX, a), (RBX, b), (RCX, c), (RDX, d)] {
        context.set_general(register, value.into());
    }
    let next = guest::behind(context, LENGTH);
    context.go_to(next);
    None
}

/// Handles RDMSR and WRMSR.
pub(crate) fn model_specific(machine: &mut Machine, context: &mut Context) -> Option<Exit> {
    let number = context.general(RCX) as u32;
    let next = guest::behind(context, LENGTH);
    let is_read = context.vmcb.get(svm::EXIT_INFO_1) & 1 == 0;
    let value = context.general(RDX) << 32 | context.general(RAX) & 0xFFFF_FFFF;
    // The frequent ones first: the table says the same of them.
    if (X2APIC..=X2APIC_END).contains(&number) {
        return extended(
            machine,
            context,
            number - X2APIC,
            (!is_read).then_some(value),
            next,
        );
    }
    let kind = if is_read {
        AccessKind::Read
    } else {
        AccessKind::Write(value)
    };
    let protection = svm::exception(PROTECTION, Some(0));
    context.pending = Pending::Register { is_read, next };
    (context.reflect, context.skip_to) = (protection, Some(next));
    let treatment = match number {
        TSC_DEADLINE => Treatment::Own,
        _ => treatment(REGISTERS, number.into(), kind),
    };
    match treatment {
        Treatment::Constant(value) => {
            finish(context, value);
            None
        }
        Treatment::Exit => Some(Exit::Access(Access {
            space: AddressSpace::Registers,
            address: GuestPhys(number.into()),
            size: 8,
            kind,
            report: guest::report(context, HealthClass::System, Some(GuestPhys(number.into()))),
        })),
        Treatment::Own => {
            let done = match kind {
                AccessKind::Read => read(context, number),
                AccessKind::Write(value) => write(machine, context, number, value).map(|()| 0),
            };
            match done {
                Some(value) => {
                    finish(context, value);
                    None
                }
                None => {
                    // The processor itself would refuse it, so it is no event for others.
                    context.pending = Pending::Nothing;
                    context.event = protection;
                    None
                }
            }
        }
    }
}

/// Handles an access to a register of x2APIC.
#[inline(always)]
fn extended(
    machine: &mut Machine,
    context: &mut Context,
    number: u32,
    store: Option<u64>,
    next: u64,
) -> Option<Exit> {
    let now = context.now();
    let mut apic = platform::apic(context.id)?;
    let is_there = apic.use_extended();
    let Some(value) = store else {
        let value = if is_there { apic.read(number, now) } else { None };
        drop(apic);
        match value {
            Some(value) => complete(context, true, next, value),
            None => context.event = svm::exception(PROTECTION, Some(0)),
        }
        return None;
    };
    let effect = if is_there {
        apic.write(number, value, now)
    } else {
        None
    };
    let Some(effect) = effect else {
        context.event = svm::exception(PROTECTION, Some(0));
        return None;
    };
    machine.looks |= apic.must_be_looked_at(number);
    let priority = apic.task_priority();
    drop(apic);
    if priority >> 4 != context.task_priority {
        context.set_task_priority(priority);
    }
    complete(context, false, next, 0);
    take_effect(machine, context, effect)
}

/// Completes a RDMSR with the value, or a WRMSR.
pub(crate) fn finish(context: &mut Context, value: u64) {
    let Pending::Register { is_read, next } = context.pending else {
        return;
    };
    context.pending = Pending::Nothing;
    complete(context, is_read, next, value);
}

#[inline(always)]
fn complete(context: &mut Context, is_read: bool, next: u64, value: u64) {
    if is_read {
        context.set_general(RAX, value & 0xFFFF_FFFF);
        context.set_general(RDX, value >> 32);
    }
    context.go_to(next);
}

/// Reads a register of the guest's own; `None` is a #GP.
fn read(context: &mut Context, number: u32) -> Option<u64> {
    match number {
        TSC => Some(context.now()),
        APIC_BASE => Some(platform::apic(context.id)?.base()),
        TSC_DEADLINE => Some(platform::apic(context.id)?.deadline(context.now())),
        sysreg::EFER => Some(context.vmcb.get(svm::EFER) & !sysreg::EFER_SVME),
        sysreg::TSC_AUX => Some(context.auxiliary),
        _ => None,
    }
}

/// Writes a register of the guest's own; `None` is a #GP.
fn write(machine: &mut Machine, context: &mut Context, number: u32, value: u64) -> Option<()> {
    machine.looks = true;
    match number {
        TSC => {
            context.offset = value.wrapping_sub(sysreg::counter());
            context.vmcb.set(svm::TSC_OFFSET, context.offset);
        }
        APIC_BASE => {
            if !platform::apic(context.id)?.set_base(value) {
                return None;
            }
        }
        TSC_DEADLINE => platform::apic(context.id)?.set_deadline(value, context.now()),
        sysreg::EFER => return write_efer(context, value),
        sysreg::TSC_AUX => {
            if value >> 32 != 0 {
                return None;
            }
            context.auxiliary = value;
            sysreg::write_msr(sysreg::TSC_AUX, value);
        }
        _ => return None,
    }
    Some(())
}

fn write_efer(context: &mut Context, value: u64) -> Option<()> {
    let old = context.vmcb.get(svm::EFER);
    // LMA is the processor's own, and a store to it is ignored.
    let wanted = value & !EFER_LMA;
    let is_paging = context.vmcb.get(svm::CR0) & CR0_PG != 0;
    if wanted & !EFER_CHANGEABLE != 0 || is_paging && (wanted ^ old) & EFER_LME != 0 {
        return None;
    }
    context
        .vmcb
        .set(svm::EFER, wanted | old & EFER_LMA | sysreg::EFER_SVME);
    context.forget = true;
    Some(())
}

/// Returns the bits of CR4 that a guest may set.
fn cr4_allowed() -> u64 {
    let [_, features, ..] = sysreg::cpuid(7, 0);
    let has = CR4_FEATURES.iter().filter(|(_, feature)| features & feature != 0);
    has.fold(CR4_ALLOWED, |all, (bit, _)| all | bit)
}

/// Handles a write of CR4 or CR8.
#[inline(never)]
pub(crate) fn write_control(machine: &mut Machine, context: &mut Context) -> Option<Exit> {
    let found = decode::control_move(guest::code(context).bytes(), guest::mode(context));
    let protection = svm::exception(PROTECTION, Some(0));
    let Some(found) = found.filter(|found| matches!(found.control, 4 | 8)) else {
        return guest::refused(context, protection, None);
    };
    let value = match found.general {
        4 => context.vmcb.get(svm::RSP),
        number => context.general(number.into()),
    };
    if found.control == 8 {
        if value > 0xF {
            context.event = protection;
            return None;
        }
        let priority = (value as u8) << 4;
        context.set_task_priority(priority);
        platform::apic(context.id)?.set_task_priority(priority);
        machine.looks = true;
        let next = guest::behind(context, found.length);
        context.go_to(next);
        return None;
    }
    let is_long = context.vmcb.get(svm::EFER) & EFER_LMA != 0;
    // PAE stays while in long mode.
    if value & !cr4_allowed() != 0 || is_long && value & 1 << 5 == 0 {
        context.event = protection;
        return None;
    }
    context.vmcb.set(svm::CR4, value);
    // A change of a bit about pages forgets translations (APM volume 2, 5.5.2).
    context.forget = true;
    let next = guest::behind(context, found.length);
    context.go_to(next);
    None
}
