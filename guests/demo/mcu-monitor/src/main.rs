// SPDX-License-Identifier: Apache-2.0
//! A task that takes readings from the ring of a channel whenever the doorbell raises an event.
//!
//! It needs the capabilities `readings` (a channel) and `events` (its own event gate, read). It prints a line
//! each ten readings: `monitor: reading 10 by 10 rings, 0 lost`.
#![no_std]
#![no_main]
#![forbid(unsafe_code)]

use bulkhead_guest::channel::Channel;
use bulkhead_guest::hypercall::{self, Handle};
use bulkhead_guest::println;
use bulkhead_guest::ring::{Consumer, ReceiveError};
use bulkhead_guest::startup_page::StartupPage;

bulkhead_guest::task_main!(main);

fn main(page: StartupPage<'static>) {
    let find = |name: &str| page.find(name).map(|found| Handle(found.index));
    let readings = find("readings").and_then(|readings| Channel::open(readings).ok());
    let (Some(readings), Some(events)) = (readings, find("events")) else {
        println!("monitor: no channel, or no gate");
        return;
    };
    let Some(mut consumer) = Consumer::attach(readings.words()) else {
        println!("monitor: no room for a ring");
        return;
    };
    let (mut last, mut lost, mut rings) = (0_u32, 0, 0);
    loop {
        let mut message = [0; 4];
        match consumer.receive(&mut message) {
            Ok(_) => {
                let number = u32::from_le_bytes(message);
                lost += number.wrapping_sub(last + 1);
                last = number;
                if number % 10 == 0 {
                    println!("monitor: reading {number} by {rings} rings, {lost} lost");
                }
            }
            Err(ReceiveError::Empty) => {
                if hypercall::event_wait(events, 0).is_err() {
                    return;
                }
                rings += 1;
            }
            Err(error) => {
                println!("monitor: {error:?}");
                return;
            }
        }
    }
}
