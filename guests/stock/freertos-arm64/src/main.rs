// SPDX-License-Identifier: Apache-2.0
//! FreeRTOS for 64-bit Arm as it is published, with an application in C, for QEMU's board `virt`.
//!
//! The crate `freertos-next` ships the kernel's sources, so cargo fetches them and checks their digest.
//! `build.rs` compiles them, and `start.S` has the entry. Nothing here is Rust but this frame. The program is
//! the same on the bare board and in a VM. The lines that it prints are the same too, but for the figures of
//! its lines `cost`.
#![no_std]
#![no_main]
#![forbid(unsafe_code)]

use core::panic::PanicInfo;

#[panic_handler]
fn on_panic(_: &PanicInfo<'_>) -> ! {
    loop {
        core::hint::spin_loop();
    }
}
