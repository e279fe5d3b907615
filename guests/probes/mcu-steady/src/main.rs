// SPDX-License-Identifier: Apache-2.0
//! Does the same piece of work again and again, without an exit of its own, and says how much the longest
//! took more than the shortest. An interrupt of another partition that comes through meanwhile shows.
//!
//! Timer 1 is the measure: it counts a tick in 40 instructions. The piece of work takes half a millisecond
//! where an instruction takes a nanosecond. Before it begins, the program sleeps, so that its neighbours
//! have started.
#![no_std]
#![no_main]
#![forbid(unsafe_code)]

use bulkhead_guest_mcu::println;
use bulkhead_guest_mcu::timer::Timer;
use core::hint::black_box;
use cortex_m::peripheral::syst::SystClkSource;
use cortex_m::{Peripherals, asm};
use cortex_m_rt::{entry, exception};

/// Ticks for which the program sleeps: 20 ms.
const SLEEP: u32 = 500_000;
const ROUNDS: u32 = 200;

#[exception]
fn SysTick() {}

/// Does the work. Returns how many ticks it took.
#[inline(never)]
fn work() -> u32 {
    let start = Timer::ALL[1].left();
    let mut sum = 1_u32;
    for number in 0..50_000 {
        sum = black_box(sum.wrapping_mul(31).wrapping_add(number));
    }
    black_box(sum);
    start.wrapping_sub(Timer::ALL[1].left())
}

#[entry]
fn main() -> ! {
    println!("steady: started");
    Timer::ALL[1].start(0);
    if let Some(mut peripherals) = Peripherals::take() {
        let timer = &mut peripherals.SYST;
        timer.set_clock_source(SystClkSource::Core);
        timer.set_reload(SLEEP - 1);
        timer.clear_current();
        timer.enable_interrupt();
        timer.enable_counter();
        asm::wfi();
        timer.disable_counter();
        timer.disable_interrupt();
    }
    // The first of all also translates the code in the emulator.
    work();
    let (mut shortest, mut longest) = (u32::MAX, 0);
    for _ in 0..ROUNDS {
        let ticks = work();
        shortest = shortest.min(ticks);
        longest = longest.max(ticks);
    }
    println!(
        "steady: {ROUNDS} rounds, the longest took {} ticks more",
        longest - shortest
    );
    loop {
        asm::wfi();
    }
}
