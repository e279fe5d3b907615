// SPDX-License-Identifier: Apache-2.0
//! A task that serves a port: it answers each message with the same bytes, each of them plus one.
//!
//! It needs the capability `requests` (a port, read). If it has an event gate of its own (`events`, read and
//! write), it sends the right to signal it to those who ask: a message of one byte, 0xFF. It counts the
//! signals, and prints how many there were so far when a task asks for that: a message of one byte, 0xFE.
//!
//! After a message of one byte, 0xFD, it waits at its gate for all at once: for both ports and for signals.
//! It needs the capability `orders` then (a port, read), and an `event` at both ports. Orders are messages of
//! one byte, numbered from 0. A message of one byte, 0xFC, asks what it has seen ([`Seen`]).
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
    let (orders, events) = (find("orders"), find("events"));
    let (mut buffer, mut answer) = (Message::<SIZE>::new(), (None, 0));
    println!("echo: serves");
    loop {
        let came = port::reply_receive(requests, answer.0, answer.1, &mut buffer, 0);
        answer = match came {
            Ok(received) if buffer.0[..received.length.min(SIZE)] == [0xFD] => {
                if let Some(caller) = received.reply {
                    let _lost = port::reply(caller, &buffer, 0, None);
                }
                break;
            }
            Ok(received) => handle(&received, &mut buffer, events),
            // The caller has given up, or has no room for so much, and its call has ended.
            Err(Error::Revoked | Error::NoSpace) => (None, 0),
            Err(error) => {
                println!("echo: {error:?}");
                return;
            }
        };
    }
    match (orders, events) {
        (Some(orders), Some(gate)) => Desk::new([requests, orders, gate]).serve(&mut buffer),
        _ => println!("echo: no port for orders, or no gate"),
    }
}

/// Counts at the gate, as they are told by an answer of three bytes.
#[derive(Default)]
struct Seen {
    /// Orders that came in their order.
    orders: u8,
    /// All events together.
    events: u8,
    /// Most events of one wait.
    at_once: u8,
}

/// A server at its gate.
struct Desk {
    requests: Handle,
    orders: Handle,
    gate: Handle,
    seen: Seen,
}

impl Desk {
    fn new([requests, orders, gate]: [Handle; 3]) -> Self {
        let seen = Seen::default();
        Self {
            requests,
            orders,
            gate,
            seen,
        }
    }

    /// Waits for all at once, then takes what is there. It takes orders before each answer: so the orders
    /// that a task sent before its request are taken when the task has the answer.
    fn serve(&mut self, buffer: &mut Message<SIZE>) {
        loop {
            let events = match hypercall::event_wait(self.gate, 0) {
                Ok(events) => events as u8,
                Err(error) => return println!("echo: gate: {error:?}"),
            };
            self.seen.events |= events;
            if events.count_ones() > self.seen.at_once.count_ones() {
                self.seen.at_once = events;
            }
            self.take_orders();
            while let Ok(received) = port::try_receive(self.requests, buffer) {
                self.take_orders();
                self.answer(&received, buffer);
            }
        }
    }

    fn take_orders(&mut self) {
        let mut order = Message::<8>::new();
        while let Ok(received) = port::try_receive(self.orders, &mut order) {
            let is_next = received.length == 1 && order.0[0] == self.seen.orders;
            self.seen.orders += u8::from(is_next);
        }
    }

    fn answer(&self, received: &Received, buffer: &mut Message<SIZE>) {
        let length = if buffer.0[..received.length.min(SIZE)] == [0xFC] {
            buffer.0[..3].copy_from_slice(&[self.seen.orders, self.seen.events, self.seen.at_once]);
            3
        } else {
            handle(received, buffer, None).1
        };
        if let Some(caller) = received.reply {
            let _lost = port::reply(caller, buffer, length, None);
        }
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
