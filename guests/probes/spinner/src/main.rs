// SPDX-License-Identifier: Apache-2.0
//! A task that uses all the time it can get, from 100 ms to 600 ms after boot, and sleeps before.
//!
//! It needs the capability `clock` (timer).
#![no_std]
#![no_main]
#![forbid(unsafe_code)]

use bulkhead_guest::hypercall::{self as call, Handle};
use bulkhead_guest::println;
use bulkhead_guest::startup_page::StartupPage;

bulkhead_guest::task_main!(main);

const MILLISECOND: u64 = 1_000_000;

fn main(page: StartupPage<'static>) {
    let Some(clock) = page.find("clock").map(|found| Handle(found.index)) else {
        println!("spinner: no clock");
        return;
    };
    let slept = call::timer_sleep(clock, 100 * MILLISECOND);
    let mut rounds = 0_u32;
    while call::timer_now(clock).is_ok_and(|now| now < 600 * MILLISECOND) {
        rounds = rounds.wrapping_add(1);
    }
    println!("spinner: {slept:?}, then busy until the end");
}
