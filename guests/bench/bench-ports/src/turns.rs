// SPDX-License-Identifier: Apache-2.0
//! The price of a switch between two partitions of one pCPU, in ticks of the counter. Tasks and VMs measure
//! with this file.
//!
//! Both are always ready, and have turns. One of them writes the time into the memory of a channel again and
//! again. The other one looks at the time all the while: a gap says that it was away. From the last time that
//! the first one wrote to the first time that the other one sees is the switch, exact to one round of a loop.

use bulkhead_guest::channel::Channel;
use bulkhead_guest::hypercall::Handle;
use bulkhead_guest::println;
use bulkhead_guest::vm::timer::Timer;
use core::sync::atomic::{AtomicU32, Ordering};

/// Turns that are counted, and turns before them.
const REPEATS: usize = 9;
const WARM_UP: usize = 3;
/// Ticks after which the program was away: more than any interrupt takes, and less than a turn.
const GAP: u64 = 100_000;

/// Measures switches to this partition.
pub fn measure(channel: Handle) {
    let Some(stamp) = stamp(channel) else { return };
    while stamp.load(Ordering::Acquire) == 0 {
        core::hint::spin_loop();
    }
    let mut ticks = [0; REPEATS];
    for turn in 0..WARM_UP + REPEATS {
        let back = come_back();
        let gone = stamp.load(Ordering::Acquire);
        if let Some(turn) = turn.checked_sub(WARM_UP) {
            ticks[turn] = (back as u32).wrapping_sub(gone);
        }
    }
    ticks.sort_unstable();
    println!("bench turn {}", ticks[REPEATS / 2]);
}

/// Writes the time for ever.
pub fn serve(channel: Handle) {
    let Some(stamp) = stamp(channel) else { return };
    loop {
        stamp.store(Timer::Virtual.now() as u32, Ordering::Release);
    }
}

/// Returns the word of the channel.
fn stamp(channel: Handle) -> Option<&'static AtomicU32> {
    let word = Channel::open(channel)
        .ok()
        .and_then(|channel| channel.words().first());
    if word.is_none() {
        println!("bench failed: no channel");
    }
    word
}

/// Waits for the end of a time away, and returns the time.
fn come_back() -> u64 {
    let mut last = Timer::Virtual.now();
    loop {
        let now = Timer::Virtual.now();
        if now - last > GAP {
            return now;
        }
        last = now;
    }
}
