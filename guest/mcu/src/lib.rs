// SPDX-License-Identifier: Apache-2.0
//! Runtime library of our guests for microcontrollers.
//!
//! Such a guest is a program as one would write it for the board itself, an Arm MPS2. Its vector table and
//! start-up come from the crate `cortex-m-rt`, its addresses from a `memory.x` of its own. Nothing in the
//! program knows of a hypervisor. The same file runs on the bare board (`bulkhead` calls that `bare`), which
//! is how a fault of a guest is told from one of the hypervisor.
//!
//! All unsafe code of these guests is in here; a guest itself forbids it.
#![no_std]

pub mod device;
pub mod draws;
pub mod ethernet;
pub mod internet;
pub mod interrupts;
pub mod register;
pub mod ring;
pub mod timer;
pub mod uart;
pub mod wake;

use core::panic::PanicInfo;

/// Says what went wrong and stops.
#[panic_handler]
fn panic(info: &PanicInfo<'_>) -> ! {
    println!("panic: {info}");
    loop {
        cortex_m::asm::wfi();
    }
}
