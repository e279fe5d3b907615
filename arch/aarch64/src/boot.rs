// SPDX-License-Identifier: Apache-2.0
//! First steps, with the MMU off.

use crate::sysreg::read_register;
use crate::{console, crash, layout, mmu};
use bulkhead_abi::lockdown;

/// MPIDR_EL1: affinity fields (Arm DDI 0487 D19.2.101).
const MPIDR_AFFINITY: u64 = 0xFF_00FF_FFFF;

/// Returns the affinity fields of this CPU.
pub(crate) fn own_hardware_id() -> u64 {
    read_register!("mpidr_el1") & MPIDR_AFFINITY
}

/// Fills the translation tables of EL2. Runs with the MMU off.
pub(crate) extern "C" fn build_tables() {
    if mmu::build().is_err() {
        crash::halt(lockdown!("the hypervisor's own memory does not fit its tables"));
    }
}

/// Ends the start of a CPU that was entered below EL2 (or above). Runs with the MMU off.
pub(crate) extern "C" fn wrong_level(_level: u64) {
    console::find_unmapped(layout::system_image());
    crash::refuse(lockdown!(
        "not entered at EL2; the firmware or emulator must start this image in hypervisor mode"
    ));
}
