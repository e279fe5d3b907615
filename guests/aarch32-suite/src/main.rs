// SPDX-License-Identifier: Apache-2.0
//! Tests of a VM whose EL1 is AArch32, as its software sees it.
//!
//! Everything here is about what is different from a 64-bit VM: banked registers over exits in every mode, T32 and IT
//! blocks at trapped instructions, coprocessor registers, exceptions that the hypervisor injects, PSCI with 32-bit
//! functions. The runtime is as small as that allows (`start.s`), and not that of the 64-bit guests.
//!
//! The program exists for 32-bit Arm only; for any other target it is empty.
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
