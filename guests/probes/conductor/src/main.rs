// SPDX-License-Identifier: Apache-2.0
//! A task that leads other partitions through their lives. Its work depends on the partitions that it
//! controls:
//!
//! - `phoenix`, the guest of that name: the task restarts it while it is busy, and stops and starts it while
//!   it sleeps, warm and cold in turns. After a thousand lives the task stops it for good.
//! - `actor`, any VM that ends by itself: each time it has ended, the task starts it with the next
//!   alternative. The last two are an alternative that does not exist, and its own payloads again.
//! - `victim-N`, anything that takes long to start: the task restarts it (cold) N times in the middle of its
//!   start, each time after another while. Then the task leaves it alone.
//!
//! The task needs a timer, and an event gate that hears of that partition's changes.
#![no_std]
#![no_main]
#![forbid(unsafe_code)]

use bulkhead_guest::abi::status::{StartOptions, StartWord, StatusWord};
use bulkhead_guest::abi::{Error, ObjectKind, PartitionState, StartMode};
use bulkhead_guest::hypercall::{self, Handle};
use bulkhead_guest::println;
use bulkhead_guest::startup_page::StartupPage;

bulkhead_guest::task_main!(main);

/// Lives after which it ends.
const LIVES: u32 = 1000;
/// Ways in which a life of `phoenix` ends; the last two are walked by us.
const WAYS: u32 = 8;
const BUSY: u32 = 6;
const ASLEEP: u32 = 7;
/// The time `phoenix` is left alone in a life that this task ends, in nanoseconds.
const PATIENCE: u64 = 200_000;
/// The shortest time that a victim is left alone, in nanoseconds. Up to so many milliseconds are added. The
/// stride between one round and the next has no divisor in common with these numbers.
const SHORTEST: u64 = 500_000;
const SPREAD: u32 = 400;
const STRIDE: u32 = 67;
/// The longest time in which nothing may happen.
const LIMIT: u64 = 1_000_000_000;

struct Tools {
    gate: Handle,
    timer: Handle,
    other: Handle,
}

impl Tools {
    fn status(&self) -> Result<(StatusWord, StartWord), Error> {
        Ok((
            hypercall::partition_status(self.other)?,
            hypercall::partition_start_word(self.other)?,
        ))
    }

    fn pause(&self, nanoseconds: u64) -> Result<(), Error> {
        hypercall::timer_sleep(self.timer, hypercall::timer_now(self.timer)? + nanoseconds)
    }

    /// Waits until it is in `state`.
    fn reach(&self, state: PartitionState) -> Result<(), Error> {
        while hypercall::partition_status(self.other)?.state != state {
            hypercall::event_wait(self.gate, hypercall::timer_now(self.timer)? + LIMIT)?;
        }
        Ok(())
    }

    /// Ends life `life`, which waits for us.
    fn end(&self, life: u32) -> Result<(), Error> {
        let turn = if (life / WAYS).is_multiple_of(2) {
            StartMode::Warm
        } else {
            StartMode::Cold
        };
        let options = StartOptions {
            mode: turn,
            alternative: None,
            is_health: false,
        };
        if life % WAYS == BUSY {
            return hypercall::partition_restart_as(self.other, options);
        }
        hypercall::partition_stop(self.other)?;
        self.reach(PartitionState::Stopped)?;
        hypercall::partition_start_as(self.other, options)
    }

    /// Checks that the stopped partition was restarted as often as its lives say. Each life began with a
    /// restart, but for the first one and those after a stop of this task. One restart more is possible: one
    /// that the stop overtook.
    fn count(&self) -> Result<(), Error> {
        let (status, start) = self.status()?;
        let lives = start.starts;
        let expected = lives - 1 - lives / WAYS;
        let restarts = u32::from(status.restarts);
        if restarts != expected && restarts != expected + 1 {
            println!("FAIL: {lives} lives, {restarts} restarts");
        }
        println!("more than {LIVES} lives, as many restarts as there must be");
        Ok(())
    }

    fn conduct(&self) -> Result<(), Error> {
        let mut ended = 0;
        loop {
            let (status, start) = self.status()?;
            let life = start.starts;
            let ours = matches!(life % WAYS, BUSY | ASLEEP);
            if life > LIVES {
                hypercall::partition_stop(self.other)?;
                self.reach(PartitionState::Stopped)?;
                return self.count();
            }
            if status.state == PartitionState::Running && ours && ended != life {
                self.pause(PATIENCE)?;
                self.end(life)?;
                ended = life;
            }
            hypercall::event_wait(self.gate, hypercall::timer_now(self.timer)? + LIMIT)?;
        }
    }
}

impl Tools {
    /// Starts the actor with one alternative after the other.
    fn direct(&self) -> Result<(), Error> {
        self.reach(PartitionState::Stopped)?;
        for number in 1..=u8::MAX {
            let started = self.perform(number);
            if started == Err(Error::InvalidArgument) {
                println!("there is no alternative {number}");
                break;
            }
            started?;
        }
        self.perform(0)
    }

    /// Runs the actor once with the payloads of this number, from its start to its end.
    fn perform(&self, number: u8) -> Result<(), Error> {
        let options = StartOptions {
            mode: StartMode::Warm,
            alternative: Some(number),
            is_health: false,
        };
        hypercall::partition_start_as(self.other, options)?;
        let start = hypercall::partition_start_word(self.other)?;
        if start.alternative != number || start.mode != StartMode::Cold {
            println!("FAIL alternative {number}: {start:?}");
        }
        println!("alternative {number}");
        self.reach(PartitionState::Stopped)
    }
}

impl Tools {
    /// Restarts the victim `times` times while it starts.
    fn torment(&self, times: u32) -> Result<(), Error> {
        let cold = StartOptions {
            mode: StartMode::Cold,
            alternative: None,
            is_health: false,
        };
        for round in 0..times {
            self.pause(SHORTEST + u64::from(round * STRIDE % SPREAD) * 1_000_000)?;
            hypercall::partition_restart_as(self.other, cold)?;
        }
        println!("restarted {} times", self.status()?.0.restarts);
        Ok(())
    }
}

fn main(page: StartupPage<'static>) {
    let handle = |name| page.find(name).map(|capability| Handle(capability.index));
    let gate = page
        .first(ObjectKind::EventGate)
        .map(|capability| Handle(capability.index));
    let timer = page
        .first(ObjectKind::Timer)
        .map(|capability| Handle(capability.index));
    let (phoenix, actor) = (handle("phoenix"), handle("actor"));
    let victim = page.capabilities().find_map(|capability| {
        let times = capability.name.strip_prefix("victim-")?.parse().ok()?;
        Some((Handle(capability.index), times))
    });
    let other = phoenix.or(actor).or(victim.map(|(handle, _)| handle));
    let (Some(gate), Some(timer), Some(other)) = (gate, timer, other) else {
        println!("FAIL: a capability is missing");
        return;
    };
    let tools = Tools { gate, timer, other };
    let result = match victim {
        _ if phoenix.is_some() => tools.conduct(),
        Some((_, times)) => tools.torment(times),
        None => tools.direct(),
    };
    if let Err(error) = result {
        println!("FAIL: {error:?} at {:?}", tools.status());
    }
}
