// SPDX-License-Identifier: Apache-2.0
//! Ports in normal mode. Both ends are this partition's own: of each kind, number 1 is the source and number
//! 2 the destination.

use crate::processes::order;
use crate::{FOREVER, MILLISECOND, PERIOD, apex, check, check_that};
use bulkhead_apex::ReturnCode::{InvalidConfig, InvalidMode, InvalidParam, NoAction, NotAvailable, TimedOut};
use bulkhead_apex::{Name, PortDirection, QueueSize, QueuingDiscipline, Time, Validity};

/// A wait that is over before the next period.
const TIME_OUT: Time = 3 * MILLISECOND;

pub(crate) fn check_all() {
    check_sampling();
    check_queuing();
    let late = Name::new("queuing-in");
    let size = QueueSize {
        message: 8,
        messages: 2,
    };
    let port = apex::create_queuing_port(late, size, PortDirection::Destination, QueuingDiscipline::Fifo);
    check("CREATE_QUEUING_PORT", Err(NoAction), port);
}

fn check_sampling() {
    let mut to = [0; 8];
    check(
        "READ_SAMPLING_MESSAGE",
        Err(InvalidParam),
        apex::read_sampling_message(9, &mut to),
    );
    check(
        "READ_SAMPLING_MESSAGE",
        Err(InvalidMode),
        apex::read_sampling_message(1, &mut to),
    );
    check(
        "READ_SAMPLING_MESSAGE",
        Err(NoAction),
        apex::read_sampling_message(2, &mut to),
    );
    check(
        "WRITE_SAMPLING_MESSAGE",
        Err(InvalidParam),
        apex::write_sampling_message(1, b""),
    );
    check(
        "WRITE_SAMPLING_MESSAGE",
        Err(InvalidConfig),
        apex::write_sampling_message(1, b"123456789"),
    );
    check(
        "WRITE_SAMPLING_MESSAGE",
        Err(InvalidMode),
        apex::write_sampling_message(2, b"a"),
    );
    check(
        "WRITE_SAMPLING_MESSAGE",
        Ok(()),
        apex::write_sampling_message(1, b"old"),
    );
    check(
        "WRITE_SAMPLING_MESSAGE",
        Ok(()),
        apex::write_sampling_message(1, b"new"),
    );
    let read = apex::read_sampling_message(2, &mut to);
    check_that(
        "READ_SAMPLING_MESSAGE VALID",
        read == Ok((Validity::Valid, 3)) && to[..3] == *b"new",
    );
    let written = (0..20).try_for_each(|number| apex::write_sampling_message(1, &[number]));
    check("WRITE_SAMPLING_MESSAGE", Ok(()), written);
    let read = apex::read_sampling_message(2, &mut to);
    check_that(
        "READ_SAMPLING_MESSAGE the newest of 20",
        read == Ok((Validity::Valid, 1)) && to[0] == 19,
    );
    check("TIMED_WAIT", Ok(()), apex::timed_wait(PERIOD + MILLISECOND));
    let read = apex::read_sampling_message(2, &mut to);
    check_that(
        "READ_SAMPLING_MESSAGE INVALID",
        read == Ok((Validity::Invalid, 1)),
    );
    check(
        "GET_SAMPLING_PORT_STATUS",
        Err(InvalidParam),
        apex::get_sampling_port_status(9),
    );
    check(
        "GET_SAMPLING_PORT_STATUS",
        Ok(()),
        apex::get_sampling_port_status(2),
    );
    check(
        "GET_SAMPLING_PORT_ID",
        Ok(()),
        apex::get_sampling_port_id(&Name::new("sampling-in")),
    );
    check(
        "GET_SAMPLING_PORT_ID",
        Err(InvalidConfig),
        apex::get_sampling_port_id(&Name::new("none")),
    );
}

