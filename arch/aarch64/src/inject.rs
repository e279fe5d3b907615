// SPDX-License-Identifier: Apache-2.0
//! Exceptions that a guest takes because we say so.
//!
//! The rules of exception entry to EL1 (Arm DDI 0487 D1.10, AArch64.TakeException), in software: the
//! vector by the level and stack pointer it comes from, SPSR_EL1 and ELR_EL1 as they were, PSTATE masked.
//!
//! An SError stays one: it is made pending (`HCR_EL2.VSE`), and the hardware delivers it when the guest's PSTATE.A lets it,
//! in AArch32 state as an asynchronous abort.

use crate::aarch32;
use crate::state::{El1State, has_ras};
use crate::sysreg::{read_register, write_guest_register};
use crate::vcpu::{Context, RARE_SERROR};
use bulkhead_abi::HealthClass;
use bulkhead_arch_api::FaultReport;

/// ESR.IL: the instruction was 32 bits long.
const ESR_IL: u64 = 1 << 25;
/// Exception classes (D19.2.37): unknown reason, instruction abort and data abort from a lower level.
const EC_UNKNOWN: u64 = 0;
const EC_INSTRUCTION_ABORT: u64 = 0x20;
const EC_DATA_ABORT: u64 = 0x24;
const EC_SERROR: u64 = 0x2F;
/// Added to an abort's class when it comes from the same level.
const EC_SAME_LEVEL: u64 = 1;
/// Fault status: synchronous external abort, not on a table walk.
const FSC_EXTERNAL: u64 = 0x10;
/// Fault status: alignment.
const FSC_ALIGNMENT: u64 = 0x21;
/// HCR_EL2.VSE: an SError is pending for EL1. Cleared by the hardware when it is taken.
pub(crate) const HCR_VSE: u64 = 1 << 8;
/// ESR.FnV: FAR holds no address.
const ESR_FNV: u64 = 1 << 10;
/// ISS.WnR of a data abort.
const ESR_WNR: u64 = 1 << 6;

/// SPSR bits (D19.2.140): AArch32, mode, flags N Z C V, DIT, PAN, D A I F with EL1h.
const PSTATE_AARCH32: u64 = 1 << 4;
const PSTATE_MODE: u64 = 0x1F;
const PSTATE_EL1T: u64 = 0x4;
const PSTATE_EL1H: u64 = 0x5;
const PSTATE_FLAGS: u64 = 0xF << 28;
const PSTATE_DIT: u64 = 1 << 24;
const PSTATE_PAN: u64 = 1 << 22;
const PSTATE_SSBS: u64 = 1 << 12;
const PSTATE_HANDLER: u64 = 0x3C5;
/// SCTLR_EL1.SPAN and DSSBS.
const SCTLR_SPAN: u64 = 1 << 23;
const SCTLR_DSSBS: u64 = 1 << 44;

/// Offset of the vector for an exception taken from this state.
const fn vector_offset(pstate: u64) -> u64 {
    if pstate & PSTATE_AARCH32 != 0 {
        return 0x600;
    }
    match pstate & PSTATE_MODE {
        PSTATE_EL1H => 0x200,
        PSTATE_EL1T => 0,
        _ => 0x400,
    }
}

/// PSTATE of the handler for an exception taken from `pstate`.
fn handler_pstate(pstate: u64, sctlr: u64) -> u64 {
    let kept = PSTATE_FLAGS
        | PSTATE_PAN
        | if pstate & PSTATE_AARCH32 == 0 {
            PSTATE_DIT
        } else {
            0
        };
    let has_pan = read_register!("id_aa64mmfr1_el1") >> 20 & 0xF != 0;
    let pan = if has_pan && sctlr & SCTLR_SPAN == 0 {
        PSTATE_PAN
    } else {
        0
    };
    let ssbs = if sctlr & SCTLR_DSSBS != 0 { PSTATE_SSBS } else { 0 };
    pstate & kept | PSTATE_HANDLER | pan | ssbs
}

