// SPDX-License-Identifier: Apache-2.0
//! A bare-metal VM that lives in windows and learns of them by interrupt. The interrupt of its event gate is
//! the only one that is enabled. Between its windows, and after its work, the VM waits.
//!
//! Each interrupt takes the events there are. A window start is counted with its place in the frame. Frames
//! count from boot, so that is the time since boot modulo the frame.
//!
//! Bootargs: `frame=MICROSECONDS` (10000), `windows=N` (20) after which it prints `windows: 20 windows, 20
//! periods, 0 interrupts without, at 1002000 to 1002400 ns of the frame` and switches itself off. With
//! `other=MICROSECONDS`, the frame of another pCPU, it first asks for schedule 1 of its own and of that pCPU
//! at once, and goes on until both are in force: `windows: schedule 1 of the own pCPU in force 7000000 ns
//! later at a frame boundary` and the same for `the other pCPU`.
//!
//! Its capabilities, after the one for its gate: the timer, the schedules of its own pCPU, the schedules of
//! the other.
#![no_std]
#![no_main]
#![forbid(unsafe_code)]

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use bulkhead_guest::abi::Error;
use bulkhead_guest::abi::status::{PERIOD_START_EVENT, WINDOW_START_EVENT};
use bulkhead_guest::hypercall::{self, Handle};
use bulkhead_guest::vm::gate::EventGate;
use bulkhead_guest::vm::{Machine, cpu, exception, gic};
use bulkhead_guest::{arguments, println};

bulkhead_guest::vm_main!(main);

const CLOCK: Handle = Handle(2);
const OWN_SCHEDULES: Handle = Handle(3);
const OTHER_SCHEDULES: Handle = Handle(4);
/// The schedule it asks for.
const WANTED: u64 = 1;

/// State of the handler, written before its interrupt is enabled.
struct Setup {
    line: AtomicU64,
    gate: AtomicU64,
    frame: AtomicU64,
}

/// Observations of the handler.
struct Seen {
    windows: AtomicU64,
    periods: AtomicU64,
    without: AtomicU64,
    earliest: AtomicU64,
    latest: AtomicU64,
}

static SETUP: Setup = Setup {
    line: AtomicU64::new(0),
    gate: AtomicU64::new(0),
    frame: AtomicU64::new(1),
};

static SEEN: Seen = Seen {
    windows: AtomicU64::new(0),
    periods: AtomicU64::new(0),
    without: AtomicU64::new(0),
    earliest: AtomicU64::new(u64::MAX),
    latest: AtomicU64::new(0),
};

impl Seen {
    fn interrupt(&self, events: u64, now: u64) {
        let count = |counter: &AtomicU64| counter.fetch_add(1, Relaxed);
        if events & (WINDOW_START_EVENT | PERIOD_START_EVENT) == 0 {
            count(&self.without);
        }
        if events & PERIOD_START_EVENT != 0 {
            count(&self.periods);
        }
        // The first may have been pending since before the interrupt was enabled.
        if events & WINDOW_START_EVENT != 0 && count(&self.windows) > 0 {
            let place = now % SETUP.frame.load(Relaxed);
            self.earliest.fetch_min(place, Relaxed);
            self.latest.fetch_max(place, Relaxed);
        }
    }

    /// Sleeps until so many windows have begun.
    fn wait_for(&self, windows: u64) {
        cpu::sleep_until(|| self.windows.load(Relaxed) >= windows);
    }
}

fn interrupt() {
    let now = hypercall::timer_now(CLOCK).unwrap_or(0);
    let line = gic::acknowledge();
    if u64::from(line) == SETUP.line.load(Relaxed) {
        let gate = Handle(SETUP.gate.load(Relaxed) as u32);
        SEEN.interrupt(hypercall::event_poll(gate).unwrap_or(0), now);
    }
    if line < gic::FIRST_SPECIAL {
        gic::end(line);
    }
}

/// Asks for schedule 1 on both pCPUs at once and waits for both.
fn change(frames: [u64; 2]) -> Result<(), Error> {
    let asked = hypercall::timer_now(CLOCK)?;
    let handles = [OWN_SCHEDULES, OTHER_SCHEDULES];
    for handle in handles {
        hypercall::schedule_change(handle, WANTED)?;
    }
    for ((handle, frame), whose) in handles.into_iter().zip(frames).zip(["own", "other"]) {
        let mut status = hypercall::schedule_status(handle)?;
        while status.current != WANTED {
            SEEN.wait_for(SEEN.windows.load(Relaxed) + 1);
            status = hypercall::schedule_status(handle)?;
        }
        let place = if status.since.is_multiple_of(frame) {
            "at"
        } else {
            "NOT at"
        };
        let later = status.since.saturating_sub(asked);
        println!(
            "windows: schedule 1 of the {whose} pCPU in force {later} ns later {place} a frame boundary"
        );
    }
    Ok(())
}

fn main(machine: Machine) {
    let Some(gate) = EventGate::of(&machine) else {
        println!("windows: no event gate");
        return;
    };
    let wanted = arguments::number(machine.bootargs(), "windows", 20);
    let frame = arguments::number(machine.bootargs(), "frame", 10_000) * 1000;
    let other = arguments::number(machine.bootargs(), "other", 0) * 1000;
    SETUP.line.store(gate.line().into(), Relaxed);
    SETUP.gate.store(gate.handle().0.into(), Relaxed);
    SETUP.frame.store(frame, Relaxed);
    gic::init_distributor();
    gic::init_cpu();
    exception::set_interrupt_handler(interrupt);
    gic::enable(gate.line());
    cpu::unmask_interrupts();
    SEEN.wait_for(wanted);
    if other != 0
        && let Err(error) = change([frame, other])
    {
        println!("windows: refused, {error:?}");
    }
    cpu::mask_interrupts();
    println!(
        "windows: {} windows, {} periods, {} interrupts without, at {} to {} ns of the frame",
        SEEN.windows.load(Relaxed),
        SEEN.periods.load(Relaxed),
        SEEN.without.load(Relaxed),
        SEEN.earliest.load(Relaxed),
        SEEN.latest.load(Relaxed),
    );
}
