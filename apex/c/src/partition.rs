// SPDX-License-Identifier: Apache-2.0
//! `apexPartition.h`, `apexTime.h`, `apexError.h` and `apexSchedule.h`.
#![allow(non_snake_case, reason = "the standard writes services in capitals")]

use crate::memory::{message, name};
use crate::{Code, Place, give, reply};
use bulkhead_apex::limits::MAX_ERROR_MESSAGE;
use bulkhead_apex::task::{self as apex, Entry};
use bulkhead_apex::{Answer, ErrorCode, OperatingMode, ReturnCode, Time};

/// `PARTITION_STATUS_TYPE`.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct PartitionStatus {
    period: Time,
    duration: Time,
    identifier: i64,
    lock_level: i32,
    operating_mode: u32,
    start_condition: u32,
    cores: u32,
}

/// `ERROR_STATUS_TYPE`.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct ErrorStatus {
    address: usize,
    process: i64,
    code: u32,
    length: i32,
    message: [u8; MAX_ERROR_MESSAGE],
}

/// `SCHEDULE_STATUS_TYPE`.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct ScheduleStatus {
    since: Time,
    current: i64,
    next: i64,
}

#[unsafe(no_mangle)]
extern "C" fn GET_PARTITION_STATUS(to: Place<'_, PartitionStatus>, code: Code<'_>) {
    give(to, code, || {
        let status = apex::get_partition_status();
        Ok(PartitionStatus {
            period: status.period,
            duration: status.duration,
            identifier: status.identifier,
            lock_level: status.lock_level,
            operating_mode: status.operating_mode as u32,
            start_condition: status.start_condition as u32,
            cores: 1,
        })
    });
}

#[unsafe(no_mangle)]
extern "C" fn SET_PARTITION_MODE(mode: u32, code: Code<'_>) {
    let mode = match mode {
        0 => Ok(OperatingMode::Idle),
        1 => Ok(OperatingMode::ColdStart),
        2 => Ok(OperatingMode::WarmStart),
        3 => Ok(OperatingMode::Normal),
        _ => Err(ReturnCode::InvalidParam),
    };
    reply(code, mode.and_then(apex::set_partition_mode));
}

#[unsafe(no_mangle)]
extern "C" fn TIMED_WAIT(delay: Time, code: Code<'_>) {
    reply(code, apex::timed_wait(delay));
}

#[unsafe(no_mangle)]
extern "C" fn PERIODIC_WAIT(code: Code<'_>) {
    reply(code, apex::periodic_wait());
}

#[unsafe(no_mangle)]
extern "C" fn GET_TIME(to: Place<'_, Time>, code: Code<'_>) {
    give(to, code, || Ok(apex::get_time()));
}

#[unsafe(no_mangle)]
extern "C" fn REPLENISH(budget: Time, code: Code<'_>) {
    reply(code, apex::replenish(budget));
}

#[unsafe(no_mangle)]
extern "C" fn REPORT_APPLICATION_MESSAGE(first: *const u8, length: u32, code: Code<'_>) {
    reply(
        code,
        message(first, length).and_then(apex::report_application_message),
    );
}

#[unsafe(no_mangle)]
extern "C" fn CREATE_ERROR_HANDLER(entry: Option<Entry>, stack_size: u32, code: Code<'_>) {
    let entry = entry.ok_or(ReturnCode::InvalidParam);
    reply(
        code,
        entry.and_then(|entry| apex::create_error_handler(entry, stack_size)),
    );
}

#[unsafe(no_mangle)]
extern "C" fn GET_ERROR_STATUS(to: Place<'_, ErrorStatus>, code: Code<'_>) {
    give(to, code, || {
        let status = apex::get_error_status()?;
        Ok(ErrorStatus {
            address: status.address as usize,
            process: status.process,
            code: status.code as u32,
            length: status.length as i32,
            message: status.message,
        })
    });
}

#[unsafe(no_mangle)]
extern "C" fn RAISE_APPLICATION_ERROR(error: u32, first: *const u8, length: u32, code: Code<'_>) {
    let raise = || -> Answer {
        // Every other code is the health monitor's own.
        if error != ErrorCode::ApplicationError as u32 {
            return Err(ReturnCode::InvalidParam);
        }
        apex::raise_application_error(ErrorCode::ApplicationError, message(first, length)?)
    };
    reply(code, raise());
}

#[unsafe(no_mangle)]
extern "C" fn SET_MODULE_SCHEDULE(identifier: i64, code: Code<'_>) {
    reply(code, apex::set_module_schedule(identifier));
}

#[unsafe(no_mangle)]
extern "C" fn GET_MODULE_SCHEDULE_STATUS(to: Place<'_, ScheduleStatus>, code: Code<'_>) {
    give(to, code, || {
        let status = apex::get_module_schedule_status()?;
        Ok(ScheduleStatus {
            since: status.since,
            current: status.current,
            next: status.next,
        })
    });
}

#[unsafe(no_mangle)]
extern "C" fn GET_MODULE_SCHEDULE_ID(of: *const u8, to: Place<'_, i64>, code: Code<'_>) {
    give(to, code, || apex::get_module_schedule_id(&name(of)?));
}
