// SPDX-License-Identifier: Apache-2.0
//! A task that never gives back what it has borrowed.
//!
//! It takes a message from the port `loans`, with a capability for a channel, and holds the channel's memory.
//! The first byte of the message is its manner: 0 stores into all words for ever, 1 loads them for ever, 2
//! stores where it may only load, 3 holds and releases for ever, 4 stores after it has released. Before that
//! it tries what a hold must refuse, and copies the capability as often as it can. Each manner but
//! the one with number 3 ends with a fault of its own; the manifest lets it restart then. See the guest
//! `lender`.
#![no_std]
#![no_main]
#![forbid(unsafe_code)]

use bulkhead_guest::abi::{Error, Operation, Rights};
use bulkhead_guest::channel::Channel;
use bulkhead_guest::hypercall::{self as call, Handle};
use bulkhead_guest::port::{self, Message};
use bulkhead_guest::println;
use bulkhead_guest::startup_page::StartupPage;
use core::sync::atomic::Ordering;

bulkhead_guest::task_main!(main);

/// The word for the answer.
const ANSWER: usize = 1;
/// The first word to count in.
const COUNTS: usize = 2;

fn main(page: StartupPage<'static>) {
    let Some(loans) = page.find("loans").map(|found| Handle(found.index)) else {
        println!("FAIL capability loans: missing");
        return;
    };
    loop {
        let mut message = Message::<8>::new();
        let received = port::receive(loans, &mut message, 0);
        let Ok(Some(memory)) = received.map(|received| received.capability) else {
            continue;
        };
        copy(memory);
        match message.0[0] {
            0 => write(loans, memory),
            1 => read(memory),
            2 => write_wrongly(memory),
            3 => hold_and_release(memory),
            _ => write_late(memory),
        }
    }
}

/// Copies a capability, and holds nothing by the copies.
fn copy(memory: Handle) {
    let mut last = memory;
    for _ in 0..8 {
        match call::capability_derive(last, Rights::READ) {
            Ok(next) => last = next,
            Err(_) => return,
        }
    }
}

/// Says whether everything that must be refused is refused.
fn answer(loans: Handle, memory: Handle, channel: &Channel) -> u32 {
    let again = Channel::hold(memory).map(drop);
    // A message must not come later to a place that may be gone by then.
    let there = channel.words().as_ptr() as u64;
    let buffer = call::call(Operation::PortTryReceive, [loans.0.into(), there, 64, 0, 0, 0]);
    let wrong = call::call(Operation::ChannelHold, [loans.0.into(), 0, 0, 0, 0, 0]);
    u32::from(
        again == Err(Error::WrongState)
            && buffer == Err(Error::InvalidArgument)
            && wrong == Err(Error::WrongKind)
            && channel.may_write(),
    )
}

fn write(loans: Handle, memory: Handle) {
    let Ok(channel) = Channel::hold(memory) else {
        return;
    };
    let answer = answer(loans, memory, &channel);
    store(&channel, ANSWER, answer);
    for count in 1.. {
        for index in COUNTS..channel.words().len() {
            store(&channel, index, count);
        }
    }
}

fn read(memory: Handle) {
    let Ok(channel) = Channel::hold(memory) else {
        return;
    };
    let mut sum = 0_u32;
    while sum != u32::MAX {
        for word in channel.words() {
            sum = sum.wrapping_add(word.load(Ordering::Relaxed)) & 0xFFFF;
        }
    }
}

fn write_wrongly(memory: Handle) {
    let Ok(channel) = Channel::hold(memory) else {
        return;
    };
    store(&channel, ANSWER, 2);
    println!("FAIL it wrote where it may only read");
}

fn write_late(memory: Handle) {
    let Ok(channel) = Channel::hold(memory) else {
        return;
    };
    if channel.release().is_ok() {
        store(&channel, ANSWER, 2);
    }
    println!("FAIL it wrote what it had released");
}

fn hold_and_release(memory: Handle) {
    let mut count = 0_u32;
    while let Ok(channel) = Channel::hold(memory) {
        count += 1;
        store(&channel, ANSWER, 1);
        store(&channel, COUNTS, count);
        if channel.release().is_err() {
            return;
        }
    }
}

fn store(channel: &Channel, index: usize, value: u32) {
    if let Some(word) = channel.words().get(index) {
        word.store(value, Ordering::Relaxed);
    }
}
