// SPDX-License-Identifier: Apache-2.0
//! A task that tests locks: what is refused, deadlines, the owner's place, an owner that ends.
//!
//! It needs the capabilities `first` and `second` (locks that the guest `locker` owns when 150 ms have passed
//! since boot), `own` (a lock that no other partition takes) and `clock` (timer).
#![no_std]
#![no_main]
#![forbid(unsafe_code)]

use bulkhead_guest::abi::Error;
use bulkhead_guest::hypercall::{self as call, Handle};
use bulkhead_guest::lock;
use bulkhead_guest::println;
use bulkhead_guest::report::Report;
use bulkhead_guest::startup_page::StartupPage;

bulkhead_guest::task_main!(main);

const MILLISECOND: u64 = 1_000_000;

fn main(page: StartupPage<'static>) {
    let find = |name: &str| page.find(name).map(|found| Handle(found.index));
    let (Some(own), Some(clock)) = (find("own"), find("clock")) else {
        println!("FAIL capabilities own and clock: missing");
        return;
    };
    let (Some(first), Some(second)) = (find("first"), find("second")) else {
        println!("FAIL capabilities first and second: missing");
        return;
    };
    let mut report = Report::new();
    alone(&mut report, own, clock);
    let slept = call::timer_sleep(clock, 150 * MILLISECOND);
    report.equal("it sleeps until the others are there", slept, Ok(()));
    beside_an_owner(&mut report, first, clock);
    after_an_owner(&mut report, second);
    report.finish();
}

fn now(clock: Handle) -> u64 {
    call::timer_now(clock).unwrap_or(0)
}

fn alone(report: &mut Report, own: Handle, clock: Handle) {
    report.equal(
        "a lock that is free is not released",
        lock::release(own),
        Err(Error::WrongState),
    );
    let taken = lock::take(own, 0);
    let whole = taken.as_ref().is_ok_and(|guard| !guard.is_broken());
    report.check("a lock that is free is taken", whole);
    let again = lock::take(own, 0).map(|_| ());
    report.equal("a lock is taken once", again, Err(Error::WrongState));
    let again = lock::try_take(own).map(|_| ());
    report.equal("also without a wait", again, Err(Error::WrongState));
    drop(taken);
    report.equal(
        "the end of the guard releases it",
        lock::release(own),
        Err(Error::WrongState),
    );
    report.check("then it is free", lock::try_take(own).is_ok());
    let wild = lock::take(clock, 0).map(|_| ());
    report.equal("a clock is no lock", wild, Err(Error::WrongKind));
}

fn beside_an_owner(report: &mut Report, first: Handle, clock: Handle) {
    let tried = lock::try_take(first).map(|_| ());
    report.equal("another one's lock is not taken", tried, Err(Error::TimedOut));
    report.equal("nor released", lock::release(first), Err(Error::WrongState));
    let began = now(clock);
    let waited = lock::take(first, began + MILLISECOND).map(|_| ());
    report.equal("a wait ends at its deadline", waited, Err(Error::TimedOut));
    let ended = now(clock);
    report.check(
        "and not before, nor much later",
        (1..3).contains(&((ended - began) / MILLISECOND)),
    );
    // The owner still has some 50 ms to work. The spinner would not let it for 450 ms.
    let waited = lock::take(first, 0).map(|guard| guard.is_broken());
    report.equal("the lock comes", waited, Ok(false));
    let after = (now(clock) - ended) / MILLISECOND;
    println!("the owner worked in my place for {after} ms");
    report.check(
        "the owner runs in the place of who waits",
        (10..200).contains(&after),
    );
}

fn after_an_owner(report: &mut Report, second: Handle) {
    // The owner is about to end, in this one's place.
    let left = lock::take(second, 0).map(|guard| guard.is_broken());
    report.equal("a lock whose owner ended comes, and is broken", left, Ok(true));
    let mended = lock::try_take(second).map(|guard| guard.is_broken());
    report.equal("whoever releases it has mended it", mended, Ok(false));
}
