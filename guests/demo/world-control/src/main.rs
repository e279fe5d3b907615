// SPDX-License-Identifier: Apache-2.0
//! A control loop of 1 kHz as a task: it keeps a level at a set point, and tells another task of each tenth
//! step.
//!
//! It needs the capabilities `clock` (the timer) and `readings` (a channel with a ring). Every 250 steps it
//! prints `control: releases 250, missed 0, jitter max 1234 ns, response max 2345 ns, level 50000`. The
//! jitter is the time from the release to the first instruction, the response the time to the last one. Both
//! are the longest since the start.
#![no_std]
#![no_main]
#![forbid(unsafe_code)]

use bulkhead_guest::channel::Channel;
use bulkhead_guest::hypercall::Handle;
use bulkhead_guest::println;
use bulkhead_guest::ring::Producer;
use bulkhead_guest::startup_page::StartupPage;
use bulkhead_guest::task::releases::Releases;

bulkhead_guest::task_main!(main);

/// Nanoseconds of a period.
const PERIOD: u64 = 1_000_000;
/// Steps of a report, and of a reading.
const REPORT: u32 = 250;
const READING: u32 = 10;
/// The level to keep.
const SET_POINT: i32 = 50_000;

/// A vessel with a leak, and its regulator.
#[derive(Default)]
struct Loop {
    level: i32,
    integral: i32,
}

impl Loop {
    /// Lets a period pass: the regulator opens a valve in proportion to the error and its integral.
    fn step(&mut self) {
        let error = SET_POINT - self.level;
        self.integral += error;
        let valve = (error / 8 + self.integral / 256).clamp(0, 10_000);
        self.level += valve - self.level / 64;
    }
}

fn main(page: StartupPage<'static>) {
    let find = |name: &str| page.find(name).map(|found| Handle(found.index));
    let readings = find("readings").and_then(|readings| Channel::open(readings).ok());
    let (Some(readings), Some(clock)) = (readings, find("clock")) else {
        println!("control: no channel, or no clock");
        return;
    };
    let Some(mut producer) = Producer::attach(readings.words()) else {
        println!("control: no room for a ring");
        return;
    };
    let (mut controlled, mut releases) = (Loop::default(), Releases::new(clock, PERIOD));
    for number in 1_u32.. {
        releases.wait();
        controlled.step();
        if number.is_multiple_of(READING) {
            let sent = producer.send(&(number / READING).to_le_bytes());
            if sent.is_err() || readings.ring(0).is_err() {
                println!("control: reading {} REFUSED", number / READING);
            }
        }
        releases.end();
        if number.is_multiple_of(REPORT) {
            let Releases {
                missed,
                jitter,
                response,
                ..
            } = releases;
            let level = controlled.level;
            println!(
                "control: releases {number}, missed {missed}, jitter max {jitter} ns, response max {response} ns, level {level}"
            );
        }
    }
}
