// SPDX-License-Identifier: Apache-2.0
//! A task that finds its own registers again whenever others have run: the register that it may write at EL0
//! (TPIDR_EL0), and its stack. Time away shows by the counter.
#![no_std]
#![no_main]
#![forbid(unsafe_code)]

use bulkhead_guest::println;
use bulkhead_guest::startup_page::StartupPage;
use bulkhead_guest::vm::register::Register;
use bulkhead_guest::vm::timer::Timer;
use core::hint::black_box;

bulkhead_guest::task_main!(main);

/// Times away that are looked at.
const TURNS: u64 = 100;
/// Ticks after which the task was away: more than any interrupt takes, and less than a turn.
const GAP: u64 = 20_000;

fn main(_: StartupPage<'static>) {
    // No two tasks begin at the same time.
    let own = Timer::Virtual.now();
    let mut wrong = 0;
    for turn in 1..=TURNS {
        let value = own.wrapping_mul(turn) | turn << 56;
        let stack = black_box([value; 64]);
        Register::TPIDR0.write(value);
        wait_for_others();
        wrong += u32::from(Register::TPIDR0.read() != value);
        wrong += u32::from(black_box(&stack).iter().any(|word| *word != value));
    }
    println!("own-registers: {TURNS} turns of others, {wrong} wrong");
}

/// Goes on once another partition has run.
fn wait_for_others() {
    let mut last = Timer::Virtual.now();
    loop {
        let now = Timer::Virtual.now();
        if now.wrapping_sub(last) > GAP {
            return;
        }
        last = now;
    }
}
