// SPDX-License-Identifier: Apache-2.0
//! A task that takes readings from the ring of a channel whenever the doorbell raises an event.
//!
//! It needs the capabilities `readings` (a channel) and `events` (its own event gate, read). It prints a line
//! each ten readings: `monitor: reading 10 by 10 rings, 0 lost`. With the capability `lines` (a port, write) it
//! sends `reading 10` there as well, for whoever prints lines elsewhere.
#![no_std]
#![no_main]
#![forbid(unsafe_code)]

use bulkhead_guest::channel::Channel;
use bulkhead_guest::hypercall::{self, Handle};
use bulkhead_guest::port::{self, Message};
use bulkhead_guest::println;
use bulkhead_guest::ring::{Consumer, ReceiveError};
use bulkhead_guest::startup_page::StartupPage;
use core::fmt::{self, Write};

bulkhead_guest::task_main!(main);

/// A line of text as a message.
struct Line {
    message: Message<32>,
    length: usize,
}

impl Write for Line {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let room = self.message.0.get_mut(self.length..self.length + text.len());
        room.ok_or(fmt::Error)?.copy_from_slice(text.as_bytes());
        self.length += text.len();
        Ok(())
    }
}

/// Sends a reading to a port as a line of text. A port that is full loses the line.
fn send(lines: Handle, number: u32) {
    let mut line = Line {
        message: Message::new(),
        length: 0,
    };
    if write!(line, "reading {number}").is_ok() {
        let _ = port::send(lines, &line.message, line.length, None);
    }
}

fn main(page: StartupPage<'static>) {
    let find = |name: &str| page.find(name).map(|found| Handle(found.index));
    let readings = find("readings").and_then(|readings| Channel::open(readings).ok());
    let (Some(readings), Some(events)) = (readings, find("events")) else {
        println!("monitor: no channel, or no gate");
        return;
    };
    let lines = find("lines");
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
                    if let Some(lines) = lines {
                        send(lines, number);
                    }
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
