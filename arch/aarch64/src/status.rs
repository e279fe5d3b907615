// SPDX-License-Identifier: Apache-2.0
//! SPSR of the AArch32 mode that a vCPU is in, where the system registers do not show it.
//!
//! EL2 reads and writes SPSR_svc, _abt, _und, _irq and _fiq as system registers (Arm DDI 0487 D19.2.142 ff.).
//! QEMU 7.2 keeps the SPSR of the present mode elsewhere while the CPU is in AArch32 state, and exception
//! entry to and return from AArch64 do not move it. EL2 then reads an old value, and the mode does not see a
//! value that EL2 writes. Without more, two 32-bit vCPUs on a pCPU would see each other's SPSR, and a handler
//! of an injected exception would return to where another came from.
//!
//! The register is right where the mode itself names it. So a *visit* enters the mode for one instruction,
//! `mrs r0, spsr` or `msr spsr, r0`, and HVC. Stage 1 and 2 are off during the visit and interrupts are
//! masked, so that nothing else runs, and its VMID 0 belongs to no partition. The general registers are the
//! vCPU's throughout.
//!
//! When a pCPU adopts a 32-bit vCPU, a measurement shows whether visits are needed: a visit itself reads back
//! a value in SPSR_und. A CPU that follows the manual pays for this once. An address above 4 GiB cannot be
//! visited, and then no visits are made.

use crate::context::Context;
use crate::enter;
use crate::machine::Machine;
use crate::state::has_aarch32;
use crate::sysreg::{instruction, read_register, write_guest_register};
use bulkhead_arch_aarch64_core::aarch32::{
    ALL_MASKED, MODE_ABORT, MODE_FIQ, MODE_IRQ, MODE_SUPERVISOR, MODE_UNDEFINED, SCTLR_RESET,
};
use core::arch::global_asm;

/// The immediate of a visit's HVC. A guest may use it as well, but then stage 2 is on.
pub(crate) const VISIT: u64 = 0x5B5B;
/// `hvc #VISIT` in A32 (F5.1.60).
const HVC_VISIT: u32 = 0xE140_0070 | (VISIT as u32 >> 4) << 8 | VISIT as u32 & 0xF;
/// HCR_EL2 during a visit: AArch32, no stage 2, nothing trapped or routed here.
const HCR_VISIT: u64 = 0;
/// HCR_EL2.VM.
const HCR_VM: u64 = 1;
/// SCTLR.I: the image is ordinary memory, so its instructions may be cached.
const SCTLR_I: u64 = 1 << 12;
/// The value that the measurement writes: flags alone, which every implementation keeps.
const PATTERN: u64 = 0xA000_0010;

// Two instructions each, and inside one page.
global_asm!(
    ".text",
    ".balign 16",
    "bulkhead_status_read:",
    ".long 0xE14F0000", // mrs r0, spsr
    ".long {hvc}",
    "bulkhead_status_write:",
    ".long 0xE16FF000", // msr spsr_fsxc, r0
    ".long {hvc}",
    hvc = const HVC_VISIT,
);

unsafe extern "C" {
    /// A32 code, never called: entered as a guest.
    static bulkhead_status_read: u32;
    /// The same.
    static bulkhead_status_write: u32;
}

/// Tells whether an HVC with the immediate [`VISIT`] is the end of a visit.
pub(crate) fn is_visit() -> bool {
    read_register!("hcr_el2") & HCR_VM == 0
}

/// Returns the place in which the SPSR of the mode in `pstate` is stored. User and System mode have none.
fn stored(context: &mut Context, pstate: u64) -> Option<&mut u64> {
    let banked = &mut context.banked;
    match pstate & 0x1F {
        MODE_FIQ => Some(&mut banked.spsr_fiq),
        MODE_IRQ => Some(&mut banked.spsr_irq),
        MODE_SUPERVISOR => Some(&mut context.el1.spsr),
        MODE_ABORT => Some(&mut banked.spsr_abt),
        MODE_UNDEFINED => Some(&mut banked.spsr_und),
        _ => None,
    }
}

impl Machine {
    /// Finds out whether this pCPU needs visits. No vCPU is current.
    pub(crate) fn measure_status(&mut self, context: &mut Context) {
        if !has_aarch32() || (&raw const bulkhead_status_write).addr() >> 32 != 0 {
            return;
        }
        write_guest_register!("spsr_und", PATTERN);
        let seen = self.visit(context, MODE_UNDEFINED, &raw const bulkhead_status_read, 0);
        self.visits_status = seen != PATTERN;
    }

    /// Completes the stored registers of a vCPU that was current until now, if it is a 32-bit one.
    pub(crate) fn save_status(&mut self, context: &mut Context) {
        let mode = context.pstate;
        if self.visits_status && context.is_aarch32() && stored(context, mode).is_some() {
            let value = self.visit(context, mode, &raw const bulkhead_status_read, 0);
            if let Some(register) = stored(context, mode) {
                *register = value;
            }
        }
    }

    /// Shows its stored register to the AArch32 mode in which a vCPU goes on, if it goes on in one. Call this
    /// before the vCPU becomes current.
    pub(crate) fn load_status(&mut self, context: &mut Context) {
        let mode = context.pstate;
        if !context.is_aarch32() {
            return;
        }
        if let Some(value) = stored(context, mode).map(|register| *register) {
            self.give_status(context, mode, value);
        }
    }

    /// Shows `value` to the mode in `pstate`, in addition to the value that was written to the system
    /// register.
    pub(crate) fn give_status(&mut self, context: &mut Context, pstate: u64, value: u64) {
        if self.visits_status {
            self.visit(context, pstate, &raw const bulkhead_status_write, value);
        }
    }

    /// Runs two instructions in a mode with `value` in r0. Returns the value that r0 holds then. All general
    /// registers are in the context. All other state that the hardware holds for the vCPU that is or was
    /// current stays.
    fn visit(&mut self, context: &mut Context, mode: u64, code: *const u32, value: u64) -> u64 {
        let (hcr, vttbr, sctlr) = (
            read_register!("hcr_el2"),
            read_register!("vttbr_el2"),
            read_register!("sctlr_el1"),
        );
        let (elr, spsr) = (read_register!("elr_el2"), read_register!("spsr_el2"));
        let (pc, pstate, first) = (context.pc, context.pstate, context.read_general(0));
        write_guest_register!("hcr_el2", HCR_VISIT);
        write_guest_register!("vttbr_el2", 0);
        instruction!("isb");
        write_guest_register!("sctlr_el1", SCTLR_RESET | SCTLR_I);
        instruction!("isb");
        context.pc = code.addr() as u64;
        context.pstate = ALL_MASKED | mode & 0x1F;
        context.write_general(0, value);
        let exits = context.exits;
        // SAFETY: the vCPU is adopted by this pCPU, and both references are lent to the handler until the
        // return; the code is two instructions that touch r0, a status register and nothing else.
        unsafe { enter::bulkhead_enter(&raw mut *context, &raw mut *self, exits) };
        let answer = context.read_general(0) & 0xFFFF_FFFF;
        context.write_general(0, first);
        (context.pc, context.pstate) = (pc, pstate);
        write_guest_register!("elr_el2", elr);
        write_guest_register!("spsr_el2", spsr);
        write_guest_register!("sctlr_el1", sctlr);
        instruction!("isb");
        write_guest_register!("hcr_el2", hcr);
        write_guest_register!("vttbr_el2", vttbr);
        instruction!("isb");
        answer
    }
}
