// SPDX-License-Identifier: Apache-2.0
//! Non-maskable interrupts of guests. While one is handled the next one waits for an IRET (AMD APM volume 2,
//! 8.2.3), so its handler may have a stack of its own.
//!
//! IRET exits then, before it has done anything. It is stepped over by RFLAGS.TF, which it loads anew. The
//! #DB after it is the hypervisor's, unless the guest had set TF or a breakpoint itself. No interrupt is
//! delivered meanwhile, because its frame would show TF. The frame of an exception of the IRET itself may
//! show it. It is loaded again with the IRET, and that step ends as the first one would have.

use crate::context::{Context, Step};
use crate::machine::Machine;
use crate::{platform, svm};

/// RFLAGS.TF.
const TRAP: u64 = 1 << 8;
/// DR6: a step; the breakpoints.
const STEP: u64 = 1 << 14;
const BREAKPOINTS: u64 = 0xF;
/// Vector of #DB.
const DEBUG: u8 = 1;

/// Delivers a non-maskable interrupt at the next entry, if one is pending and none is being handled.
#[cold]
pub(crate) fn deliver(context: &mut Context) {
    if context.event == 0 && !context.in_nmi && platform::take_nmi(context.id) {
        context.event = svm::non_maskable();
        context.in_nmi = true;
        context.vmcb.watch_return(true);
    }
}

/// Lets the guest execute its IRET, and exit after it.
#[cold]
pub(crate) fn step(machine: &mut Machine, context: &mut Context) {
    machine.looks = true;
    let vmcb = &mut context.vmcb;
    let (flags, status) = (vmcb.get(svm::RFLAGS), vmcb.get(svm::DR6));
    vmcb.watch_return(false);
    vmcb.set(svm::RFLAGS, flags | TRAP);
    vmcb.set(svm::DR6, status & !STEP);
    context.step = Some(Step {
        trap: flags & TRAP,
        status,
    });
}

/// Gives up the step: an event comes before the IRET, whose frame must be the guest's own.
#[cold]
pub(crate) fn give_up(context: &mut Context) {
    if let Some(Step { trap, status }) = context.step.take() {
        let vmcb = &mut context.vmcb;
        let flags = vmcb.get(svm::RFLAGS) & !TRAP;
        vmcb.set(svm::RFLAGS, flags | trap);
        vmcb.set(svm::DR6, vmcb.get(svm::DR6) | status & STEP);
        vmcb.watch_return(true);
    }
}

/// Handles #DB of a guest that steps over its IRET. Returns the event to deliver, 0 if there is none.
#[cold]
pub(crate) fn stepped(machine: &mut Machine, context: &mut Context) -> u64 {
    let debug = svm::exception(DEBUG, None);
    let status = context.vmcb.get(svm::DR6);
    let Some(step) = context.step.filter(|_| status & STEP != 0) else {
        // A breakpoint at the IRET itself.
        return debug;
    };
    (context.step, context.in_nmi, machine.looks) = (None, false, true);
    if step.trap != 0 {
        return debug;
    }
    context.vmcb.set(svm::DR6, status & !STEP | step.status & STEP);
    if status & BREAKPOINTS & !step.status != 0 {
        debug
    } else {
        0
    }
}
