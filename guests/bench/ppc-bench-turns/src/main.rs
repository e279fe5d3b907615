// SPDX-License-Identifier: Apache-2.0
//! Measures what a switch between two VMs and an interrupt of the timer cost on a PowerPC 405, as gaps in a
//! loop.
//!
//! Two VMs are always ready, and have turns. One of them writes the time into the memory of a channel again
//! and again. The other one looks at the time all the while: a long gap says that it was away. From the last
//! time that the first one wrote to the first time that the other one sees is the switch. An interrupt of the
//! timer is a short gap. Each figure is exact to one round of a loop and a tick.
//!
//! Bootargs: `part=turns` measures switches to this VM, and `part=stamps` is the other side of them. Without
//! `part`, as on the bare board, the timer is measured. This is a program besides `ppc-bench`: the figures of
//! that one depend on the places of its instructions.
#![no_std]
#![no_main]
#![forbid(unsafe_code)]

use bulkhead_guest::arguments;
use bulkhead_guest::channel::Channel;
use bulkhead_guest::hypercall::Handle;
use bulkhead_guest::powerpc::{Machine, cpu};
use bulkhead_guest::println;
use core::sync::atomic::{AtomicU32, Ordering};

mod dhrystone;

bulkhead_guest::powerpc_main!(main);

/// Instructions in a tick of the time base.
const INSTRUCTIONS: u32 = 3;
/// Turns that are counted, and turns before them.
const REPEATS: usize = 9;
const WARM_UP: usize = 3;
/// Ticks after which the program was away: more than any interrupt takes, and less than a turn.
const GAP: u32 = 30_000;

/// Timer control and status, and the timer (IBM PowerPC 405 user's manual, chapter 11).
const CONTROL: u32 = 986;
const STATUS: u32 = 984;
const TIMER: u32 = 987;
const INTERRUPTS: u32 = 0x0400_0000;
/// The timer starts anew by itself.
const RELOAD: u32 = 0x0040_0000;
/// Ticks between its interrupts: 4 ms, as Linux has it.
const PERIOD: u32 = 1_333_333;
/// Rounds that are measured, and rounds between two looks at the timer: less than a period takes.
const ROUNDS: i32 = 100_000;
const AT_ONCE: i32 = 1_000;
/// Ticks until the timer expires, and ticks in which a turn looks for the gap.
const AHEAD: u32 = 2_000;
const LOOKED: u32 = 10_000;

fn main(machine: Machine) {
    match arguments::value(machine.bootargs(), "part") {
        Some("turns") => measure(),
        Some("stamps") => serve(),
        _ => {
            timer();
            compute();
        }
    }
    println!("bench done");
}

/// Measures the interrupt of the timer.
fn timer() {
    cpu::write_spr::<CONTROL>(INTERRUPTS);
    show("pit", timer_once);
}

/// Measures rounds of a program that computes, while the timer interrupts it at the rate of an operating
/// system.
fn compute() {
    let mut state = dhrystone::State::START;
    cpu::write_spr::<STATUS>(u32::MAX);
    cpu::write_spr::<CONTROL>(INTERRUPTS | RELOAD);
    cpu::write_spr::<TIMER>(PERIOD);
    let start = cpu::ticks();
    for number in 0..ROUNDS {
        if number % AT_ONCE == 0 {
            // The handler returns with interrupts masked.
            cpu::write_spr::<STATUS>(u32::MAX);
            cpu::enable_interrupts();
        }
        state.round(number);
    }
    let took = cpu::ticks().wrapping_sub(start);
    cpu::disable_interrupts();
    cpu::write_spr::<CONTROL>(0);
    if !state.is_right() {
        println!("bench failed: Dhrystone has other values");
        return;
    }
    println!(
        "bench dhrystone {}",
        u64::from(took) * u64::from(INSTRUCTIONS) * 1000 / ROUNDS as u64
    );
}

/// Measures switches to this VM.
fn measure() {
    let Some(stamp) = stamp() else { return };
    while stamp.load(Ordering::Acquire) == 0 {
        core::hint::spin_loop();
    }
    show("turn", || come_back().wrapping_sub(stamp.load(Ordering::Acquire)));
}

/// Writes the time for ever.
fn serve() {
    let Some(stamp) = stamp() else { return };
    loop {
        stamp.store(cpu::ticks(), Ordering::Release);
    }
}

/// Prints the median of several turns, in instructions.
fn show(name: &str, mut turn: impl FnMut() -> u32) {
    let mut ticks = [0; REPEATS];
    for number in 0..WARM_UP + REPEATS {
        let found = turn();
        if let Some(number) = number.checked_sub(WARM_UP) {
            ticks[number] = found;
        }
    }
    ticks.sort_unstable();
    println!("bench {name} {}", ticks[REPEATS / 2] * INSTRUCTIONS);
}

/// Returns the word of the channel.
fn stamp() -> Option<&'static AtomicU32> {
    let channel = Channel::open(Handle(1)).ok();
    let word = channel.and_then(|channel| channel.words().first());
    if word.is_none() {
        println!("bench failed: no channel");
    }
    word
}

/// Waits for the end of a time away, and returns the time.
fn come_back() -> u32 {
    let mut last = cpu::ticks();
    loop {
        let now = cpu::ticks();
        if now.wrapping_sub(last) > GAP {
            return now;
        }
        last = now;
    }
}

/// Returns the longest gap while the timer interrupts once. Its handler returns with interrupts masked.
fn timer_once() -> u32 {
    cpu::write_spr::<STATUS>(u32::MAX);
    cpu::write_spr::<TIMER>(AHEAD);
    cpu::enable_interrupts();
    let start = cpu::ticks();
    let (mut last, mut longest) = (start, 0);
    while last.wrapping_sub(start) < LOOKED {
        let now = cpu::ticks();
        longest = longest.max(now.wrapping_sub(last));
        last = now;
    }
    longest
}
