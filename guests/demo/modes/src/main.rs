// SPDX-License-Identifier: Apache-2.0
//! A task that lives in windows and changes the schedule: one turn of work per period start.
//!
//! It waits at its gate for the starts of its windows and periods (`watch.windows`) and counts them. It also
//! measures where in the frame it hears of its period starts. Frames count from boot, so that is the time
//! since boot modulo the frame. Every [`PERIODS`] periods it asks for the next schedule and says when that
//! came into force. After one round through all schedules it stops itself.
//!
//! It prints, per schedule: `modes: schedule 0, periods 20, windows 40, jitter 1234 ns, first at 1001234 ns
//! of the frame` and `modes: change to schedule 1 asked for, in force 12345678 ns later at a frame boundary`.
#![no_std]
#![no_main]
#![forbid(unsafe_code)]

use bulkhead_guest::abi::status::{PERIOD_START_EVENT, WINDOW_START_EVENT};
use bulkhead_guest::abi::{Error, ObjectKind};
use bulkhead_guest::hypercall::{self, Handle};
use bulkhead_guest::println;
use bulkhead_guest::startup_page::StartupPage;

bulkhead_guest::task_main!(main);

/// Period starts between two changes.
const PERIODS: u64 = 20;
/// Length of the frame of every schedule it is used with, in nanoseconds.
const FRAME: u64 = 10_000_000;
/// The longest time a change can take: a frame, and some more.
const PATIENCE: u64 = 2 * FRAME;

/// The capabilities that it works with.
struct Tools {
    gate: Handle,
    clock: Handle,
    schedule: Handle,
}

/// Its observations of one schedule.
struct Seen {
    windows: u64,
    periods: u64,
    earliest: u64,
    latest: u64,
}

impl Tools {
    fn find(page: &StartupPage<'static>) -> Option<Self> {
        let handle = |kind| page.first(kind).map(|capability| Handle(capability.index));
        Some(Self {
            gate: handle(ObjectKind::EventGate)?,
            clock: handle(ObjectKind::Timer)?,
            schedule: handle(ObjectKind::Schedule)?,
        })
    }

    /// Watches windows for [`PERIODS`] periods.
    fn watch(&self) -> Result<Seen, Error> {
        let mut seen = Seen {
            windows: 0,
            periods: 0,
            earliest: u64::MAX,
            latest: 0,
        };
        while seen.periods < PERIODS {
            let events = hypercall::event_wait(self.gate, 0)?;
            if events & WINDOW_START_EVENT != 0 {
                seen.windows += 1;
            }
            if events & PERIOD_START_EVENT != 0 {
                let now = hypercall::timer_now(self.clock)?;
                seen.periods += 1;
                // The first may have been pending for long.
                if seen.periods > 1 {
                    seen.earliest = seen.earliest.min(now % FRAME);
                    seen.latest = seen.latest.max(now % FRAME);
                }
            }
        }
        Ok(seen)
    }

    /// Asks for a schedule and waits until it is in force; returns how long that took, and when it began.
    fn change(&self, number: u64) -> Result<(u64, u64), Error> {
        let asked = hypercall::timer_now(self.clock)?;
        hypercall::schedule_change(self.schedule, number)?;
        let pending = hypercall::schedule_status(self.schedule)?;
        if pending.next != number {
            return Err(Error::WrongState);
        }
        while hypercall::schedule_status(self.schedule)?.current != number {
            if hypercall::timer_now(self.clock)? - asked > PATIENCE {
                return Err(Error::TimedOut);
            }
            hypercall::event_wait(self.gate, 0)?;
        }
        let since = hypercall::schedule_status(self.schedule)?.since;
        Ok((since - asked, since))
    }

    fn live(&self) -> Result<(), Error> {
        for number in [1, 0] {
            let current = hypercall::schedule_status(self.schedule)?.current;
            let seen = self.watch()?;
            println!(
                "modes: schedule {current}, periods {}, windows {}, jitter {} ns, first at {} ns of the frame",
                seen.periods,
                seen.windows,
                seen.latest - seen.earliest,
                seen.earliest
            );
            let (took, since) = self.change(number)?;
            let place = if since.is_multiple_of(FRAME) {
                "at"
            } else {
                "NOT at"
            };
            println!(
                "modes: change to schedule {number} asked for, in force {took} ns later {place} a frame boundary"
            );
        }
        Ok(())
    }
}

fn main(page: StartupPage<'static>) {
    let Some(tools) = Tools::find(&page) else {
        println!("modes: needs capabilities for its gate, the timer and a schedule");
        return;
    };
    match tools.live() {
        Ok(()) => println!("modes: done"),
        Err(error) => println!("modes: refused, {error:?}"),
    }
}
