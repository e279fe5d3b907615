// SPDX-License-Identifier: Apache-2.0
//! Semaphores, events, mutexes, buffers and blackboards in normal mode. Each kind has one object, number 1.

use crate::processes::{HELPER, order};
use crate::{FOREVER, MILLISECOND, apex, check, check_that};
use bulkhead_apex::NO_MUTEX_OWNED;
use bulkhead_apex::Name;
use bulkhead_apex::QueuingDiscipline::Fifo;
use bulkhead_apex::ReturnCode::{InvalidMode, InvalidParam, NoAction, NotAvailable, TimedOut};

pub(crate) fn check_all() {
    let late = Name::new("late");
    check(
        "CREATE_SEMAPHORE",
        Err(InvalidMode),
        apex::create_semaphore(late, 0, 1, Fifo),
    );
    check("CREATE_EVENT", Err(InvalidMode), apex::create_event(late));
    check(
        "CREATE_MUTEX",
        Err(InvalidMode),
        apex::create_mutex(late, 5, Fifo),
    );
    check(
        "CREATE_BUFFER",
        Err(InvalidMode),
        apex::create_buffer(late, 8, 1, Fifo),
    );
    check(
        "CREATE_BLACKBOARD",
        Err(InvalidMode),
        apex::create_blackboard(late, 8),
    );
    check_semaphores();
    check_events();
    check_mutexes();
    check_buffers();
    check_blackboards();
}

fn check_semaphores() {
    check("WAIT_SEMAPHORE", Err(InvalidParam), apex::wait_semaphore(9, 0));
    check("WAIT_SEMAPHORE", Err(NotAvailable), apex::wait_semaphore(1, 0));
    check(
        "WAIT_SEMAPHORE",
        Err(TimedOut),
        apex::wait_semaphore(1, MILLISECOND),
    );
    order(2);
    check("WAIT_SEMAPHORE", Ok(()), apex::wait_semaphore(1, FOREVER));
    check("SIGNAL_SEMAPHORE", Err(InvalidParam), apex::signal_semaphore(9));
    check("SIGNAL_SEMAPHORE", Ok(()), apex::signal_semaphore(1));
    check("SIGNAL_SEMAPHORE", Ok(()), apex::signal_semaphore(1));
    check("SIGNAL_SEMAPHORE", Err(NoAction), apex::signal_semaphore(1));
    check(
        "GET_SEMAPHORE_STATUS",
        Err(InvalidParam),
        apex::get_semaphore_status(9),
    );
    let value = apex::get_semaphore_status(1).map(|status| status.current_value);
    check_that("GET_SEMAPHORE_STATUS NO_ERROR", value == Ok(2));
}

fn check_events() {
    check("WAIT_EVENT", Err(InvalidParam), apex::wait_event(9, 0));
    check("WAIT_EVENT", Err(NotAvailable), apex::wait_event(1, 0));
    check("WAIT_EVENT", Err(TimedOut), apex::wait_event(1, MILLISECOND));
    order(3);
    check("WAIT_EVENT", Ok(()), apex::wait_event(1, FOREVER));
    check("SET_EVENT", Err(InvalidParam), apex::set_event(9));
    check("RESET_EVENT", Err(InvalidParam), apex::reset_event(9));
    check("RESET_EVENT", Ok(()), apex::reset_event(1));
    check("SET_EVENT", Ok(()), apex::set_event(1));
    check("GET_EVENT_STATUS", Err(InvalidParam), apex::get_event_status(9));
    let is_up = apex::get_event_status(1).map(|status| status.is_up);
    check_that("GET_EVENT_STATUS NO_ERROR", is_up == Ok(true));
}

