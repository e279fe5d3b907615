// SPDX-License-Identifier: Apache-2.0
//! Services of the partition, its processes, time, schedules and health, in normal mode.

use crate::{FOREVER, MILLISECOND, PERIOD, apex, attributes, check, check_that};
use bulkhead_apex::ReturnCode::{InvalidConfig, InvalidMode, InvalidParam, NoAction, TimedOut};
use bulkhead_apex::limits::MAX_LOCK_LEVEL;
use bulkhead_apex::{ErrorCode, Name, OperatingMode, ProcessState};
use core::sync::atomic::{AtomicU32, Ordering};

const CALLER: i64 = 1;
pub(crate) const HELPER: i64 = 2;
const PERIODIC: i64 = 3;

static RELEASES: AtomicU32 = AtomicU32::new(0);
static LATEST: AtomicU32 = AtomicU32::new(0);
static HANDLED: AtomicU32 = AtomicU32::new(0);
/// The service that the helper does: its number in [`helper_entry`].
pub(crate) static ORDER: AtomicU32 = AtomicU32::new(0);

/// Runs when the caller waits, does what it was told, and then computes without end.
pub(crate) extern "C" fn helper_entry() {
    let done = match ORDER.load(Ordering::Relaxed) {
        1 => apex::resume(CALLER),
        2 => apex::signal_semaphore(1),
        3 => apex::set_event(1),
        4 => apex::send_buffer(1, b"buffer", 0),
        5 => apex::display_blackboard(1, b"board"),
        6 => apex::send_queuing_message(1, b"queue", 0),
        7 => apex::receive_buffer(1, &mut [0; 8], 0).map(drop),
        // The second one moves a message from the hypervisor's port to the partition's queue.
        8 => (0..2).try_for_each(|_| apex::receive_queuing_message(2, &mut [0; 8], 0).map(drop)),
        _ => Ok(()),
    };
    check("the helper's service", Ok(()), done);
    loop {
        core::hint::spin_loop();
    }
}

/// Starts the helper anew with an order.
pub(crate) fn order(number: u32) {
    let _dormant_or_not = apex::stop(HELPER);
    ORDER.store(number, Ordering::Relaxed);
    check("START", Ok(()), apex::start(HELPER));
}

/// Notes how late it is released, three times, with its own time read at each release.
pub(crate) extern "C" fn periodic_entry() {
    for number in 0..3 {
        let now = apex::get_time();
        RELEASES.store(number + 1, Ordering::Relaxed);
        LATEST.store((now % PERIOD / 1000) as u32, Ordering::Relaxed);
        if number == 0 {
            check("REPLENISH", Err(InvalidMode), apex::replenish(2 * PERIOD));
            check("REPLENISH", Ok(()), apex::replenish(MILLISECOND));
        }
        check("PERIODIC_WAIT", Ok(()), apex::periodic_wait());
    }
    apex::stop_self();
}

pub(crate) extern "C" fn handler_entry() {
    check("TIMED_WAIT", Err(InvalidMode), apex::timed_wait(1));
    let error = apex::get_error_status();
    let is_it = error.is_ok_and(|error| {
        error.code == ErrorCode::ApplicationError
            && error.process == CALLER
            && error.message[..error.length] == *b"an error"
    });
    check_that("GET_ERROR_STATUS NO_ERROR", is_it);
    check("GET_ERROR_STATUS", Err(NoAction), apex::get_error_status());
    HANDLED.store(1, Ordering::Relaxed);
    apex::stop_self();
}

pub(crate) fn check_all() {
    check(
        "SET_PARTITION_MODE",
        Err(NoAction),
        apex::set_partition_mode(OperatingMode::Normal),
    );
    check_that("GET_MY_ID NO_ERROR", apex::get_my_id() == Ok(CALLER));
    let late = attributes("late", 1);
    check(
        "CREATE_PROCESS",
        Err(InvalidMode),
        apex::create_process(&late, helper_entry),
    );
    check_states();
    check_suspension();
    check_lock();
    check_time();
    check_schedules();
}

fn state(process: i64) -> Option<ProcessState> {
    apex::get_process_status(process).ok().map(|status| status.state)
}

fn check_states() {
    check(
        "GET_PROCESS_STATUS",
        Err(InvalidParam),
        apex::get_process_status(99),
    );
    check_that(
        "GET_PROCESS_STATUS DORMANT",
        state(HELPER) == Some(ProcessState::Dormant),
    );
    check_that(
        "GET_PROCESS_STATUS RUNNING",
        state(CALLER) == Some(ProcessState::Running),
    );
    check("GET_PROCESS_STATUS", Ok(()), apex::get_process_status(HELPER));
    check("STOP", Err(NoAction), apex::stop(HELPER));
    check("STOP", Err(InvalidParam), apex::stop(CALLER));
    check("SET_PRIORITY", Err(InvalidMode), apex::set_priority(HELPER, 11));
    check(
        "DELAYED_START",
        Err(InvalidParam),
        apex::delayed_start(HELPER, -1),
    );
    check("DELAYED_START", Ok(()), apex::delayed_start(HELPER, MILLISECOND));
    check(
        "DELAYED_START",
        Err(NoAction),
        apex::delayed_start(HELPER, MILLISECOND),
    );
    check_that(
        "GET_PROCESS_STATUS WAITING",
        state(HELPER) == Some(ProcessState::Waiting),
    );
    check("SET_PRIORITY", Err(InvalidParam), apex::set_priority(HELPER, 240));
    check("SET_PRIORITY", Ok(()), apex::set_priority(HELPER, 11));
    check("TIMED_WAIT", Ok(()), apex::timed_wait(2 * MILLISECOND));
    check_that(
        "GET_PROCESS_STATUS READY",
        state(HELPER) == Some(ProcessState::Ready),
    );
}

