// SPDX-License-Identifier: Apache-2.0
//! A task that leads other partitions through their lives. What it does depends on whom it has control over:
//!
//! - `phoenix`, the guest of that name: it restarts it while it is busy, stops and starts it while it sleeps, warm and
//!   cold in turns, and stops it for good after a thousand lives.
//! - `actor`, any VM that ends by itself: each time it has ended it is started with the next alternative, last
//!   with one that there is not and with its own payloads again.
//! - `victim-N`, anything that takes long to start: it is restarted (cold) N times in the middle of that, each time
//!   after another while, and then left alone.
//!
//! It needs an event gate that is told of that one's changes, and a timer.
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
/// How long `phoenix` is left alone in a life that we end, in nanoseconds.
const PATIENCE: u64 = 200_000;
/// A victim is left alone for this long in nanoseconds, and up to so many milliseconds more; the stride between one
/// round and the next has no divisor in common with these.
const SHORTEST: u64 = 500_000;
const SPREAD: u32 = 400;
const STRIDE: u32 = 67;
/// How long at most nothing happens.
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
        };
        if life % WAYS == BUSY {
            return hypercall::partition_restart_as(self.other, options);
        }
        hypercall::partition_stop(self.other)?;
        self.reach(PartitionState::Stopped)?;
        hypercall::partition_start_as(self.other, options)
    }

    /// Whether the stopped one was restarted as often as its lives say: each life began with a restart but the first
    /// one and those behind a stop of ours. One more is a restart that our stop overtook.
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

    /// One run of the actor with the payloads of this number, from its start to its end.
    fn perform(&self, number: u8) -> Result<(), Error> {
        let options = StartOptions {
            mode: StartMode::Warm,
            alternative: Some(number),
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
