// SPDX-License-Identifier: Apache-2.0
//! A task that serves a port: it answers each message with the same bytes, each of them plus one.
//!
//! It needs the capability `requests` (a port, read). If it has an event gate of its own (`events`, read and
//! write), it sends the right to signal it to those who ask: a message of one byte, 0xFF. It counts the
//! signals, and prints how many there were so far when a task asks for that: a message of one byte, 0xFE.
#![no_std]
#![no_main]
#![forbid(unsafe_code)]

use bulkhead_guest::abi::{Error, Rights};
use bulkhead_guest::hypercall::{self, Handle};
use bulkhead_guest::port::{self, Message, Received};
use bulkhead_guest::println;
use bulkhead_guest::startup_page::StartupPage;

bulkhead_guest::task_main!(main);

/// Bytes of the longest request.
const SIZE: usize = 320;

fn main(page: StartupPage<'static>) {
    let find = |name: &str| page.find(name).map(|found| Handle(found.index));
    let Some(requests) = find("requests") else {
        println!("echo: no port");
        return;
    };
    let events = find("events");
    let (mut buffer, mut answer) = (Message::<SIZE>::new(), (None, 0));
    println!("echo: serves");
    loop {
        let came = port::reply_receive(requests, answer, &mut buffer, 0);
        answer = match came {
            Ok(received) => handle(&received, &mut buffer, events),
            // The caller has given up, or has no room for so much, and its call has ended.
            Err(Error::Revoked | Error::NoSpace) => (None, 0),
            Err(error) => {
                println!("echo: {error:?}");
                return;
            }
        };
    }
}

/// Handles a request. Returns how it is answered: by which capability, with how many bytes.
fn handle(
    received: &Received,
    buffer: &mut Message<SIZE>,
    events: Option<Handle>,
) -> (Option<Handle>, usize) {
    let length = received.length.min(SIZE);
    match (&buffer.0[..length], events, received.reply) {
        ([0xFF], Some(events), Some(to)) => {
            let given = port::reply(to, buffer, 0, Some((events, Rights::WRITE)));
            if let Err(error) = given {
                println!("echo: cannot give: {error:?}");
            }
            (None, 0)
        }
        ([0xFE], Some(events), reply) => {
            let seen = hypercall::event_poll(events).unwrap_or(0);
            println!("echo: events {seen:#x}");
            (reply, length)
        }
        _ => {
            for byte in &mut buffer.0[..length] {
                *byte = byte.wrapping_add(1);
            }
            (received.reply, length)
        }
    }
}
