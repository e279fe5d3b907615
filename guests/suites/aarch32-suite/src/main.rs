// SPDX-License-Identifier: Apache-2.0
//! Tests of a VM whose EL1 is AArch32, as its software sees it.
//!
//! The tests cover the differences from a 64-bit VM: banked registers over exits in every mode, T32 and IT
//! blocks at trapped instructions, coprocessor registers, exceptions that the hypervisor injects, PSCI with
//! 32-bit functions. The runtime (`start.s`) is as small as these tests allow. It is not the runtime of the
//! 64-bit guests.
//!
//! The program exists for 32-bit Arm only. For any other target it is empty.
#![no_std]
#![no_main]

#[cfg(target_arch = "arm")]
mod suite;
#[cfg(target_arch = "arm")]
mod words;

#[panic_handler]
fn panic(_info: &core::panic::PanicInfo<'_>) -> ! {
    loop {
        core::hint::spin_loop();
    }
}
