// SPDX-License-Identifier: Apache-2.0
//! The lateness of a task after the end of its sleep, over many sleeps, in ticks of the counter.
//!
//! The end of a sleep is a time of the hypervisor's clock, and the counter is another one. Both are read just
//! before the sleep, the counter first. So the task is later by a part of the call that reads the clock.

use crate::spread::{self, ARRIVALS, PHASE};
use bulkhead_guest::abi::Error;
use bulkhead_guest::hypercall::{Handle, timer_now, timer_sleep};
use bulkhead_guest::println;
use bulkhead_guest::vm::timer::Timer;

/// From the call to the end of the first sleep, in nanoseconds: more than it takes to sleep.
const AHEAD: u64 = 50_000;
/// The time of the sleep before it, in which the other partition is loaded.
const LOADED: u64 = 2_000_000;

/// Measures.
pub fn measure(clock: Handle) {
    if let Err(error) = all(clock) {
        println!("bench failed: {error:?}");
    }
}

fn all(clock: Handle) -> Result<(), Error> {
    late(clock, LOADED)?;
    let mut ticks = [0; ARRIVALS];
    let mut ahead = AHEAD;
    for found in &mut ticks {
        *found = late(clock, ahead)?;
        ahead += PHASE;
    }
    spread::show("late", &mut ticks);
    Ok(())
}

/// Sleeps for so many nanoseconds, and returns how late the task goes on.
fn late(clock: Handle, ahead: u64) -> Result<u64, Error> {
    let counter = Timer::Virtual.now();
    timer_now(clock).and_then(|now| timer_sleep(clock, now + ahead))?;
    Ok(Timer::Virtual.now() - counter - ahead)
}
