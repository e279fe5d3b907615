// SPDX-License-Identifier: Apache-2.0
//! A task that watches a channel which it may only read.
//!
//! It needs the capabilities `state` (a channel, read) and `events` (its own event gate, read). The doorbell
//! of the channel raises an event there. It prints `monitor: reading 100, value 10000` at each hundredth
//! reading that it sees or has passed.
#![no_std]
#![no_main]
#![forbid(unsafe_code)]

use core::sync::atomic::Ordering::{Acquire, Relaxed};

use bulkhead_guest::channel::Channel;
use bulkhead_guest::hypercall::{self, Handle};
use bulkhead_guest::println;
use bulkhead_guest::startup_page::StartupPage;

bulkhead_guest::task_main!(main);

/// Readings from one line to the next.
const STEP: u32 = 100;

fn main(page: StartupPage<'static>) {
    let find = |name: &str| page.find(name).map(|found| Handle(found.index));
    let (Some(state), Some(events)) = (find("state"), find("events")) else {
        println!("monitor: no channel, or no gate");
        return;
    };
    let state = match Channel::open(state) {
        Ok(state) => state,
        Err(error) => {
            println!("monitor: {error:?}");
            return;
        }
    };
    println!(
        "monitor: side {} of {}, writes {}",
        state.side(),
        state.sides(),
        state.may_write()
    );
    let mut next = STEP;
    loop {
        if let Err(error) = hypercall::event_wait(events, 0) {
            println!("monitor: {error:?}");
            return;
        }
        if let [number, value, ..] = state.words() {
            let number = number.load(Acquire);
            if number >= next {
                println!("monitor: reading {number}, value {}", value.load(Relaxed));
                next = number.saturating_add(STEP);
            }
        }
    }
}
