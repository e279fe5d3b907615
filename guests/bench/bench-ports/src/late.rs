// SPDX-License-Identifier: Apache-2.0
//! The lateness of a task after the end of its sleep, while a less important partition runs, in ticks of the
//! counter.
//!
//! The end of a sleep is a time of the hypervisor's clock, and the counter is another one. Both are read just
//! before the sleep, the counter first. So the task is later by a part of the call that reads the clock.

use bulkhead_guest::hypercall::{Handle, timer_now, timer_sleep};
use bulkhead_guest::println;
use bulkhead_guest::vm::timer::Timer;

/// Turns that are counted, and turns before them.
const REPEATS: usize = 9;
const WARM_UP: usize = 3;
/// From the call to the end of the sleep, in nanoseconds: more than it takes to sleep.
const AHEAD: u64 = 50_000;
/// The same for the first sleep, in which the other partition is loaded.
const LOADED: u64 = 2_000_000;

/// Measures.
pub fn measure(clock: Handle) {
    let mut ticks = [0; REPEATS];
    let mut ahead = LOADED;
    for turn in 0..WARM_UP + REPEATS {
        let counter = Timer::Virtual.now();
        let slept = timer_now(clock).and_then(|now| timer_sleep(clock, now + ahead));
        let back = Timer::Virtual.now();
        if let Err(error) = slept {
            println!("bench failed: {error:?}");
            return;
        }
        if let Some(turn) = turn.checked_sub(WARM_UP) {
            ticks[turn] = back - counter - ahead;
        }
        ahead = AHEAD;
    }
    ticks.sort_unstable();
    println!("bench late {}", ticks[REPEATS / 2]);
}
