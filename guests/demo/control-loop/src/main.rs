// SPDX-License-Identifier: Apache-2.0
//! A bare-metal real-time program: its own virtual timer periodically releases a control computation.
//!
//! Releases have absolute deadlines. The comparator moves on by one period in any case, so
//! lateness shows and does not add up. The jitter of a release is the counter at the handler's first
//! instruction minus the deadline that was programmed. A release is missed if it is late by a period or more.
//! It is then skipped, and the phase stays.
//!
//! The program prints a line per second: `control: second 3, releases 3000, missed 0, jitter max 1234 ns,
//! mean 456 ns, response max 1567 ns` with releases and misses since the start, and the jitter and the
//! response within that second. The response is the counter at the end of the handler, after the end of the
//! interrupt, minus the deadline that was programmed.
//!
//! Bootargs:
//!
//! - `period=MICROSECONDS` (1000): the period.
//! - `seconds=N`: the program switches itself off after N seconds (0: never).
//! - `report=MILLISECONDS` (1000): the length of its seconds, for runs that have to be short.
//! - `work=N` (1): the control steps of a release, for a job that takes long.
//! - `align=MICROSECONDS`: the releases are that long after multiples of the period since boot, where the
//!   windows of the partition are. For that its first capability must be for the timer.
//! - `first=MICROSECONDS` (the period): the time until the first release, if that is longer than a period.
//! - `calls=N` (0): the calls of a release to a server, which answers the message of 64 bytes. The caller
//!   lends its place. For that its first capability must be for the port.
//! - `lock=1`: the control steps of a release are done by the owner of a lock. For that its second capability
//!   must be for the lock.
//!
//! No state survives a restart: the program starts as if it were the first time.
#![no_std]
#![no_main]
#![forbid(unsafe_code)]

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

use bulkhead_guest::abi::Error;
use bulkhead_guest::hypercall::{self, Handle};
use bulkhead_guest::lock::{self, Guard};
use bulkhead_guest::port::{self, Message};
use bulkhead_guest::vm::timer::{self, Timer};
use bulkhead_guest::vm::{Machine, cpu, exception, gic};
use bulkhead_guest::{arguments, println};

bulkhead_guest::vm_main!(main);

/// Written by the handler alone; the main loop reads while interrupts are masked.
struct State {
    period: AtomicU64,
    releases_per_second: AtomicU64,
    deadline: AtomicU64,
    releases: AtomicU64,
    missed: AtomicU64,
    jitter_max: AtomicU64,
    jitter_sum: AtomicU64,
    jitter_count: AtomicU64,
    response_max: AtomicU64,
    /// Control steps of a release.
    work: AtomicU64,
    /// Calls of a release.
    calls: AtomicU64,
    /// 1 if the steps are a lock's owner's.
    lock: AtomicU64,
    plant: Plant,
    finished: Second,
}

/// Summary of the last complete second, left by the handler for the main loop.
struct Second {
    number: AtomicU64,
    releases: AtomicU64,
    missed: AtomicU64,
    jitter_max: AtomicU64,
    jitter_mean: AtomicU64,
    response_max: AtomicU64,
}

/// A first-order plant under proportional-integral control, in 16.16 fixed point.
struct Plant {
    value: AtomicU32,
    integral: AtomicU32,
}

static STATE: State = State {
    period: AtomicU64::new(0),
    releases_per_second: AtomicU64::new(0),
    deadline: AtomicU64::new(0),
    releases: AtomicU64::new(0),
    missed: AtomicU64::new(0),
    jitter_max: AtomicU64::new(0),
    jitter_sum: AtomicU64::new(0),
    jitter_count: AtomicU64::new(0),
    response_max: AtomicU64::new(0),
    work: AtomicU64::new(1),
    calls: AtomicU64::new(0),
    lock: AtomicU64::new(0),
    plant: Plant {
        value: AtomicU32::new(0),
        integral: AtomicU32::new(0),
    },
    finished: Second {
        number: AtomicU64::new(0),
        releases: AtomicU64::new(0),
        missed: AtomicU64::new(0),
        jitter_max: AtomicU64::new(0),
        jitter_mean: AtomicU64::new(0),
        response_max: AtomicU64::new(0),
    },
};

