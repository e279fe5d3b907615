// SPDX-License-Identifier: Apache-2.0
//! A vCPU that waits for an interrupt.

use crate::context::{Context, RARE_RAS, RARE_SERROR};
use crate::enter::{LEAVE_IDLE, RESUME};
use crate::outcome::advance;
use crate::sysreg::{read_register, write_guest_register};
use crate::{gic, serror, timer};
use bulkhead_arch_aarch64_core::syndrome::{WFI, is_not_wfi};
use bulkhead_arch_aarch64_core::{aarch32, pstate::AARCH32};
use bulkhead_arch_api::Ticks;

/// Handles WFI. WFE does not trap (HCR_EL2.TWE is 0). The usual WFI, of a VM with nothing unusual, is
/// handled without a call.
#[inline(always)]
pub(crate) fn wait_for(context: &mut Context, syndrome: u64) -> u64 {
    if context.rare != 0 || !gic::is_vm(&context.irq) || syndrome != WFI {
        return wait_slowly(context, syndrome);
    }
    wait_plainly(context)
}

#[inline(always)]
fn wait_plainly(context: &mut Context) -> u64 {
    write_guest_register!("elr_el2", read_register!("elr_el2").wrapping_add(4));
    idle_if(context, |context| gic::is_quiet(&context.irq))
}

/// Handles any other wait. A 32-bit program's WFI can be 16 bits long, in an IT block, or conditional and
/// trap nevertheless (G1.18.1). An idle task waits by hypercall, so its WFI is over at once.
#[inline(never)]
fn wait_slowly(context: &mut Context, syndrome: u64) -> u64 {
    // The RAS extension of the CPU is no concern of a wait.
    if context.rare == RARE_RAS && gic::is_vm(&context.irq) && syndrome == WFI {
        return wait_plainly(context);
    }
    let pstate = read_register!("spsr_el2");
    advance(context, syndrome);
    if pstate & AARCH32 != 0 && !aarch32::passes(syndrome, pstate) {
        return RESUME;
    }
    // A pending SError ends a wait, masked or not (D1.6.2).
    let has_error = context.rare & RARE_SERROR != 0 && serror::virtual_is_pending();
    if has_error || context.is_task() || is_not_wfi(syndrome) {
        return RESUME;
    }
    idle(context)
}

/// Lets the vCPU wait for an interrupt.
#[inline(always)]
pub(crate) fn idle(context: &mut Context) -> u64 {
    idle_if(context, |context| gic::is_idle(&context.irq))
}

#[inline(always)]
fn idle_if(context: &mut Context, is_idle: impl FnOnce(&Context) -> bool) -> u64 {
    let until = timer::next_expiry(&context.timers);
    if until.0 <= read_register!("cntpct_el0") {
        return RESUME;
    }
    if !is_idle(context) {
        return idle_without_work(context, until);
    }
    context.timers.idle(until);
    LEAVE_IDLE
}

/// Does the same as [`idle`] if there is really no work: work that another pCPU has done meanwhile may not be
/// in the list registers yet.
#[inline(never)]
fn idle_without_work(context: &mut Context, until: Ticks) -> u64 {
    if gic::has_work(&mut context.irq) {
        return RESUME;
    }
    context.timers.idle(until);
    LEAVE_IDLE
}
