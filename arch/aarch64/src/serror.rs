// SPDX-License-Identifier: Apache-2.0
//! SErrors that arrive after their vCPU has left the CPU's state to EL2.
//!
//! A write may be posted: its SError comes when the device answers, and by then the hypervisor may run, where SErrors are masked
//! (PSTATE.A). It stays pending, and the next guest would take it as its own. So before another vCPU comes, and before the
//! registers of one are taken out of the hardware, `DSB SY` waits for what the vCPU has outstanding, and `ISR_EL1.A` says whether
//! an SError is pending (Arm DDI 0487 D1.13, D19.2.61); the ISB between them keeps the register from being read early (B2.3.11). What is
//! pending then is taken here, and is an exit of the vCPU that left, before its next instruction.
//!
//! Not covered: a device that acknowledges a write early (Device-nGnRE, normal memory) and fails it later than the barrier ends.
//! The registers that the hypervisor itself accesses are the board's, and fail for nobody.

use crate::entry;
use crate::sysreg::read_register;
use crate::vcpu::{Context, RARE_LATE};

/// ISR_EL1.A: a physical SError is pending.
const PENDING: u64 = 1 << 8;
/// SErrors that are taken at a time; more than one has no other meaning than one.
const AT_MOST: usize = 8;

/// Whether one is pending. What it is to cover comes before a DSB and an ISB.
#[inline(always)]
pub(crate) fn is_pending() -> bool {
    read_register!("isr_el1") & PENDING != 0
}

/// Takes what is pending: the last one's syndrome. Not in a handler: ELR_EL2 and SPSR_EL2 are lost.
pub(crate) fn take() -> Option<u64> {
    let mut last = None;
    for _ in 0..AT_MOST {
        if !is_pending() {
            break;
        }
        // SAFETY: the function changes only registers that its calling convention lets it change, and ELR_EL2, SPSR_EL2 and
        // ESR_EL2, which no code outside a handler needs: `entry` loads them before each guest.
        let syndrome = unsafe { entry::bulkhead_take_serror() };
        if syndrome != 0 {
            last = Some(syndrome);
        }
    }
    last
}

/// What is pending is the concern of this vCPU, which was current until now.
#[inline(never)]
pub(crate) fn charge(context: &mut Context) {
    if let Some(syndrome) = take() {
        context.late = syndrome;
        context.rare |= RARE_LATE;
    }
}
