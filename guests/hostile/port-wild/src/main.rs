// SPDX-License-Identifier: Apache-2.0
//! A task that does with ports and locks all that it can, right or wrong, as fast as it can. Its capabilities
//! say which of three parts it plays.
//!
//! - `victim` (a partition, control): the reaper. It restarts the victim again and again, at moments that do
//!   not depend on what the victim does.
//! - `requests` with the right to receive, and no `victim`: the silent server. It takes calls, and answers
//!   few of them, late or never. It keeps the capabilities to reply by until its space is full.
//! - Else the client: forged and revoked indices, buffers half outside its memory, floods of messages and of
//!   capabilities, calls with and without donation, locks that it keeps. All its waits have deadlines.
//!
//! All parts need the capability `clock` (timer).
#![no_std]
#![no_main]
#![forbid(unsafe_code)]

use bulkhead_guest::abi::hypercall::{CAPABILITY_SLOTS, function_id};
use bulkhead_guest::abi::{Operation, Rights};
use bulkhead_guest::hypercall::{self as call, Handle};
use bulkhead_guest::port::{self, Message};
use bulkhead_guest::println;
use bulkhead_guest::random::Random;
use bulkhead_guest::startup_page::StartupPage;

bulkhead_guest::task_main!(main);

const MICROSECOND: u64 = 1_000;
/// Operations between two lines of the client.
const ROUND: u32 = 2000;

fn main(page: StartupPage<'static>) {
    let find = |name: &str| page.find(name).map(|found| Handle(found.index));
    let Some(clock) = find("clock") else {
        println!("port-wild: no clock");
        return;
    };
    if let Some(victim) = find("victim") {
        reap(victim, clock)
    }
    let requests = page.find("requests");
    match requests.filter(|found| found.rights.contains(Rights::READ)) {
        Some(found) => keep_silent(Handle(found.index), clock),
        None => flood(clock),
    }
}

fn now(clock: Handle) -> u64 {
    call::timer_now(clock).unwrap_or(0)
}

fn reap(victim: Handle, clock: Handle) -> ! {
    let mut random = Random::new(3);
    println!("reaper: here");
    loop {
        let pause = (3_000 + random.below(9_000)) * MICROSECOND;
        // A refusal is no reason to stop.
        let _slept = call::timer_sleep(clock, now(clock) + pause);
        let _restarted = call::partition_restart(victim);
    }
}

fn keep_silent(requests: Handle, clock: Handle) -> ! {
    let mut random = Random::new(2);
    let mut buffer = Message::<320>::new();
    let (mut taken, mut kept) = (0_u32, None);
    println!("silent: here");
    loop {
        let until = now(clock) + random.below(500) * MICROSECOND;
        if let Ok(received) = port::receive(requests, &mut buffer, until) {
            taken += 1;
            kept = received.reply.filter(|_| random.below(4) == 0).or(kept);
        }
        if random.below(8) == 0
            && let Some(reply) = kept.take()
        {
            // By now its call may have ended, and its index may be another call's.
            let _late = port::reply(reply, &buffer, 320, None);
        }
        if random.below(64) == 0 {
            for index in 8..CAPABILITY_SLOTS as u32 {
                let _deleted = call::capability_delete(Handle(index));
            }
        }
        if taken % 500 == 1 {
            println!("silent: {taken} messages");
            taken += 1;
        }
    }
}

fn flood(clock: Handle) -> ! {
    let message = Message::<320>::new();
    let here = message.0.as_ptr().addr() as u64;
    // A life is short and must not be as the one before.
    let mut random = Random::new(now(clock));
    let mut count = 0_u32;
    println!("client: here");
    loop {
        let (operation, arguments) = wild(&mut random, here, now(clock));
        let _answer = call::raw(u64::from(function_id(operation)), arguments);
        count += 1;
        if count.is_multiple_of(ROUND) {
            println!("client: {count} operations in one life");
        }
    }
}

/// Returns an address for a buffer: mostly one of the caller's, else one in a hole, in code, half outside.
fn place(random: &mut Random, here: u64) -> u64 {
    let page = here & !0xFFF;
    match random.below(12) {
        0 => random.draw(),
        1 => 0,
        2 => u64::MAX - 7,
        // The end of the memory of a task with 1 MiB, and what is after it.
        3 => (here | 0xF_FFFF) + 1 - 8 * random.below(64),
        4 => (here & !0xF_FFFF) - 8 * random.below(64),
        5 => page + 0x1000 - 8 * random.below(40),
        6 => here + 1,
        _ => here,
    }
}

/// Returns an operation on ports, locks and capabilities, with arguments that are mostly possible.
fn wild(random: &mut Random, here: u64, now: u64) -> (Operation, [u64; 6]) {
    // Most of the indices that it was given, some of its own making, and forged ones.
    let index = match random.below(8) {
        0 => random.below(2 * CAPABILITY_SLOTS as u64),
        1 => random.draw(),
        _ => 1 + random.below(10),
    };
    let until = now + random.below(300) * MICROSECOND;
    let length = match random.below(6) {
        0 => random.draw(),
        1 => 320,
        _ => random.below(330),
    };
    let (from, to) = (place(random, here), place(random, here));
    let gift = (1 + random.below(12)) | random.below(17) << 16;
    match random.below(20) {
        0..4 => (
            Operation::PortSend,
            [
                index,
                from,
                length,
                if random.below(2) == 0 { gift } else { 0 },
                0,
                0,
            ],
        ),
        4 => (Operation::PortReceive, [index, to, 320, until, 0, 0]),
        5 => (Operation::PortTryReceive, [index, to, 320, 0, 0, 0]),
        6 => (Operation::PortSendReceive, [index, from, length, to, 320, until]),
        7..11 => (
            Operation::PortSendReceiveDonate,
            [index, from, length, to, 320, until],
        ),
        11 => (
            Operation::PortReceiveDonate,
            [index, to, 320, length, random.below(20), until],
        ),
        12 => (Operation::PortReply, [index, from, length, gift, 0, 0]),
        13 => (Operation::PortResume, [0, until, 0, 0, 0, 0]),
        14 => (Operation::CapabilityDerive, [index, random.below(16), 0, 0, 0, 0]),
        15 => (Operation::CapabilityRevoke, [index, 0, 0, 0, 0, 0]),
        // The ones that it started with stay.
        16 => (Operation::CapabilityDelete, [8 + random.below(56), 0, 0, 0, 0, 0]),
        17 => (Operation::LockTake, [index, until, 0, 0, 0, 0]),
        18 => (Operation::LockTryTake, [index, 0, 0, 0, 0, 0]),
        _ => (Operation::LockRelease, [index, 0, 0, 0, 0, 0]),
    }
}
