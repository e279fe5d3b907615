// SPDX-License-Identifier: Apache-2.0
//! `apexProcess.h`.
#![allow(non_snake_case, reason = "the standard writes services in capitals")]

use crate::memory::name;
use crate::{Code, Place, give, reply};
use bulkhead_apex::task::{self as apex, Entry};
use bulkhead_apex::{Attributes, Deadline, MAX_NAME_LENGTH, Name, ReturnCode, Time};

/// `PROCESS_ATTRIBUTE_TYPE`.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct ProcessAttribute {
    period: Time,
    time_capacity: Time,
    entry_point: Option<Entry>,
    stack_size: u32,
    base_priority: i32,
    deadline: u32,
    name: [u8; MAX_NAME_LENGTH],
}

/// `PROCESS_STATUS_TYPE`.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct ProcessStatus {
    deadline_time: Time,
    current_priority: i32,
    state: u32,
    attributes: ProcessAttribute,
}

#[unsafe(no_mangle)]
extern "C" fn CREATE_PROCESS(given: Option<&ProcessAttribute>, to: Place<'_, i64>, code: Code<'_>) {
    give(to, code, || {
        let given = given.ok_or(ReturnCode::InvalidParam)?;
        let entry = given.entry_point.ok_or(ReturnCode::InvalidParam)?;
        let attributes = Attributes {
            name: Name(given.name),
            entry_point: 0,
            stack_size: given.stack_size,
            base_priority: given.base_priority,
            period: given.period,
            time_capacity: given.time_capacity,
            deadline: match given.deadline {
                0 => Deadline::Soft,
                1 => Deadline::Hard,
                _ => return Err(ReturnCode::InvalidParam),
            },
        };
        apex::create_process(&attributes, entry)
    });
}

#[unsafe(no_mangle)]
extern "C" fn SET_PRIORITY(identifier: i64, priority: i32, code: Code<'_>) {
    reply(code, apex::set_priority(identifier, priority));
}

#[unsafe(no_mangle)]
extern "C" fn SUSPEND_SELF(time_out: Time, code: Code<'_>) {
    reply(code, apex::suspend_self(time_out));
}

#[unsafe(no_mangle)]
extern "C" fn SUSPEND(identifier: i64, code: Code<'_>) {
    reply(code, apex::suspend(identifier));
}

#[unsafe(no_mangle)]
extern "C" fn RESUME(identifier: i64, code: Code<'_>) {
    reply(code, apex::resume(identifier));
}

#[unsafe(no_mangle)]
extern "C" fn STOP_SELF() {
    apex::stop_self();
}

#[unsafe(no_mangle)]
extern "C" fn STOP(identifier: i64, code: Code<'_>) {
    reply(code, apex::stop(identifier));
}

#[unsafe(no_mangle)]
extern "C" fn START(identifier: i64, code: Code<'_>) {
    reply(code, apex::start(identifier));
}

#[unsafe(no_mangle)]
extern "C" fn DELAYED_START(identifier: i64, delay: Time, code: Code<'_>) {
    reply(code, apex::delayed_start(identifier, delay));
}

#[unsafe(no_mangle)]
extern "C" fn LOCK_PREEMPTION(to: Place<'_, i32>, code: Code<'_>) {
    give(to, code, apex::lock_preemption);
}

#[unsafe(no_mangle)]
extern "C" fn UNLOCK_PREEMPTION(to: Place<'_, i32>, code: Code<'_>) {
    give(to, code, apex::unlock_preemption);
}

#[unsafe(no_mangle)]
extern "C" fn GET_MY_ID(to: Place<'_, i64>, code: Code<'_>) {
    give(to, code, apex::get_my_id);
}

#[unsafe(no_mangle)]
extern "C" fn GET_PROCESS_ID(of: *const u8, to: Place<'_, i64>, code: Code<'_>) {
    give(to, code, || apex::get_process_id(&name(of)?));
}

#[unsafe(no_mangle)]
extern "C" fn GET_PROCESS_STATUS(identifier: i64, to: Place<'_, ProcessStatus>, code: Code<'_>) {
    give(to, code, || {
        let status = apex::get_process_status(identifier)?;
        let attributes = status.attributes;
        Ok(ProcessStatus {
            deadline_time: status.deadline_time,
            current_priority: status.current_priority,
            state: status.state as u32,
            attributes: ProcessAttribute {
                period: attributes.period,
                time_capacity: attributes.time_capacity,
                entry_point: apex::entry_of(identifier),
                stack_size: attributes.stack_size,
                base_priority: attributes.base_priority,
                deadline: attributes.deadline as u32,
                name: attributes.name.0,
            },
        })
    });
}
