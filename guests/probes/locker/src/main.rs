// SPDX-License-Identifier: Apache-2.0
//! A task that owns locks too long: it works while it owns one, and ends while it owns another one.
//!
//! It needs the capabilities `first` and `second` (locks) and `clock` (timer). It is less important than the
//! guest `lock-user`, which wants its locks, and than the guest `spinner`, which keeps it from running in its
//! own place.
#![no_std]
#![no_main]
#![forbid(unsafe_code)]

use bulkhead_guest::hypercall::{self as call, Handle};
use bulkhead_guest::lock;
use bulkhead_guest::println;
use bulkhead_guest::startup_page::StartupPage;

bulkhead_guest::task_main!(main);

const MILLISECOND: u64 = 1_000_000;

fn main(page: StartupPage<'static>) {
    let find = |name: &str| page.find(name).map(|found| Handle(found.index));
    let (Some(first), Some(second), Some(clock)) = (find("first"), find("second"), find("clock")) else {
        println!("locker: capabilities first, second and clock: missing");
        return;
    };
    let (Ok(owned), Ok(kept)) = (lock::take(first, 0), lock::take(second, 0)) else {
        println!("locker: no lock");
        return;
    };
    kept.keep();
    println!("locker: owns both");
    // The work is 150 ms of its own time, whenever it gets it.
    let (mut worked, mut last) = (0, call::timer_now(clock).unwrap_or(0));
    while worked < 150 * MILLISECOND {
        let now = call::timer_now(clock).unwrap_or(u64::MAX);
        // A longer step shows that another one ran.
        worked += Some(now.saturating_sub(last))
            .filter(|step| *step < MILLISECOND)
            .unwrap_or(0);
        last = now;
    }
    drop(owned);
    println!("locker: released the first");
}
