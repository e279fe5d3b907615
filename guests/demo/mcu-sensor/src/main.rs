// SPDX-License-Identifier: Apache-2.0
//! A task that sends a reading each 10 ms through the ring of a channel, and rings.
//!
//! It needs the capabilities `readings` (a channel) and `clock` (the timer). It prints `sensor: 50 readings
//! sent, 0 refused` and ends.
#![no_std]
#![no_main]
#![forbid(unsafe_code)]

use bulkhead_guest::channel::Channel;
use bulkhead_guest::hypercall::{self, Handle};
use bulkhead_guest::println;
use bulkhead_guest::ring::Producer;
use bulkhead_guest::startup_page::StartupPage;

bulkhead_guest::task_main!(main);

const COUNT: u32 = 50;
const PERIOD_NS: u64 = 10_000_000;

fn main(page: StartupPage<'static>) {
    let find = |name: &str| page.find(name).map(|found| Handle(found.index));
    let readings = find("readings").and_then(|readings| Channel::open(readings).ok());
    let (Some(readings), Some(clock)) = (readings, find("clock")) else {
        println!("sensor: no channel, or no clock");
        return;
    };
    let Some(mut producer) = Producer::attach(readings.words()) else {
        println!("sensor: no room for a ring");
        return;
    };
    let (mut refused, mut next) = (0, hypercall::timer_now(clock).unwrap_or(0));
    for number in 1..=COUNT {
        next += PERIOD_NS;
        let _ = hypercall::timer_sleep(clock, next);
        let sent = producer.send(&number.to_le_bytes());
        if sent.is_err() || readings.ring(0).is_err() {
            refused += 1;
        }
    }
    println!("sensor: {COUNT} readings sent, {refused} refused");
}
