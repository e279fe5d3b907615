// SPDX-License-Identifier: Apache-2.0
//! A critical loop for Armv7-M: timer 1 releases it every 4 ms. Timer 0 counts for ever and tells the time.
//!
//! Releases have absolute deadlines, so lateness shows and does not add up. A release that is late by a
//! period or more stands for those that the timer has let go by. These are missed. Every 50 releases the main
//! loop prints `control: reported 3, releases 150, missed 0, jitter max 1234 ns, response max 1567 ns`. The
//! jitter is the counter at the handler's first instructions minus the release, the response the counter at
//! its end minus the release. Both are the longest since the start.
#![no_std]
#![no_main]
#![forbid(unsafe_code)]

use bulkhead_guest_mcu::interrupts::Line;
use bulkhead_guest_mcu::timer::Timer;
use bulkhead_guest_mcu::{handler, interrupts, println};
use core::sync::atomic::{AtomicU32, Ordering::Relaxed};
use cortex_m::asm;
use cortex_m_rt::entry;

/// Ticks of the board's clock in a period.
const PERIOD: u32 = 4_000 * 25;
/// Nanoseconds of a tick.
const TICK: u32 = 40;
/// Releases of a report.
const REPORT: u32 = 50;

const CLOCK: Timer = Timer::ALL[0];
const ALARM: Timer = Timer::ALL[1];

/// When the next release is, and what has been. The handler alone writes them once alarms come.
static DUE: AtomicU32 = AtomicU32::new(0);
static RELEASES: AtomicU32 = AtomicU32::new(0);
static MISSED: AtomicU32 = AtomicU32::new(0);
static JITTER: AtomicU32 = AtomicU32::new(0);
static RESPONSE: AtomicU32 = AtomicU32::new(0);

handler!(TIMER1, release);

/// Returns the ticks since the start.
fn now() -> u32 {
    u32::MAX - CLOCK.left()
}

fn keep_longest(longest: &AtomicU32, ticks: u32) {
    longest.store(longest.load(Relaxed).max(ticks), Relaxed);
}

fn release() {
    let due = DUE.load(Relaxed);
    let late = now().wrapping_sub(due);
    ALARM.acknowledge();
    let missed = late / PERIOD;
    keep_longest(&JITTER, late);
    MISSED.store(MISSED.load(Relaxed) + missed, Relaxed);
    RELEASES.store(RELEASES.load(Relaxed) + 1, Relaxed);
    DUE.store(due.wrapping_add((missed + 1) * PERIOD), Relaxed);
    keep_longest(&RESPONSE, now().wrapping_sub(due));
}

#[entry]
fn main() -> ! {
    println!("control: start, period {} us", PERIOD / 25);
    // All the ticks that it can count.
    CLOCK.start(0);
    interrupts::enable(Line::TIMER1);
    // Before the alarm's own clock begins: what is between the two makes a release look late, never early.
    DUE.store(now().wrapping_add(PERIOD), Relaxed);
    ALARM.start(PERIOD);
    let mut printed = 0;
    loop {
        asm::wfi();
        let releases = RELEASES.load(Relaxed);
        if releases / REPORT > printed {
            printed = releases / REPORT;
            let [jitter, response] =
                [&JITTER, &RESPONSE].map(|ticks| ticks.load(Relaxed).saturating_mul(TICK));
            println!(
                "control: reported {printed}, releases {releases}, missed {}, jitter max {jitter} ns, response max {response} ns",
                MISSED.load(Relaxed)
            );
        }
    }
}
