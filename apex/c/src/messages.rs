// SPDX-License-Identifier: Apache-2.0
//! `apexBuffer.h`, `apexBlackboard.h`, `apexSampling.h` and `apexQueuing.h`.
//!
//! A service that receives learns from the object's status how much room the caller must have. An object that
//! does not exist has no room, and the service itself says so.
#![allow(non_snake_case, reason = "the standard writes services in capitals")]

use crate::memory::{message, name, room};
use crate::{Code, Place, direction, discipline, give, reply};
use bulkhead_apex::task as apex;
use bulkhead_apex::{QueueSize, Time, Validity};

/// `BUFFER_STATUS_TYPE`.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct BufferStatus {
    messages: u32,
    maximum: u32,
    size: u32,
    waiting_processes: i32,
}

/// `BLACKBOARD_STATUS_TYPE`.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct BlackboardStatus {
    is_occupied: u32,
    size: u32,
    waiting_processes: i32,
}

/// `SAMPLING_PORT_STATUS_TYPE`.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct SamplingPortStatus {
    refresh_period: Time,
    size: u32,
    direction: u32,
    validity: u32,
}

/// `QUEUING_PORT_STATUS_TYPE`.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct QueuingPortStatus {
    messages: u32,
    maximum: u32,
    size: u32,
    direction: u32,
    waiting_processes: i32,
}

/// Returns the number of a validity.
fn number(validity: Validity) -> u32 {
    match validity {
        Validity::Invalid => 0,
        Validity::Valid => 1,
    }
}

#[unsafe(no_mangle)]
extern "C" fn CREATE_BUFFER(
    of: *const u8,
    size: u32,
    maximum: u32,
    order: u32,
    to: Place<'_, i64>,
    code: Code<'_>,
) {
    give(to, code, || {
        apex::create_buffer(name(of)?, size, maximum, discipline(order)?)
    });
}

#[unsafe(no_mangle)]
extern "C" fn SEND_BUFFER(identifier: i64, first: *const u8, length: u32, time_out: Time, code: Code<'_>) {
    let sent = message(first, length).and_then(|message| apex::send_buffer(identifier, message, time_out));
    reply(code, sent);
}

#[unsafe(no_mangle)]
extern "C" fn RECEIVE_BUFFER(
    identifier: i64,
    time_out: Time,
    first: *mut u8,
    length: Place<'_, u32>,
    code: Code<'_>,
) {
    give(length, code, || {
        let size = apex::get_buffer_status(identifier).map_or(0, |status| status.size);
        let length = apex::receive_buffer(identifier, room(first, size)?, time_out)?;
        Ok(length as u32)
    });
}

#[unsafe(no_mangle)]
extern "C" fn GET_BUFFER_ID(of: *const u8, to: Place<'_, i64>, code: Code<'_>) {
    give(to, code, || apex::get_buffer_id(&name(of)?));
}

#[unsafe(no_mangle)]
extern "C" fn GET_BUFFER_STATUS(identifier: i64, to: Place<'_, BufferStatus>, code: Code<'_>) {
    give(to, code, || {
        let status = apex::get_buffer_status(identifier)?;
        Ok(BufferStatus {
            messages: status.messages,
            maximum: status.maximum,
            size: status.size,
            waiting_processes: status.waiting_processes,
        })
    });
}

#[unsafe(no_mangle)]
extern "C" fn CREATE_BLACKBOARD(of: *const u8, size: u32, to: Place<'_, i64>, code: Code<'_>) {
    give(to, code, || apex::create_blackboard(name(of)?, size));
}

#[unsafe(no_mangle)]
extern "C" fn DISPLAY_BLACKBOARD(identifier: i64, first: *const u8, length: u32, code: Code<'_>) {
    let shown = message(first, length).and_then(|message| apex::display_blackboard(identifier, message));
    reply(code, shown);
}

#[unsafe(no_mangle)]
extern "C" fn READ_BLACKBOARD(
    identifier: i64,
    time_out: Time,
    first: *mut u8,
    length: Place<'_, u32>,
    code: Code<'_>,
) {
    give(length, code, || {
        let size = apex::get_blackboard_status(identifier).map_or(0, |status| status.size);
        let length = apex::read_blackboard(identifier, room(first, size)?, time_out)?;
        Ok(length as u32)
    });
}

#[unsafe(no_mangle)]
extern "C" fn CLEAR_BLACKBOARD(identifier: i64, code: Code<'_>) {
    reply(code, apex::clear_blackboard(identifier));
}

#[unsafe(no_mangle)]
extern "C" fn GET_BLACKBOARD_ID(of: *const u8, to: Place<'_, i64>, code: Code<'_>) {
    give(to, code, || apex::get_blackboard_id(&name(of)?));
}

