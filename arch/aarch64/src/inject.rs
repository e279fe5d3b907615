// SPDX-License-Identifier: Apache-2.0
//! Exceptions that a guest takes because the hypervisor says so.
//!
//! The rules of exception entry are in `bulkhead_arch_aarch64_core`, for EL1 in AArch64 and AArch32
//! state.
//!
//! An SError stays an SError: it is made pending (`HCR_EL2.VSE`), and the hardware delivers it when the
//! guest's PSTATE.A allows it. In AArch32 state the hardware delivers it as an asynchronous abort.

use crate::context::{Context, HCR_VSE, RARE_SERROR};
use crate::machine::Machine;
use crate::state::{El1State, has_pan};
use crate::sysreg::{read_register, write_guest_register};
use bulkhead_arch_aarch64_core::aarch32::{Exception, fault_status};
use bulkhead_arch_aarch64_core::exception::{self, Controls};
use bulkhead_arch_api::FaultReport;

/// Reflects `report` into a vCPU that is not current: an external abort for memory, an SError for an SError,
/// else an undefined instruction.
pub(crate) fn reflect(context: &mut Context, report: &FaultReport) {
    if exception::is_serror(report) {
        context.hcr |= HCR_VSE;
        context.rare |= RARE_SERROR;
    } else if context.is_aarch32() {
        reflect_aarch32(context, report);
    } else {
        reflect_aarch64(context, report);
    }
}

fn reflect_aarch64(context: &mut Context, report: &FaultReport) {
    let El1State { sctlr, vbar, .. } = context.el1;
    context.el1.esr = exception::reflected(report, context.pstate);
    if let Some(address) = report.virtual_address {
        context.el1.far = address;
    }
    context.el1.elr = report.pc;
    context.el1.spsr = context.pstate;
    let has_pan = has_pan();
    let handler = Controls { sctlr, vbar, has_pan }.handler(context.pstate);
    (context.pc, context.pstate) = (handler.pc, handler.pstate);
}

fn reflect_aarch32(context: &mut Context, report: &FaultReport) {
    let exception = Exception::of(report);
    let status = fault_status(report, context.el1.tcr);
    let address = report.virtual_address.unwrap_or(0) & 0xFFFF_FFFF;
    match exception {
        Exception::PrefetchAbort => {
            context.banked.ifsr = status;
            // FAR_EL1 holds IFAR in its upper and DFAR in its lower half.
            context.el1.far = context.el1.far & 0xFFFF_FFFF | address << 32;
            context.banked.spsr_abt = context.pstate;
        }
        Exception::DataAbort => {
            context.el1.esr = status;
            context.el1.far = context.el1.far & !0xFFFF_FFFF | address;
            context.banked.spsr_abt = context.pstate;
        }
        Exception::Undefined => context.banked.spsr_und = context.pstate,
    }
    let link = exception.return_address(report.pc, context.pstate);
    context.write_general(exception.link_register(), link);
    let handler = exception.handler(context.pstate, context.el1.sctlr, context.el1.vbar);
    (context.pc, context.pstate) = (handler.pc, handler.pstate);
}

/// Lets the running vCPU take an undefined-instruction exception at once, inside a handler.
pub(crate) fn undefined_now() {
    take_now(exception::UNDEFINED);
}

/// Injects an undefined instruction in AArch32 state. All general registers are in the context.
pub(crate) fn undefined_now_aarch32(machine: &mut Machine, context: &mut Context) {
    let (pstate, pc) = (read_register!("spsr_el2"), read_register!("elr_el2"));
    write_guest_register!("spsr_und", pstate);
    let exception = Exception::Undefined;
    context.write_general(exception.link_register(), exception.return_address(pc, pstate));
    let (sctlr, vbar) = (read_register!("sctlr_el1"), read_register!("vbar_el1"));
    let handler = exception.handler(pstate, sctlr, vbar);
    write_guest_register!("elr_el2", handler.pc);
    write_guest_register!("spsr_el2", handler.pstate);
    machine.give_status(context, handler.pstate, pstate);
}

/// Lets the running vCPU take the alignment fault of a load or store that trapped to EL2 with this syndrome.
pub(crate) fn alignment_now(reported: u64) {
    write_guest_register!("far_el1", read_register!("far_el2"));
    take_now(exception::alignment_fault(reported, read_register!("spsr_el2")));
}

fn take_now(syndrome: u64) {
    let pstate = read_register!("spsr_el2");
    write_guest_register!("esr_el1", syndrome);
    write_guest_register!("elr_el1", read_register!("elr_el2"));
    write_guest_register!("spsr_el1", pstate);
    let controls = Controls {
        sctlr: read_register!("sctlr_el1"),
        vbar: read_register!("vbar_el1"),
        has_pan: has_pan(),
    };
    let handler = controls.handler(pstate);
    write_guest_register!("elr_el2", handler.pc);
    write_guest_register!("spsr_el2", handler.pstate);
}
