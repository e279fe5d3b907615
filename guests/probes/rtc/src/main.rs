// SPDX-License-Identifier: Apache-2.0
//! Uses the board's real-time clock (a PL031, Arm DDI 0224) as a device of its own: registers and interrupt.
//!
//! The alarm is set to now, so that the interrupt comes at once, for any length of the clock's second. Its
//! level stays up until the guest clears it at the device. The second alarm shows that the line was released.
//!
//! Bootargs:
//!
//! - `alarms=N` (0): the program instead waits for N alarms, each set to a second ahead, and says how late
//!   each handler began: `rtc: alarm 1 handled 1234 ns late`. Between alarms the program has nothing to do,
//!   not even a timer. The emulated device counts its seconds from the moment the alarm is set, so the figure
//!   includes the time of that access.
//! - `silent=1`, together with `alarms`: the program prints nothing of each alarm, only whether all came
//!   after their seconds. So its exits do not depend on what it prints.
//! - `busy=MS`, together with `alarms`: the program computes without a break. For the MS milliseconds after
//!   each handler it prints the longest time in which no interruption took a millisecond: `rtc: computed for
//!   1234 ns in a row after alarm 1`.
#![no_std]
#![no_main]
#![forbid(unsafe_code)]

use core::sync::atomic::{AtomicU64, Ordering};

use bulkhead_guest::report::Report;
use bulkhead_guest::vm::{Machine, bus, cpu, exception, gic, timer};
use bulkhead_guest::{arguments, println};

bulkhead_guest::vm_main!(main);

/// Its place on the board.
const BASE: u64 = 0x0901_0000;
const LINE: u32 = 34;

/// Registers: DDI 0224, table 3-1.
const DATA: u64 = BASE;
const MATCH: u64 = BASE + 0x04;
const MASK: u64 = BASE + 0x10;
const CLEAR: u64 = BASE + 0x1C;
const PART: u64 = BASE + 0xFE0;
/// The longest time that an interrupt may take, in microseconds.
const PATIENCE: u64 = 1_000_000;

static INTERRUPTS: AtomicU64 = AtomicU64::new(0);
/// The counter when the last handler began.
static BEGUN: AtomicU64 = AtomicU64::new(0);

fn interrupt() {
    let begun = timer::Timer::Virtual.now();
    let interrupt = gic::acknowledge();
    if interrupt == LINE {
        bus::write_u32(CLEAR, 1);
        BEGUN.store(begun, Ordering::Relaxed);
        INTERRUPTS.fetch_add(1, Ordering::Relaxed);
    }
    if interrupt < gic::FIRST_SPECIAL {
        gic::end(interrupt);
    }
}

/// Waits for alarms a second ahead, with nothing else to wake it.
fn wait_for_alarms(report: &mut Report, alarms: u64) {
    for alarm in 1..=alarms {
        let due = timer::Timer::Virtual.now() + timer::frequency();
        bus::write_u32(MATCH, bus::read_u32(DATA).wrapping_add(1));
        cpu::sleep_until(|| INTERRUPTS.load(Ordering::Relaxed) >= alarm);
        let begun = BEGUN.load(Ordering::Relaxed);
        report.check("an alarm comes after its second", begun >= due);
        let late = timer::nanoseconds(begun.saturating_sub(due));
        println!("rtc: alarm {alarm} handled {late} ns late");
    }
}

/// Does as [`wait_for_alarms`], and prints one line for all of them.
fn wait_silently(report: &mut Report, alarms: u64) {
    let mut in_time = 0;
    for alarm in 1..=alarms {
        let due = timer::Timer::Virtual.now() + timer::frequency();
        bus::write_u32(MATCH, bus::read_u32(DATA).wrapping_add(1));
        cpu::sleep_until(|| INTERRUPTS.load(Ordering::Relaxed) >= alarm);
        in_time += u64::from(BEGUN.load(Ordering::Relaxed) >= due);
    }
    report.equal("each alarm comes after its second", in_time, alarms);
}

/// Computes until `done`; the longest time without an interruption of a millisecond.
fn compute_until(mut done: impl FnMut(u64) -> bool) -> u64 {
    let mut start = timer::Timer::Virtual.now();
    let (mut last, mut longest) = (start, 0);
    loop {
        let now = timer::Timer::Virtual.now();
        if now - last >= timer::frequency() / 1000 {
            start = now;
        }
        longest = longest.max(now - start);
        last = now;
        if done(now) {
            return longest;
        }
    }
}

/// Computes while the alarms come, and for `span` ticks after each.
fn compute_between_alarms(report: &mut Report, alarms: u64, span: u64) {
    cpu::unmask_interrupts();
    for alarm in 1..=alarms {
        let due = timer::Timer::Virtual.now() + timer::frequency();
        bus::write_u32(MATCH, bus::read_u32(DATA).wrapping_add(1));
        compute_until(|_| INTERRUPTS.load(Ordering::Relaxed) >= alarm);
        let begun = BEGUN.load(Ordering::Relaxed);
        report.check("an alarm comes after its second", begun >= due);
        let longest = timer::nanoseconds(compute_until(|now| now >= begun + span));
        println!("rtc: computed for {longest} ns in a row after alarm {alarm}");
    }
    cpu::mask_interrupts();
}

fn main(machine: Machine) {
    let alarms = arguments::number(machine.bootargs(), "alarms", 0);
    let mut report = Report::new();
    report.equal("it is a PL031", u64::from(bus::read_u32(PART)), 0x31);
    report.check("it knows the time", bus::read_u32(DATA) != 0);
    gic::init_distributor();
    gic::init_cpu();
    exception::set_interrupt_handler(interrupt);
    gic::enable(LINE);
    bus::write_u32(MASK, 1);
    let busy = arguments::number(machine.bootargs(), "busy", 0);
    if busy > 0 {
        compute_between_alarms(&mut report, alarms, timer::frequency() / 1000 * busy);
        report.finish();
        return;
    }
    if alarms > 0 {
        if arguments::number(machine.bootargs(), "silent", 0) == 1 {
            wait_silently(&mut report, alarms);
        } else {
            wait_for_alarms(&mut report, alarms);
        }
        report.finish();
        return;
    }
    gic::enable(timer::Timer::Virtual.line());
    cpu::unmask_interrupts();
    for alarm in 1..=2 {
        bus::write_u32(MATCH, bus::read_u32(DATA));
        let seen = timer::nap_until(PATIENCE, || INTERRUPTS.load(Ordering::Relaxed) >= alarm);
        report.check("an alarm arrives", seen);
    }
    cpu::mask_interrupts();
    println!("rtc: {} interrupts", INTERRUPTS.load(Ordering::Relaxed));
    report.finish();
}
