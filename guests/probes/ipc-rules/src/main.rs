// SPDX-License-Identifier: Apache-2.0
//! Tasks that test what a client may do to a server and to its other clients. The capability that a task has
//! says what it does:
//!
//! | capability | role |
//! |---|---|
//! | `requests` | server: answers each call with eight bytes |
//! | `careless` | client whose buffer for the reply has four bytes |
//! | `flood` | client that sends, calls and gives up without end |
//! | `honest` | client that calls with its place in the schedule, and counts the calls that fail |
//! | `mine`, `next` | one of a circle: calls the next one, then answers |
//! | `victim` | restarts a server again and again |
//! | `spin` | does not wait |
//! | `idle` | ends at once |
//!
//! All but the server need `clock` (timer), and each a console.
#![no_std]
#![no_main]
#![forbid(unsafe_code)]

use bulkhead_guest::abi::Error;
use bulkhead_guest::hypercall::{self as call, Handle};
use bulkhead_guest::port::{self, Message};
use bulkhead_guest::println;
use bulkhead_guest::startup_page::StartupPage;

bulkhead_guest::task_main!(main);

const MILLISECOND: u64 = 1_000_000;
/// Calls of a client.
const CALLS: u32 = 100;
/// Lives of the victim.
const LIVES: u32 = 50;
/// Nanoseconds that a life lasts, and those that a call has. A life is longer than a start takes.
const LIFE: u64 = 3 * MILLISECOND;
const PATIENCE: u64 = 20 * MILLISECOND;

fn main(page: StartupPage<'static>) {
    let find = |name: &str| page.find(name).map(|found| Handle(found.index));
    if let Some(requests) = find("requests") {
        return serve(requests);
    }
    let Some(clock) = find("clock").map(Clock) else {
        println!("FAIL no clock");
        return;
    };
    if let Some(server) = find("careless") {
        careless(server);
    } else if let Some(server) = find("flood") {
        flood(server, &clock);
    } else if let Some(server) = find("honest") {
        honest(server, &clock);
    } else if let (Some(mine), Some(next)) = (find("mine"), find("next")) {
        circle(mine, next, &clock);
    } else if let Some(victim) = find("victim") {
        reap(victim, &clock);
    } else if find("spin").is_some() {
        while clock.now() != 0 {}
    } else if find("idle").is_none() {
        println!("FAIL no role");
    }
}

struct Clock(Handle);

impl Clock {
    fn now(&self) -> u64 {
        call::timer_now(self.0).unwrap_or(0)
    }

    fn sleep(&self, nanoseconds: u64) {
        let _interrupted = call::timer_sleep(self.0, self.now() + nanoseconds);
    }
}

/// Answers each call. A caller may have given up, or have no room for the answer: its own loss.
fn serve(requests: Handle) {
    let mut message = Message::<64>::new();
    loop {
        match port::receive(requests, &mut message, 0) {
            Ok(received) => {
                if let Some(caller) = received.reply {
                    let _lost = port::reply(caller, &message, 8, None);
                }
            }
            Err(error) => {
                println!("FAIL receive: {error:?}");
                return;
            }
        }
    }
}

/// Calls with too little room for the reply.
fn careless(server: Handle) {
    let (request, mut answer) = (Message::<8>::new(), Message::<4>::new());
    let refused = (0..CALLS)
        .filter(|_| port::send_receive(server, &request, 8, &mut answer, 0) == Err(Error::NoSpace))
        .count();
    println!("careless: {CALLS} calls, {refused} without room");
}

/// Fills the port, by messages and by calls that are given up at once.
fn flood(server: Handle, clock: &Clock) {
    let (request, mut answer) = (Message::<8>::new(), Message::<8>::new());
    loop {
        let _full = port::send(server, &request, 8, None);
        let _late = port::send_receive(server, &request, 8, &mut answer, clock.now() + 1);
    }
}

/// Calls once a millisecond. A call that ends with the server's life is made again.
fn honest(server: Handle, clock: &Clock) {
    let (request, mut answer) = (Message::<8>::new(), Message::<8>::new());
    let mut failed = 0;
    for _ in 0..CALLS {
        clock.sleep(MILLISECOND);
        let deadline = clock.now() + PATIENCE;
        loop {
            match port::send_receive_donate(server, &request, 8, &mut answer, deadline) {
                Err(Error::Revoked) => {}
                ended => {
                    failed += u32::from(ended.is_err());
                    break;
                }
            }
        }
    }
    println!("honest: {CALLS} calls, {failed} failed");
}

/// Calls the next one, and answers the caller that comes then.
fn circle(mine: Handle, next: Handle, clock: &Clock) {
    let (request, mut answer) = (Message::<8>::new(), Message::<8>::new());
    let ended = port::send_receive(next, &request, 8, &mut answer, 0).map(drop);
    println!("circle: call {ended:?}");
    let mut message = Message::<64>::new();
    while let Ok(received) = port::receive(mine, &mut message, clock.now() + PATIENCE) {
        if let Some(caller) = received.reply {
            let _lost = port::reply(caller, &message, 8, None);
        }
    }
    println!("circle: done");
}

/// Restarts the victim once in a life.
fn reap(victim: Handle, clock: &Clock) {
    let mut refused = 0;
    for _ in 0..LIVES {
        clock.sleep(LIFE);
        refused += u32::from(call::partition_restart(victim).is_err());
    }
    println!("reaper: {LIVES} lives, {refused} refused");
}
