// SPDX-License-Identifier: Apache-2.0
//! A conformance suite for the services of ARINC 653, in the style of Part 3A: each service is called so that
//! each of its return codes comes, and the guest says for each call which code came.
//!
//! It prints `apex-suite: SERVICE CODE` for each check that holds, `apex-suite: FAILED SERVICE: ...` for each
//! that does not, and at the end of each life the numbers of both. A process of high priority makes the
//! calls; a helper of low priority runs when the first one waits. The later lives are in [`lives`].
#![no_std]
#![no_main]
#![forbid(unsafe_code)]

mod initialisation;
mod lives;
mod objects;
mod ports;
mod processes;

use bulkhead_apex::task as apex;
use bulkhead_apex::{
    Answer, Attributes, Configuration, Deadline, ErrorCode, HmAction, INFINITE_TIME_VALUE, Name,
    OperatingMode, PortDirection, PortFacts, PortKind, Time,
};
use bulkhead_guest::println;
use bulkhead_guest::startup_page::StartupPage;
use core::sync::atomic::{AtomicU32, Ordering};

bulkhead_guest::task_main!(main);

const MILLISECOND: Time = 1_000_000;
const PERIOD: Time = 10 * MILLISECOND;
const FOREVER: Time = INFINITE_TIME_VALUE;

/// Both ends of a port are this partition's own.
const PORTS: &[PortFacts] = &[
    PortFacts {
        name: Name::new("sampling-out"),
        direction: PortDirection::Source,
        size: 8,
        kind: PortKind::Sampling { refresh: PERIOD },
    },
    PortFacts {
        name: Name::new("sampling-in"),
        direction: PortDirection::Destination,
        size: 8,
        kind: PortKind::Sampling { refresh: PERIOD },
    },
    PortFacts {
        name: Name::new("queuing-out"),
        direction: PortDirection::Source,
        size: 8,
        kind: PortKind::Queuing { depth: 2 },
    },
    PortFacts {
        name: Name::new("queuing-in"),
        direction: PortDirection::Destination,
        size: 8,
        kind: PortKind::Queuing { depth: 2 },
    },
];

const CONFIGURATION: Configuration = Configuration {
    identifier: 1,
    period: PERIOD,
    duration: PERIOD,
    ports: PORTS,
    schedules: &[Name::new("normal"), Name::new("other")],
    times: &[],
    health: health(),
};

/// Returns the health table: a missed deadline without an error handler starts the partition warm.
const fn health() -> [HmAction; ErrorCode::COUNT] {
    let mut table = [HmAction::Ignore; ErrorCode::COUNT];
    table[ErrorCode::DeadlineMissed as usize] = HmAction::WarmStart;
    table
}

static HELD: AtomicU32 = AtomicU32::new(0);
static FAILED: AtomicU32 = AtomicU32::new(0);

/// Returns the attributes of an aperiodic process.
fn attributes(name: &str, priority: i32) -> Attributes {
    Attributes {
        name: Name::new(name),
        entry_point: 0,
        stack_size: 8192,
        base_priority: priority,
        period: FOREVER,
        time_capacity: FOREVER,
        deadline: Deadline::Soft,
    }
}

/// Counts a check, and says what came.
fn check<T>(service: &str, expected: Answer, got: Answer<T>) {
    let got = got.map(drop);
    let code = |answer: Answer| answer.err().map_or("NO_ERROR", |code| code.name());
    if got == expected {
        HELD.store(HELD.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        println!("apex-suite: {service} {}", code(got));
    } else {
        FAILED.store(FAILED.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        println!(
            "apex-suite: FAILED {service}: {} instead of {}",
            code(got),
            code(expected)
        );
    }
}

/// Counts a check of something other than a return code.
fn check_that(what: &str, holds: bool) {
    if holds {
        HELD.store(HELD.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        println!("apex-suite: {what}");
    } else {
        FAILED.store(FAILED.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        println!("apex-suite: FAILED {what}");
    }
}

fn main(page: StartupPage<'static>) {
    apex::run(page, &CONFIGURATION, lives::begin);
}

/// Makes the calls in normal mode.
extern "C" fn caller_entry() {
    processes::check_all();
    objects::check_all();
    ports::check_all();
    processes::check_health();
    end_life("normal mode");
    let _ends_here = apex::set_partition_mode(OperatingMode::WarmStart);
}

/// Says how many checks of this life have held.
fn end_life(what: &str) {
    println!(
        "apex-suite: {what} done, {} held, {} failed",
        HELD.load(Ordering::Relaxed),
        FAILED.load(Ordering::Relaxed)
    );
}
