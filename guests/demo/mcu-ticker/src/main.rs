// SPDX-License-Identifier: Apache-2.0
//! Driven by its timer: SysTick comes every millisecond, a line every hundred, and the program sleeps in
//! between.
//!
//! The line says how many ticks the handler has counted and how many times the main loop woke. A tick that is
//! lost or counted twice shows, and so does a CPU that never sleeps.
#![no_std]
#![no_main]
#![forbid(unsafe_code)]

use bulkhead_guest_mcu::println;
use core::sync::atomic::{AtomicU32, Ordering};
use cortex_m::peripheral::syst::SystClkSource;
use cortex_m::{Peripherals, asm};
use cortex_m_rt::{entry, exception};

/// Ticks of the CPU's clock in a millisecond.
const MILLISECOND: u32 = 25_000;

static TICKS: AtomicU32 = AtomicU32::new(0);

#[exception]
fn SysTick() {
    // Only this handler writes it.
    TICKS.store(TICKS.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
}

#[entry]
fn main() -> ! {
    println!("ticker: started");
    if let Some(mut peripherals) = Peripherals::take() {
        let timer = &mut peripherals.SYST;
        timer.set_clock_source(SystClkSource::Core);
        timer.set_reload(MILLISECOND - 1);
        timer.clear_current();
        timer.enable_interrupt();
        timer.enable_counter();
    }
    let (mut reported, mut woken) = (0, 0_u32);
    loop {
        asm::wfi();
        woken += 1;
        let ticks = TICKS.load(Ordering::Relaxed);
        if ticks / 100 > reported {
            reported = ticks / 100;
            println!("ticker: {ticks} ticks, woken {woken} times");
        }
    }
}