fn check_suspension() {
    check("SUSPEND", Err(InvalidParam), apex::suspend(CALLER));
    check("SUSPEND", Err(InvalidMode), apex::suspend(PERIODIC));
    check("SUSPEND", Ok(()), apex::suspend(HELPER));
    check("SUSPEND", Err(NoAction), apex::suspend(HELPER));
    check("RESUME", Ok(()), apex::resume(HELPER));
    check("RESUME", Err(NoAction), apex::resume(HELPER));
    check("RESUME", Err(InvalidParam), apex::resume(CALLER));
    check("RESUME", Err(InvalidMode), apex::resume(PERIODIC));
    check("SUSPEND_SELF", Err(InvalidParam), apex::suspend_self(-2));
    check("SUSPEND_SELF", Err(TimedOut), apex::suspend_self(MILLISECOND));
    order(1);
    check("SUSPEND_SELF", Ok(()), apex::suspend_self(FOREVER));
}

fn check_lock() {
    check("LOCK_PREEMPTION", Ok(()), apex::lock_preemption());
    for _ in 1..MAX_LOCK_LEVEL {
        let _level = apex::lock_preemption();
    }
    check("LOCK_PREEMPTION", Err(InvalidConfig), apex::lock_preemption());
    check("TIMED_WAIT", Err(InvalidMode), apex::timed_wait(1));
    for _ in 1..MAX_LOCK_LEVEL {
        let _level = apex::unlock_preemption();
    }
    check_that("UNLOCK_PREEMPTION NO_ERROR", apex::unlock_preemption() == Ok(0));
    check("UNLOCK_PREEMPTION", Err(NoAction), apex::unlock_preemption());
}

fn check_time() {
    check("TIMED_WAIT", Err(InvalidParam), apex::timed_wait(-1));
    check("PERIODIC_WAIT", Err(InvalidMode), apex::periodic_wait());
    check("REPLENISH", Err(InvalidParam), apex::replenish(-2));
    check("REPLENISH", Ok(()), apex::replenish(PERIOD));
    check("START", Ok(()), apex::start(PERIODIC));
    // The periodic process is more important: it interrupts this computation by the upcall of its release.
    let begin = apex::get_time();
    while apex::get_time() - begin < 4 * PERIOD {
        core::hint::spin_loop();
    }
    check_that(
        "a periodic process interrupts",
        RELEASES.load(Ordering::Relaxed) == 3,
    );
    check_that("a release is in time", LATEST.load(Ordering::Relaxed) < 1000);
    let before = apex::get_time();
    check("TIMED_WAIT", Ok(()), apex::timed_wait(3 * MILLISECOND));
    let waited = apex::get_time() - before;
    check_that(
        "a wait ends in time",
        (3 * MILLISECOND..4 * MILLISECOND).contains(&waited),
    );
}

fn check_schedules() {
    let none = Name::new("none");
    check(
        "GET_MODULE_SCHEDULE_ID",
        Err(InvalidConfig),
        apex::get_module_schedule_id(&none),
    );
    check_that(
        "GET_MODULE_SCHEDULE_ID NO_ERROR",
        apex::get_module_schedule_id(&Name::new("other")) == Ok(2),
    );
    check(
        "SET_MODULE_SCHEDULE",
        Err(InvalidParam),
        apex::set_module_schedule(3),
    );
    check("SET_MODULE_SCHEDULE", Err(NoAction), apex::set_module_schedule(1));
    check("SET_MODULE_SCHEDULE", Ok(()), apex::set_module_schedule(2));
    let next = apex::get_module_schedule_status().map(|status| status.next);
    check_that("GET_MODULE_SCHEDULE_STATUS NO_ERROR", next == Ok(2));
    check("TIMED_WAIT", Ok(()), apex::timed_wait(3 * PERIOD));
    let current = apex::get_module_schedule_status().map(|status| status.current);
    check_that("GET_MODULE_SCHEDULE_STATUS changed", current == Ok(2));
}

pub(crate) fn check_health() {
    let code = ErrorCode::ApplicationError;
    check("GET_ERROR_STATUS", Err(InvalidConfig), apex::get_error_status());
    check(
        "RAISE_APPLICATION_ERROR",
        Err(InvalidParam),
        apex::raise_application_error(code, &[0; 129]),
    );
    check(
        "RAISE_APPLICATION_ERROR",
        Ok(()),
        apex::raise_application_error(code, b"an error"),
    );
    check_that("the error handler has run", HANDLED.load(Ordering::Relaxed) == 1);
    check(
        "REPORT_APPLICATION_MESSAGE",
        Err(InvalidParam),
        apex::report_application_message(&[0; 129]),
    );
    check(
        "REPORT_APPLICATION_MESSAGE",
        Ok(()),
        apex::report_application_message(b"a message"),
    );
}
