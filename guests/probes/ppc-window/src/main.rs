// SPDX-License-Identifier: Apache-2.0
//! Watches its own windows on a PowerPC 405: it reads the time again and again, and a gap is the time that
//! others have. So it sees when each window begins, and how far the windows are from each other.
//!
//! Bootargs: `frame=N`, ticks of the time base in a frame that has one window of this partition; `frames=N`.
//! It prints `window: N frames, at most L ticks late, E ticks early`.
#![no_std]
#![no_main]
#![forbid(unsafe_code)]

use bulkhead_guest::powerpc::{Machine, cpu};
use bulkhead_guest::{arguments, println};

bulkhead_guest::powerpc_main!(main);

/// Ticks that nothing in a turn of the loop takes.
const GAP: u32 = 3000;

/// Returns when the next window begins.
fn next_window(now: &mut u32) -> u32 {
    loop {
        let before = core::mem::replace(now, cpu::ticks());
        if now.wrapping_sub(before) >= GAP {
            return *now;
        }
    }
}

fn main(machine: Machine) {
    let line = machine.bootargs();
    let frame = arguments::number(line, "frame", 100_000) as u32;
    let frames = arguments::number(line, "frames", 1000);
    let mut now = cpu::ticks();
    let mut last = next_window(&mut now);
    let (mut late, mut early) = (0, 0);
    for _ in 0..frames {
        let begin = next_window(&mut now);
        let distance = begin.wrapping_sub(last);
        late = distance.saturating_sub(frame).max(late);
        early = frame.saturating_sub(distance).max(early);
        last = begin;
    }
    println!("window: {frames} frames, at most {late} ticks late, {early} ticks early");
}