/// The syndrome that EL1 sees for a fault we report.
fn syndrome(report: &FaultReport, pstate: u64) -> u64 {
    if report.class != HealthClass::Memory {
        return EC_UNKNOWN << 26 | ESR_IL;
    }
    let instruction_fetch = report.syndrome >> 26 & 0x3F == EC_INSTRUCTION_ABORT;
    let class = if instruction_fetch {
        EC_INSTRUCTION_ABORT
    } else {
        EC_DATA_ABORT
    };
    let class = abort_class(class, pstate);
    let address = if report.virtual_address.is_some() {
        0
    } else {
        ESR_FNV
    };
    let write = if instruction_fetch {
        0
    } else {
        report.syndrome & ESR_WNR
    };
    class << 26 | ESR_IL | address | write | FSC_EXTERNAL
}

/// Whether the SError given to the vCPU that is, or was, current has not been taken.
pub(crate) fn serror_is_pending() -> bool {
    read_register!("hcr_el2") & HCR_VSE != 0
}

/// What the guest's ESR_EL1 will say of an SError: nothing. Without RAS that is implementation defined, and guests are
/// told that there is no RAS.
pub(crate) fn describe_serror() {
    if has_ras() {
        // VSESR_EL2, which assemblers know with the RAS extension only.
        write_guest_register!("s3_4_c5_c2_3", 0);
    }
}

/// Reflects `report` into a vCPU that is not current: an external abort for memory, an SError for an SError, else an
/// undefined instruction.
pub(crate) fn reflect(context: &mut Context, report: &FaultReport) {
    if report.class == HealthClass::Memory && report.syndrome >> 26 & 0x3F == EC_SERROR {
        context.hcr |= HCR_VSE;
        context.rare |= RARE_SERROR;
        return;
    }
    if context.plan.aarch32 {
        return aarch32::reflect(context, report);
    }
    let El1State { sctlr, vbar, .. } = context.el1;
    context.el1.esr = syndrome(report, context.pstate);
    if let Some(address) = report.virtual_address {
        context.el1.far = address;
    }
    context.el1.elr = report.pc;
    context.el1.spsr = context.pstate;
    context.pc = vbar.wrapping_add(vector_offset(context.pstate));
    context.pstate = handler_pstate(context.pstate, sctlr);
}

/// Lets the running vCPU take an undefined-instruction exception at once, inside a handler.
pub(crate) fn undefined_now() {
    take_now(EC_UNKNOWN << 26 | ESR_IL);
}

/// The same with the alignment fault of a load or store that came to us with this syndrome.
pub(crate) fn alignment_now(reported: u64) {
    let class = abort_class(EC_DATA_ABORT, read_register!("spsr_el2"));
    write_guest_register!("far_el1", read_register!("far_el2"));
    take_now(class << 26 | ESR_IL | reported & ESR_WNR | FSC_ALIGNMENT);
}

/// The class of an abort as EL1 sees it.
const fn abort_class(from_lower: u64, pstate: u64) -> u64 {
    let from_el1 = pstate & PSTATE_AARCH32 == 0 && pstate & PSTATE_MODE & 0xC == PSTATE_EL1T;
    if from_el1 {
        from_lower + EC_SAME_LEVEL
    } else {
        from_lower
    }
}

fn take_now(syndrome: u64) {
    let pstate = read_register!("spsr_el2");
    let pc = read_register!("elr_el2");
    write_guest_register!("esr_el1", syndrome);
    write_guest_register!("elr_el1", pc);
    write_guest_register!("spsr_el1", pstate);
    let vector = read_register!("vbar_el1").wrapping_add(vector_offset(pstate));
    write_guest_register!("elr_el2", vector);
    write_guest_register!("spsr_el2", handler_pstate(pstate, read_register!("sctlr_el1")));
}
