// SPDX-License-Identifier: Apache-2.0
//! Prints its name and then, five times and without any interrupt, that it is still there.
//!
//! The smallest guest of a microcontroller: vector table, start-up, UART. It checks what every program relies
//! on after a reset: variables have their initial values or are zero, and the CPU is in Thread mode.
#![no_std]
#![no_main]
#![forbid(unsafe_code)]

use bulkhead_guest_mcu::println;
use core::sync::atomic::{AtomicU32, Ordering};
use cortex_m::peripheral::SCB;
use cortex_m::{asm, peripheral::scb::VectActive};
use cortex_m_rt::entry;

/// An initial value that the start-up code copies to RAM.
static INITIAL: AtomicU32 = AtomicU32::new(0x600d_da7a);
/// Cleared by the start-up code.
static ZERO: AtomicU32 = AtomicU32::new(0);

#[entry]
fn main() -> ! {
    let initialised = INITIAL.load(Ordering::Relaxed) == 0x600d_da7a && ZERO.load(Ordering::Relaxed) == 0;
    let thread = SCB::vect_active() == VectActive::ThreadMode;
    println!("hello: a program on a microcontroller");
    println!("hello: variables {}", if initialised { "right" } else { "WRONG" });
    println!("hello: mode {}", if thread { "thread" } else { "HANDLER" });
    for round in 1..=5 {
        asm::delay(20_000);
        println!("hello: still here, round {round}");
    }
    println!("hello: done");
    loop {
        asm::wfi();
    }
}
