// SPDX-License-Identifier: Apache-2.0
//! The lives of the partition. Each begins with no process, no object and the initial values of all
//! variables:
//!
//! 1. the cold start of the system: all services;
//! 2. a warm start that the partition asks for: everything can be created again, a missed deadline ends it;
//! 3. a warm start that the health table demands: processes use more than their stacks, one
//!    of them the lowest one;
//! 4. a cold start that the partition asks for.

use crate::{MILLISECOND, PERIOD, apex, attributes, check, check_that, end_life, initialisation};
use bulkhead_apex::{Attributes, ErrorCode, OperatingMode, StartCondition};
use bulkhead_guest::println;
use core::sync::atomic::{AtomicU32, Ordering};

const LOWEST: i64 = 1;
const BELOW: i64 = 2;
const DIVER: i64 = 3;
/// Bytes of the stack of each process.
const STACK: usize = 8192;

/// A variable that has an initial value, and one whose initial value is 0.
static VALUES: [AtomicU32; 2] = [AtomicU32::new(7), AtomicU32::new(0)];

pub(crate) fn begin() {
    let status = apex::get_partition_status();
    let [given, none] = [0, 1].map(|index: usize| VALUES[index].swap(99, Ordering::Relaxed));
    match (status.operating_mode, status.start_condition) {
        (OperatingMode::ColdStart, StartCondition::NormalStart) => initialisation::check_all(),
        (OperatingMode::WarmStart, StartCondition::PartitionRestart) => {
            check_again("WARM_START PARTITION_RESTART", given == 7 && none == 0);
            check_deadline();
        }
        (OperatingMode::WarmStart, StartCondition::HmPartitionRestart) => {
            check_again("WARM_START HM_PARTITION_RESTART", given == 7 && none == 0);
            check_stacks();
        }
        (OperatingMode::ColdStart, StartCondition::PartitionRestart) => {
            check_that(
                "GET_PARTITION_STATUS COLD_START PARTITION_RESTART",
                given == 7 && none == 0,
            );
            end_life("all");
            // No process runs from now on, and the partition stays.
            let _without_processes = apex::set_partition_mode(OperatingMode::Normal);
        }
        _ => check_that("GET_PARTITION_STATUS", false),
    }
}

/// Creates everything in a later life.
fn check_again(start: &str, has_values: bool) {
    println!("apex-suite: GET_PARTITION_STATUS {start}");
    check_that("variables have their initial values", has_values);
    initialisation::check_objects();
    initialisation::check_ports();
}

/// Creates a process and starts it.
fn create(attributes: &Attributes, entry: apex::Entry) {
    let process = apex::create_process(attributes, entry);
    check("CREATE_PROCESS", Ok(()), process);
    check("START", Ok(()), process.and_then(apex::start));
}

fn enter_normal_mode() {
    check(
        "SET_PARTITION_MODE",
        Ok(()),
        apex::set_partition_mode(OperatingMode::Normal),
    );
}

/// Creates a process that misses its deadline, which no error handler takes.
fn check_deadline() {
    let attributes = Attributes {
        period: PERIOD,
        time_capacity: MILLISECOND,
        ..attributes("hasty", 20)
    };
    create(&attributes, hasty);
    enter_normal_mode();
}

/// Creates processes, of which the first has the lowest of all stacks. The stack of the diver is between
/// others.
fn check_stacks() {
    create(&attributes("lowest", 35), lowest);
    let handler = apex::create_error_handler(handler, 8192);
    check("CREATE_ERROR_HANDLER", Ok(()), handler);
    for (name, priority, entry) in [
        ("below", 10, idler as apex::Entry),
        ("diver", 40, diver),
        ("sleeper", 30, sleeper),
        ("last", 5, calm),
    ] {
        create(&attributes(name, priority), entry);
    }
    enter_normal_mode();
}

/// Misses its deadline.
extern "C" fn hasty() {
    end_life("warm start");
    loop {
        core::hint::spin_loop();
    }
}

/// Says which process has used more than its stack, or lies below one that has, and stops it.
extern "C" fn handler() {
    while let Ok(error) = apex::get_error_status() {
        let what = match error.process {
            LOWEST => "STACK_OVERFLOW of the process with the lowest stack",
            BELOW => "STACK_OVERFLOW may have changed the stack below",
            DIVER => "STACK_OVERFLOW of a process at its next service",
            _ => "STACK_OVERFLOW of a process that calls no service",
        };
        check_that(what, error.code == ErrorCode::StackOverflow);
        check("STOP", Ok(()), apex::stop(error.process));
    }
    apex::stop_self();
}

/// Uses the stack down to about `bytes` below the caller.
fn dive(bytes: usize) {
    let here = 0_u8;
    dive_to((&raw const here).addr() - bytes);
}

#[inline(never)]
fn dive_to(lowest: usize) {
    let mut room = [0_u8; 64];
    core::hint::black_box(&mut room);
    if room.as_ptr().addr() > lowest {
        dive_to(lowest);
    }
    core::hint::black_box(&mut room);
}

/// Uses most of its stack, then more than all of it: first a little more, and, when [`sleeper`] starts it
/// anew, so much that the stack below may have changed.
extern "C" fn diver() {
    dive(STACK / 2);
    check("TIMED_WAIT", Ok(()), apex::timed_wait(MILLISECOND));
    let is_first = VALUES[1].swap(98, Ordering::Relaxed) == 99;
    dive(if is_first { STACK + 512 } else { STACK + 3000 });
    let _never_returns = apex::timed_wait(MILLISECOND);
    check_that("the diver went on", false);
}

/// Uses much more than all of its stack, below which are those of no other process.
extern "C" fn lowest() {
    check("TIMED_WAIT", Ok(()), apex::timed_wait(MILLISECOND));
    dive(STACK + 10_000);
    let _never_returns = apex::timed_wait(MILLISECOND);
    check_that("the process with the lowest stack went on", false);
}

/// Starts the diver anew, and then uses too much itself without a service: a window finds it.
extern "C" fn sleeper() {
    check("TIMED_WAIT", Ok(()), apex::timed_wait(2 * PERIOD));
    check("START", Ok(()), apex::start(DIVER));
    check("TIMED_WAIT", Ok(()), apex::timed_wait(2 * PERIOD));
    dive(STACK + 512);
    loop {
        core::hint::spin_loop();
    }
}

/// Waits, with most of its stack not in use.
extern "C" fn idler() {
    let _stopped = apex::timed_wait(100 * PERIOD);
}

/// Asks for a cold start.
extern "C" fn calm() {
    check("TIMED_WAIT", Ok(()), apex::timed_wait(8 * PERIOD));
    end_life("warm start by the health table");
    let _ends_here = apex::set_partition_mode(OperatingMode::ColdStart);
}
