// SPDX-License-Identifier: Apache-2.0
//! A task that ends another partition's life again and again, each time after another while, and starts it
//! warm: a service partition that crashes.
//!
//! It needs the capabilities `victim` (the partition; control) and `clock` (timer). The victim starts cold if
//! the capability is named `cold-victim`.
#![no_std]
#![no_main]
#![forbid(unsafe_code)]

use bulkhead_guest::abi::StartMode;
use bulkhead_guest::abi::status::StartOptions;
use bulkhead_guest::hypercall::{self, Handle};
use bulkhead_guest::println;
use bulkhead_guest::random::Random;
use bulkhead_guest::startup_page::StartupPage;

bulkhead_guest::task_main!(main);

/// Lives that it ends.
const LIVES: u32 = 1000;
/// Nanoseconds after boot of the first end: clients are busy from about then on.
const FIRST: u64 = 600_000_000;
/// Nanoseconds from one end to the next: between half of that and all of it.
const DISTANCE: u64 = 2_000_000;

fn main(page: StartupPage<'static>) {
    let find = |name: &str| page.find(name).map(|found| Handle(found.index));
    let (victim, mode) = match find("cold-victim") {
        None => (find("victim"), StartMode::Warm),
        cold => (cold, StartMode::Cold),
    };
    let (Some(victim), Some(clock)) = (victim, find("clock")) else {
        println!("reaper: no victim, or no clock");
        return;
    };
    let mut random = Random::new(21);
    let mut next = FIRST;
    let mut refused = 0_u32;
    let options = StartOptions {
        mode,
        ..StartOptions::default()
    };
    for _ in 0..LIVES {
        // A time that has passed is no reason to stop. The victim gets its time to live all the same.
        let _ = hypercall::timer_sleep(clock, next);
        next = hypercall::timer_now(clock).unwrap_or(next) + DISTANCE / 2 + random.below(DISTANCE / 2);
        refused += u32::from(hypercall::partition_restart_as(victim, options).is_err());
    }
    println!("reaper: {LIVES} lives, {refused} refused");
}