#[unsafe(no_mangle)]
extern "C" fn GET_BLACKBOARD_STATUS(identifier: i64, to: Place<'_, BlackboardStatus>, code: Code<'_>) {
    give(to, code, || {
        let status = apex::get_blackboard_status(identifier)?;
        Ok(BlackboardStatus {
            is_occupied: status.is_occupied.into(),
            size: status.size,
            waiting_processes: status.waiting_processes,
        })
    });
}

#[unsafe(no_mangle)]
extern "C" fn CREATE_SAMPLING_PORT(
    of: *const u8,
    size: u32,
    way: u32,
    refresh: Time,
    to: Place<'_, i64>,
    code: Code<'_>,
) {
    give(to, code, || {
        apex::create_sampling_port(name(of)?, size, direction(way)?, refresh)
    });
}

#[unsafe(no_mangle)]
extern "C" fn WRITE_SAMPLING_MESSAGE(identifier: i64, first: *const u8, length: u32, code: Code<'_>) {
    let written =
        message(first, length).and_then(|message| apex::write_sampling_message(identifier, message));
    reply(code, written);
}

#[unsafe(no_mangle)]
extern "C" fn READ_SAMPLING_MESSAGE(
    identifier: i64,
    first: *mut u8,
    length: Place<'_, u32>,
    validity: Place<'_, u32>,
    code: Code<'_>,
) {
    let mut shown = Validity::Invalid;
    give(length, code, || {
        let size = apex::get_sampling_port_status(identifier).map_or(0, |status| status.size);
        let (read, length) = apex::read_sampling_message(identifier, room(first, size)?)?;
        shown = read;
        Ok(length as u32)
    });
    if let Some(validity) = validity {
        validity.write(number(shown));
    }
}

#[unsafe(no_mangle)]
extern "C" fn GET_SAMPLING_PORT_ID(of: *const u8, to: Place<'_, i64>, code: Code<'_>) {
    give(to, code, || apex::get_sampling_port_id(&name(of)?));
}

#[unsafe(no_mangle)]
extern "C" fn GET_SAMPLING_PORT_STATUS(identifier: i64, to: Place<'_, SamplingPortStatus>, code: Code<'_>) {
    give(to, code, || {
        let status = apex::get_sampling_port_status(identifier)?;
        Ok(SamplingPortStatus {
            refresh_period: status.refresh_period,
            size: status.size,
            direction: status.direction as u32,
            validity: number(status.last_validity),
        })
    });
}

#[unsafe(no_mangle)]
#[allow(clippy::too_many_arguments, reason = "the standard has as many")]
extern "C" fn CREATE_QUEUING_PORT(
    of: *const u8,
    size: u32,
    maximum: u32,
    way: u32,
    order: u32,
    to: Place<'_, i64>,
    code: Code<'_>,
) {
    give(to, code, || {
        let size = QueueSize {
            message: size,
            messages: maximum,
        };
        apex::create_queuing_port(name(of)?, size, direction(way)?, discipline(order)?)
    });
}

#[unsafe(no_mangle)]
extern "C" fn SEND_QUEUING_MESSAGE(
    identifier: i64,
    first: *const u8,
    length: u32,
    time_out: Time,
    code: Code<'_>,
) {
    let sent =
        message(first, length).and_then(|message| apex::send_queuing_message(identifier, message, time_out));
    reply(code, sent);
}

#[unsafe(no_mangle)]
extern "C" fn RECEIVE_QUEUING_MESSAGE(
    identifier: i64,
    time_out: Time,
    first: *mut u8,
    length: Place<'_, u32>,
    code: Code<'_>,
) {
    give(length, code, || {
        let size = apex::get_queuing_port_status(identifier).map_or(0, |status| status.size);
        let length = apex::receive_queuing_message(identifier, room(first, size)?, time_out)?;
        Ok(length as u32)
    });
}

#[unsafe(no_mangle)]
extern "C" fn GET_QUEUING_PORT_ID(of: *const u8, to: Place<'_, i64>, code: Code<'_>) {
    give(to, code, || apex::get_queuing_port_id(&name(of)?));
}

#[unsafe(no_mangle)]
extern "C" fn GET_QUEUING_PORT_STATUS(identifier: i64, to: Place<'_, QueuingPortStatus>, code: Code<'_>) {
    give(to, code, || {
        let status = apex::get_queuing_port_status(identifier)?;
        Ok(QueuingPortStatus {
            messages: status.messages,
            maximum: status.maximum,
            size: status.size,
            direction: status.direction as u32,
            waiting_processes: status.waiting_processes,
        })
    });
}

#[unsafe(no_mangle)]
extern "C" fn CLEAR_QUEUING_PORT(identifier: i64, code: Code<'_>) {
    reply(code, apex::clear_queuing_port(identifier));
}
