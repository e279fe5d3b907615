// SPDX-License-Identifier: Apache-2.0
//! A task that lends memory to another partition and takes it back, again and again.
//!
//! It sends a capability for the channel `memory` with a message to the port `loans`, and some time later it
//! revokes the capability. From then on no other partition changes the memory, not even the borrower
//! (guest `borrower`). It also needs `clock` (timer) and a console.
#![no_std]
#![no_main]
#![forbid(unsafe_code)]

use bulkhead_guest::abi::Rights;
use bulkhead_guest::channel::Channel;
use bulkhead_guest::hypercall::{self as call, Handle};
use bulkhead_guest::port::{self, Message};
use bulkhead_guest::println;
use bulkhead_guest::report::Report;
use bulkhead_guest::startup_page::StartupPage;
use core::sync::atomic::Ordering;

bulkhead_guest::task_main!(main);

const MICROSECOND: u64 = 1_000;
/// Loans: a few of each manner of the borrower.
const LOANS: u8 = 25;
/// Manners of the borrower: it stores, loads, stores where it may only load, holds and releases, and stores
/// after it has released.
const MANNERS: u8 = 5;
/// The word in which the borrower says that it did what it had to.
const ANSWER: usize = 1;

fn main(page: StartupPage<'static>) {
    let find = |name: &str| page.find(name).map(|found| Handle(found.index));
    let (Some(memory), Some(loans), Some(clock)) = (find("memory"), find("loans"), find("clock")) else {
        println!("FAIL capabilities memory, loans and clock: missing");
        return;
    };
    let mut report = Report::new();
    let Ok(channel) = Channel::open(memory) else {
        println!("FAIL the channel has no memory");
        return;
    };
    let (mut written, mut silent, mut answered, mut revoked) = (0, 0, 0, 0);
    for loan in 0..LOANS {
        let manner = loan % MANNERS;
        for word in channel.words() {
            word.store(0, Ordering::Relaxed);
        }
        let mut message = Message::<8>::new();
        message.0[0] = manner;
        let rights = match manner {
            0 | 3 | 4 => Rights::READ.union(Rights::WRITE),
            _ => Rights::READ,
        };
        if port::send(loans, &message, 1, Some((memory, rights))).is_err() {
            continue;
        }
        // Not always the same time, so that the borrower is at different places.
        pause(clock, 1_000 + u64::from(loan) * 37);
        revoked += u8::from(call::capability_revoke(memory).is_ok());
        let (before, answer) = (sum(&channel), word(&channel, ANSWER));
        pause(clock, 1_000);
        silent += u8::from(sum(&channel) == before);
        let counted = before > u64::from(answer);
        written += u8::from(counted);
        answered += u8::from(answer == 1);
    }
    report.equal("every loan is taken back", revoked, LOANS);
    report.equal("nothing is written after the end of a loan", silent, LOANS);
    let stores = LOANS / MANNERS;
    report.equal(
        "the borrower writes while it may, and only then",
        written,
        2 * stores,
    );
    report.equal("where it may, it answers", answered, 2 * stores);
    report.finish();
}

fn word(channel: &Channel, index: usize) -> u32 {
    channel
        .words()
        .get(index)
        .map_or(0, |word| word.load(Ordering::Relaxed))
}

/// Returns the sum of all that the borrower may have written.
fn sum(channel: &Channel) -> u64 {
    let counts = channel.words().iter().skip(ANSWER);
    counts.map(|word| u64::from(word.load(Ordering::Relaxed))).sum()
}

fn pause(clock: Handle, microseconds: u64) {
    let until = call::timer_now(clock).unwrap_or(0) + microseconds * MICROSECOND;
    // A refusal shows in what follows.
    let _slept = call::timer_sleep(clock, until);
}
