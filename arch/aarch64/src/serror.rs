// SPDX-License-Identifier: Apache-2.0
//! SErrors that arrive after their vCPU has left the CPU's state to EL2.
//!
//! A write may be posted: its SError comes when the device answers, and by then the hypervisor may run, where
//! SErrors are masked (PSTATE.A). The SError stays pending, and the next guest would take it as its own. The
//! hypervisor therefore looks for one before another vCPU comes, and before the registers of a vCPU are taken
//! out of the hardware. `DSB SY` waits for the outstanding accesses of the vCPU, and `ISR_EL1.A` says whether
//! an SError is pending (Arm DDI 0487 D1.13, D19.2.61). The ISB between them keeps the register from being
//! read early (B2.3.11). An SError that is pending then is taken here, and is an exit of the vCPU that left,
//! before its next instruction.
//!
//! Not covered: a device that acknowledges a write early (Device-nGnRE, normal memory) and fails it later
//! than the barrier ends. The registers that the hypervisor itself accesses are the board's, and do not
//! fail.

use crate::context::{Context, HCR_VSE, RARE_LATE};
use crate::enter;
use crate::state::has_ras;
use crate::sysreg::{read_register, write_guest_register};

/// ISR_EL1.A: a physical SError is pending.
const PENDING: u64 = 1 << 8;
/// SErrors that are taken at a time. More than one has no other meaning than one.
const AT_MOST: usize = 8;

/// Tells whether an SError is pending. A DSB and an ISB must stand between the accesses to be covered and
/// this call.
#[inline(always)]
pub(crate) fn is_pending() -> bool {
    read_register!("isr_el1") & PENDING != 0
}

/// Takes all pending SErrors. Returns the last one's syndrome. Not in a handler: ELR_EL2 and SPSR_EL2 are
/// lost.
pub(crate) fn take() -> Option<u64> {
    let mut last = None;
    for _ in 0..AT_MOST {
        if !is_pending() {
            break;
        }
        // SAFETY: the function changes only registers that its calling convention lets it change, and
        // ELR_EL2, SPSR_EL2 and ESR_EL2, which no code outside a handler needs: `entry` loads them before
        // each guest.
        let syndrome = unsafe { enter::bulkhead_take_serror() };
        if syndrome != 0 {
            last = Some(syndrome);
        }
    }
    last
}

/// Charges a pending SError to this vCPU, which was current until now.
#[inline(never)]
pub(crate) fn charge(context: &mut Context) {
    if let Some(syndrome) = take() {
        context.late = syndrome;
        context.rare |= RARE_LATE;
    }
}

/// Tells whether the SError given to the vCPU that is, or was, current has not been taken.
pub(crate) fn virtual_is_pending() -> bool {
    read_register!("hcr_el2") & HCR_VSE != 0
}

/// Clears the description of an SError that the guest's ESR_EL1 will have. Without RAS the description is
/// implementation defined, and guests are told that there is no RAS.
pub(crate) fn describe_virtual() {
    if has_ras() {
        // VSESR_EL2, which assemblers know with the RAS extension only.
        write_guest_register!("s3_4_c5_c2_3", 0);
    }
}
