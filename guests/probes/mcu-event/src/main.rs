// SPDX-License-Identifier: Apache-2.0
//! Idles by WFE, as executors of `async` functions do: it polls until nothing is left, and waits for an
//! event.
//!
//! SysTick comes every millisecond. Every tenth SysTick wakes the only task, by SEV. The task prints a line
//! every ten times: how often it was polled, and how often there was nothing to do. The latter counts the
//! ends of WFE: a tick ends it, and the run of the tick's handler is an event that ends it once more.
#![no_std]
#![no_main]
#![forbid(unsafe_code)]

use bulkhead_guest_mcu::println;
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use cortex_m::peripheral::syst::SystClkSource;
use cortex_m::{Peripherals, asm};
use cortex_m_rt::{entry, exception};

/// Ticks of the CPU's clock in a millisecond.
const MILLISECOND: u32 = 25_000;

static TICKS: AtomicU32 = AtomicU32::new(0);
static WOKEN: AtomicBool = AtomicBool::new(true);

#[exception]
fn SysTick() {
    // Only this handler writes it.
    let ticks = TICKS.load(Ordering::Relaxed) + 1;
    TICKS.store(ticks, Ordering::Relaxed);
    if ticks.is_multiple_of(10) {
        WOKEN.store(true, Ordering::Relaxed);
        asm::sev();
    }
}

#[entry]
fn main() -> ! {
    println!("event: started");
    if let Some(mut peripherals) = Peripherals::take() {
        let timer = &mut peripherals.SYST;
        timer.set_clock_source(SystClkSource::Core);
        timer.set_reload(MILLISECOND - 1);
        timer.clear_current();
        timer.enable_interrupt();
        timer.enable_counter();
    }
    let (mut polled, mut idle) = (0_u32, 0_u32);
    loop {
        if WOKEN.swap(false, Ordering::Relaxed) {
            polled += 1;
            if polled.is_multiple_of(10) {
                let ticks = TICKS.load(Ordering::Relaxed);
                println!("event: {ticks} ticks, polled {polled} times, idle {idle} times");
            }
        } else {
            idle += 1;
        }
        asm::wfe();
    }
}
