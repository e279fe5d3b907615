// SPDX-License-Identifier: Apache-2.0
//! First steps, and the end when one of them fails.

use crate::sysreg::read_register;
use crate::{console, crash, layout, mmu, parking};
use bulkhead_abi::lockdown;

/// MPIDR_EL1: affinity fields (Arm DDI 0487 D19.2.101).
const MPIDR_AFFINITY: u64 = 0xFF_00FF_FFFF;

/// Returns the system image after the class binary. The image is as long as its own header says. Nothing
/// else of the header is checked.
pub(crate) fn system_image() -> &'static [u8] {
    let (address, length) = (
        layout::image_address() as *const u8,
        layout::image_length() as usize,
    );
    // SAFETY: `mmu::build` mapped these bytes read-only, and nothing of the hypervisor's or a partition's is
    // there: the memory plan gives them to the image, and no mapping of a partition may touch them (checked
    // by `bulkhead_image`).
    unsafe { core::slice::from_raw_parts(address, length) }
}

/// Returns the affinity fields of this CPU.
pub(crate) fn own_hardware_id() -> u64 {
    read_register!("mpidr_el1") & MPIDR_AFFINITY
}

/// Fills the translation tables of EL2. Runs with the MMU off.
pub(crate) extern "C" fn build_tables() {
    if mmu::build().is_err() {
        halt(lockdown!("the hypervisor's own memory does not fit its tables"));
    }
}

/// Ends the start of a CPU that was entered below EL2 (or above). Runs with the MMU off.
pub(crate) extern "C" fn wrong_level(_level: u64) {
    console::find_unmapped(system_image());
    crash::refuse(lockdown!(
        "not entered at EL2; the firmware or emulator must start this image in hypervisor mode"
    ));
}

/// Ends this CPU with a reason, before the kernel could.
pub(crate) fn halt(reason: &str) -> ! {
    crash::refuse(reason);
    parking::park()
}