fn check_mutexes() {
    check("ACQUIRE_MUTEX", Err(InvalidParam), apex::acquire_mutex(9, 0));
    check("RELEASE_MUTEX", Err(InvalidMode), apex::release_mutex(1));
    check("ACQUIRE_MUTEX", Ok(()), apex::acquire_mutex(1, 0));
    check("TIMED_WAIT", Err(InvalidMode), apex::timed_wait(1));
    let priority = apex::get_process_status(1).map(|status| status.current_priority);
    check_that("ACQUIRE_MUTEX raises the priority", priority == Ok(55));
    check_that(
        "GET_PROCESS_MUTEX_STATE NO_ERROR",
        apex::get_process_mutex_state(1) == Ok(1),
    );
    check(
        "GET_PROCESS_MUTEX_STATE",
        Err(InvalidParam),
        apex::get_process_mutex_state(9),
    );
    check("GET_MUTEX_STATUS", Err(InvalidParam), apex::get_mutex_status(9));
    let owner = apex::get_mutex_status(1).map(|status| status.owner);
    check_that("GET_MUTEX_STATUS NO_ERROR", owner == Ok(Some(1)));
    check("RELEASE_MUTEX", Err(InvalidParam), apex::release_mutex(9));
    check("RESET_MUTEX", Err(InvalidParam), apex::reset_mutex(9, 1));
    check("RESET_MUTEX", Err(InvalidMode), apex::reset_mutex(1, HELPER));
    check("RELEASE_MUTEX", Ok(()), apex::release_mutex(1));
    check_that(
        "RELEASE_MUTEX",
        apex::get_process_mutex_state(1) == Ok(NO_MUTEX_OWNED),
    );
    check("ACQUIRE_MUTEX", Ok(()), apex::acquire_mutex(1, FOREVER));
    check("RESET_MUTEX", Ok(()), apex::reset_mutex(1, 1));
}

fn check_buffers() {
    let mut to = [0; 8];
    check(
        "RECEIVE_BUFFER",
        Err(InvalidParam),
        apex::receive_buffer(9, &mut to, 0),
    );
    check(
        "RECEIVE_BUFFER",
        Err(NotAvailable),
        apex::receive_buffer(1, &mut to, 0),
    );
    check(
        "RECEIVE_BUFFER",
        Err(TimedOut),
        apex::receive_buffer(1, &mut to, MILLISECOND),
    );
    order(4);
    let length = apex::receive_buffer(1, &mut to, FOREVER);
    check_that(
        "RECEIVE_BUFFER NO_ERROR",
        length == Ok(6) && to[..6] == *b"buffer",
    );
    check("SEND_BUFFER", Err(InvalidParam), apex::send_buffer(9, b"a", 0));
    check("SEND_BUFFER", Err(InvalidParam), apex::send_buffer(1, b"", 0));
    check("SEND_BUFFER", Ok(()), apex::send_buffer(1, b"a", 0));
    check("SEND_BUFFER", Err(NotAvailable), apex::send_buffer(1, b"b", 0));
    check(
        "SEND_BUFFER",
        Err(TimedOut),
        apex::send_buffer(1, b"b", MILLISECOND),
    );
    order(7);
    check("SEND_BUFFER", Ok(()), apex::send_buffer(1, b"b", FOREVER));
    check("GET_BUFFER_STATUS", Err(InvalidParam), apex::get_buffer_status(9));
    let messages = apex::get_buffer_status(1).map(|status| status.messages);
    check_that("GET_BUFFER_STATUS NO_ERROR", messages == Ok(1));
}

fn check_blackboards() {
    let mut to = [0; 8];
    check(
        "READ_BLACKBOARD",
        Err(InvalidParam),
        apex::read_blackboard(9, &mut to, 0),
    );
    check(
        "READ_BLACKBOARD",
        Err(NotAvailable),
        apex::read_blackboard(1, &mut to, 0),
    );
    check(
        "READ_BLACKBOARD",
        Err(TimedOut),
        apex::read_blackboard(1, &mut to, MILLISECOND),
    );
    order(5);
    let length = apex::read_blackboard(1, &mut to, FOREVER);
    check_that(
        "READ_BLACKBOARD NO_ERROR",
        length == Ok(5) && to[..5] == *b"board",
    );
    check(
        "DISPLAY_BLACKBOARD",
        Err(InvalidParam),
        apex::display_blackboard(1, b""),
    );
    check(
        "DISPLAY_BLACKBOARD",
        Ok(()),
        apex::display_blackboard(1, b"board"),
    );
    check("CLEAR_BLACKBOARD", Err(InvalidParam), apex::clear_blackboard(9));
    check("CLEAR_BLACKBOARD", Ok(()), apex::clear_blackboard(1));
    check(
        "GET_BLACKBOARD_STATUS",
        Err(InvalidParam),
        apex::get_blackboard_status(9),
    );
    let shows = apex::get_blackboard_status(1).map(|status| status.is_occupied);
    check_that("GET_BLACKBOARD_STATUS NO_ERROR", shows == Ok(false));
}