impl Plant {
    /// Makes one control step towards the set point.
    fn step(&self) {
        const SET_POINT: u32 = 1000 << 16;
        let value = self.value.load(Relaxed);
        let error = SET_POINT.wrapping_sub(value).cast_signed();
        let integral = self
            .integral
            .load(Relaxed)
            .wrapping_add((error / 64).cast_unsigned());
        let drive = (error / 4).wrapping_add(integral.cast_signed() / 16);
        self.integral.store(integral, Relaxed);
        self.value
            .store(value.wrapping_add((drive / 8).cast_unsigned()), Relaxed);
    }
}

impl State {
    /// Handles the timer's interrupt at counter `now`. Returns the deadline that was programmed.
    fn release(&self, now: u64) -> u64 {
        let period = self.period.load(Relaxed);
        let deadline = self.deadline.load(Relaxed);
        let jitter = now.saturating_sub(deadline);
        let skipped = jitter / period;
        if skipped == 0 {
            self.releases.store(self.releases.load(Relaxed) + 1, Relaxed);
        }
        self.missed.store(self.missed.load(Relaxed) + skipped, Relaxed);
        self.jitter_max
            .store(self.jitter_max.load(Relaxed).max(jitter), Relaxed);
        self.jitter_sum
            .store(self.jitter_sum.load(Relaxed) + jitter, Relaxed);
        self.jitter_count
            .store(self.jitter_count.load(Relaxed) + 1, Relaxed);
        // A release that came a period or more too late stands for those that it skipped. The next one is in
        // the future.
        let next = deadline + period * skipped.max(1);
        self.deadline.store(next, Relaxed);
        Timer::Virtual.arm(next);
        if skipped == 0 {
            // The timer's line is low now. A VM for which an interrupt waits does not wait for others.
            self.work();
        }
        deadline
    }

    /// Does what a release is for.
    fn work(&self) {
        let owned = (self.lock.load(Relaxed) != 0).then(own);
        for _ in 0..self.work.load(Relaxed) {
            self.plant.step();
        }
        drop(owned);
        for _ in 0..self.calls.load(Relaxed) {
            call();
        }
    }

    /// Notes that the job of `deadline` is done.
    fn done(&self, deadline: u64) {
        let response = Timer::Virtual.now().saturating_sub(deadline);
        self.response_max
            .store(self.response_max.load(Relaxed).max(response), Relaxed);
        self.close_second();
    }

    /// Leaves a summary for the main loop at the end of each second's worth of releases.
    fn close_second(&self) {
        let (releases, missed) = (self.releases.load(Relaxed), self.missed.load(Relaxed));
        let second = (releases + missed) / self.releases_per_second.load(Relaxed);
        if second == self.finished.number.load(Relaxed) {
            return;
        }
        let count = self.jitter_count.load(Relaxed).max(1);
        self.finished.releases.store(releases, Relaxed);
        self.finished.missed.store(missed, Relaxed);
        self.finished
            .jitter_max
            .store(timer::nanoseconds(self.jitter_max.load(Relaxed)), Relaxed);
        self.finished
            .jitter_mean
            .store(timer::nanoseconds(self.jitter_sum.load(Relaxed)) / count, Relaxed);
        self.finished
            .response_max
            .store(timer::nanoseconds(self.response_max.load(Relaxed)), Relaxed);
        self.finished.number.store(second, Relaxed);
        for counter in [
            &self.jitter_max,
            &self.jitter_sum,
            &self.jitter_count,
            &self.response_max,
        ] {
            counter.store(0, Relaxed);
        }
    }
}