fn check_queuing() {
    let mut to = [0; 8];
    check(
        "RECEIVE_QUEUING_MESSAGE",
        Err(InvalidParam),
        apex::receive_queuing_message(9, &mut to, 0),
    );
    check(
        "RECEIVE_QUEUING_MESSAGE",
        Err(InvalidMode),
        apex::receive_queuing_message(1, &mut to, 0),
    );
    check(
        "RECEIVE_QUEUING_MESSAGE",
        Err(NotAvailable),
        apex::receive_queuing_message(2, &mut to, 0),
    );
    let received = apex::receive_queuing_message(2, &mut to, MILLISECOND);
    check("RECEIVE_QUEUING_MESSAGE", Err(TimedOut), received);
    order(6);
    let received = apex::receive_queuing_message(2, &mut to, FOREVER);
    check_that(
        "RECEIVE_QUEUING_MESSAGE NO_ERROR",
        received == Ok(5) && to[..5] == *b"queue",
    );
    early_in_a_period();
    order(6);
    let received = apex::receive_queuing_message(2, &mut to, TIME_OUT);
    check_that(
        "RECEIVE_QUEUING_MESSAGE a message before the time-out",
        received == Ok(5) && to[..5] == *b"queue",
    );
    check_queue_that_fills();
}

/// Waits until a period has begun. The library looks at the ports at the start of a period and when a wait is
/// over. So in the next milliseconds it sees what has come to a port only at the end of a wait.
fn early_in_a_period() {
    let rest = PERIOD - apex::get_time() % PERIOD;
    check("TIMED_WAIT", Ok(()), apex::timed_wait(rest + MILLISECOND));
}

/// Sends until both ends are full.
fn check_queue_that_fills() {
    check(
        "SEND_QUEUING_MESSAGE",
        Err(InvalidParam),
        apex::send_queuing_message(1, b"", 0),
    );
    check(
        "SEND_QUEUING_MESSAGE",
        Err(InvalidConfig),
        apex::send_queuing_message(1, b"123456789", 0),
    );
    check(
        "SEND_QUEUING_MESSAGE",
        Err(InvalidMode),
        apex::send_queuing_message(2, b"a", 0),
    );
    check(
        "SEND_QUEUING_MESSAGE",
        Ok(()),
        apex::send_queuing_message(1, b"a", 0),
    );
    check(
        "SEND_QUEUING_MESSAGE",
        Ok(()),
        apex::send_queuing_message(1, b"b", 0),
    );
    let messages = apex::get_queuing_port_status(2).map(|status| status.messages);
    check_that("GET_QUEUING_PORT_STATUS NO_ERROR", messages == Ok(2));
    check(
        "SEND_QUEUING_MESSAGE",
        Ok(()),
        apex::send_queuing_message(1, b"c", 0),
    );
    check(
        "SEND_QUEUING_MESSAGE",
        Ok(()),
        apex::send_queuing_message(1, b"d", 0),
    );
    check(
        "SEND_QUEUING_MESSAGE",
        Err(NotAvailable),
        apex::send_queuing_message(1, b"e", 0),
    );
    check(
        "SEND_QUEUING_MESSAGE",
        Err(TimedOut),
        apex::send_queuing_message(1, b"e", MILLISECOND),
    );
    early_in_a_period();
    order(8);
    let sent = apex::send_queuing_message(1, b"e", TIME_OUT);
    check_that("SEND_QUEUING_MESSAGE room before the time-out", sent == Ok(()));
    check(
        "CLEAR_QUEUING_PORT",
        Err(InvalidParam),
        apex::clear_queuing_port(9),
    );
    check(
        "CLEAR_QUEUING_PORT",
        Err(InvalidMode),
        apex::clear_queuing_port(1),
    );
    check("CLEAR_QUEUING_PORT", Ok(()), apex::clear_queuing_port(2));
    check(
        "GET_QUEUING_PORT_STATUS",
        Err(InvalidParam),
        apex::get_queuing_port_status(9),
    );
    check(
        "GET_QUEUING_PORT_ID",
        Ok(()),
        apex::get_queuing_port_id(&Name::new("queuing-in")),
    );
    check(
        "GET_QUEUING_PORT_ID",
        Err(InvalidConfig),
        apex::get_queuing_port_id(&Name::new("none")),
    );
}