/// Asks the server, and waits for its answer.
fn call() {
    const SERVER: Handle = Handle(1);
    let (question, mut answer) = (Message::<64>::new(), Message::<64>::new());
    let mut result = port::send_receive_donate(SERVER, &question, 64, &mut answer, 0);
    while result == Err(Error::Interrupted) {
        result = port::resume(0);
    }
    if let Err(error) = result {
        println!("control: FAIL no answer: {error:?}");
    }
}

/// Takes the lock. The lock is released with the guard.
fn own() -> Option<Guard> {
    const LOCK: Handle = Handle(2);
    loop {
        match lock::take(LOCK, 0) {
            Ok(guard) => return Some(guard),
            Err(Error::Interrupted) => {}
            Err(error) => {
                println!("control: FAIL no lock: {error:?}");
                return None;
            }
        }
    }
}

fn interrupt() {
    let now = Timer::Virtual.now();
    let line = gic::acknowledge();
    if line == Timer::Virtual.line() {
        let deadline = STATE.release(now);
        gic::end(line);
        STATE.done(deadline);
    } else if line < gic::FIRST_SPECIAL {
        gic::end(line);
    }
}

/// Returns the counter a whole number of periods and `offset` (microseconds) after boot, at least a period
/// from now.
fn aligned(period: u64, offset: u64) -> u64 {
    const CLOCK: Handle = Handle(1);
    let now = Timer::Virtual.now();
    let Ok(since_boot) = hypercall::timer_now(CLOCK) else {
        println!("control: no capability for the timer, not aligned");
        return now + timer::ticks(period);
    };
    let period = period * 1000;
    let first = (since_boot / period + 2) * period + offset * 1000;
    now + (first - since_boot) * timer::frequency() / 1_000_000_000
}

fn main(machine: Machine) {
    let period = arguments::number(machine.bootargs(), "period", 1000).clamp(1, 1_000_000);
    let seconds = arguments::number(machine.bootargs(), "seconds", 0);
    STATE
        .work
        .store(arguments::number(machine.bootargs(), "work", 1), Relaxed);
    let number = |name| arguments::number(machine.bootargs(), name, 0);
    STATE.calls.store(number("calls"), Relaxed);
    STATE.lock.store(number("lock"), Relaxed);
    let report = arguments::number(machine.bootargs(), "report", 1000).clamp(1, 1000) * 1000;
    println!(
        "control: start, period {period} us, counter {} Hz",
        timer::frequency()
    );
    gic::init_distributor();
    gic::init_cpu();
    exception::set_interrupt_handler(interrupt);
    STATE.period.store(timer::ticks(period), Relaxed);
    STATE.releases_per_second.store((report / period).max(1), Relaxed);
    let first = match arguments::value(machine.bootargs(), "align") {
        Some(_) => aligned(period, arguments::number(machine.bootargs(), "align", 0)),
        None => Timer::Virtual.now() + timer::ticks(period.max(number("first"))),
    };
    STATE.deadline.store(first, Relaxed);
    gic::set_priority(Timer::Virtual.line(), 0x20);
    gic::enable(Timer::Virtual.line());
    Timer::Virtual.arm(first);

    let mut printed = 0;
    loop {
        let finished = &STATE.finished;
        cpu::sleep_until(|| finished.number.load(Relaxed) != printed);
        cpu::mask_interrupts();
        printed = finished.number.load(Relaxed);
        let (releases, missed) = (finished.releases.load(Relaxed), finished.missed.load(Relaxed));
        let (max, mean) = (
            finished.jitter_max.load(Relaxed),
            finished.jitter_mean.load(Relaxed),
        );
        let response = finished.response_max.load(Relaxed);
        cpu::unmask_interrupts();
        println!(
            "control: second {printed}, releases {releases}, missed {missed}, jitter max {max} ns, mean {mean} ns, response max {response} ns"
        );
        if printed == seconds {
            return;
        }
    }
}
