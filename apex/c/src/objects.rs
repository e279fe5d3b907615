// SPDX-License-Identifier: Apache-2.0
//! `apexSemaphore.h`, `apexEvent.h` and `apexMutex.h`.
#![allow(non_snake_case, reason = "the standard writes services in capitals")]

use crate::memory::name;
use crate::{Code, Place, discipline, give, reply};
use bulkhead_apex::Time;
use bulkhead_apex::task as apex;

/// `NULL_PROCESS_ID`: no process owns a mutex.
const NULL_PROCESS_ID: i64 = 0;

/// `SEMAPHORE_STATUS_TYPE`.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct SemaphoreStatus {
    current_value: i32,
    maximum_value: i32,
    waiting_processes: i32,
}

/// `EVENT_STATUS_TYPE`.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct EventStatus {
    state: u32,
    waiting_processes: i32,
}

/// `MUTEX_STATUS_TYPE`.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct MutexStatus {
    owner: i64,
    state: u32,
    priority: i32,
    lock_count: i32,
    waiting_processes: i32,
}

#[unsafe(no_mangle)]
extern "C" fn CREATE_SEMAPHORE(
    of: *const u8,
    value: i32,
    maximum: i32,
    order: u32,
    to: Place<'_, i64>,
    code: Code<'_>,
) {
    give(to, code, || {
        apex::create_semaphore(name(of)?, value, maximum, discipline(order)?)
    });
}

#[unsafe(no_mangle)]
extern "C" fn WAIT_SEMAPHORE(identifier: i64, time_out: Time, code: Code<'_>) {
    reply(code, apex::wait_semaphore(identifier, time_out));
}

#[unsafe(no_mangle)]
extern "C" fn SIGNAL_SEMAPHORE(identifier: i64, code: Code<'_>) {
    reply(code, apex::signal_semaphore(identifier));
}

#[unsafe(no_mangle)]
extern "C" fn GET_SEMAPHORE_ID(of: *const u8, to: Place<'_, i64>, code: Code<'_>) {
    give(to, code, || apex::get_semaphore_id(&name(of)?));
}

#[unsafe(no_mangle)]
extern "C" fn GET_SEMAPHORE_STATUS(identifier: i64, to: Place<'_, SemaphoreStatus>, code: Code<'_>) {
    give(to, code, || {
        let status = apex::get_semaphore_status(identifier)?;
        Ok(SemaphoreStatus {
            current_value: status.current_value,
            maximum_value: status.maximum_value,
            waiting_processes: status.waiting_processes,
        })
    });
}

#[unsafe(no_mangle)]
extern "C" fn CREATE_EVENT(of: *const u8, to: Place<'_, i64>, code: Code<'_>) {
    give(to, code, || apex::create_event(name(of)?));
}

#[unsafe(no_mangle)]
extern "C" fn SET_EVENT(identifier: i64, code: Code<'_>) {
    reply(code, apex::set_event(identifier));
}

#[unsafe(no_mangle)]
extern "C" fn RESET_EVENT(identifier: i64, code: Code<'_>) {
    reply(code, apex::reset_event(identifier));
}

#[unsafe(no_mangle)]
extern "C" fn WAIT_EVENT(identifier: i64, time_out: Time, code: Code<'_>) {
    reply(code, apex::wait_event(identifier, time_out));
}

#[unsafe(no_mangle)]
extern "C" fn GET_EVENT_ID(of: *const u8, to: Place<'_, i64>, code: Code<'_>) {
    give(to, code, || apex::get_event_id(&name(of)?));
}

#[unsafe(no_mangle)]
extern "C" fn GET_EVENT_STATUS(identifier: i64, to: Place<'_, EventStatus>, code: Code<'_>) {
    give(to, code, || {
        let status = apex::get_event_status(identifier)?;
        Ok(EventStatus {
            state: status.is_up.into(),
            waiting_processes: status.waiting_processes,
        })
    });
}

#[unsafe(no_mangle)]
extern "C" fn CREATE_MUTEX(of: *const u8, priority: i32, order: u32, to: Place<'_, i64>, code: Code<'_>) {
    give(to, code, || {
        apex::create_mutex(name(of)?, priority, discipline(order)?)
    });
}

#[unsafe(no_mangle)]
extern "C" fn ACQUIRE_MUTEX(identifier: i64, time_out: Time, code: Code<'_>) {
    reply(code, apex::acquire_mutex(identifier, time_out));
}

#[unsafe(no_mangle)]
extern "C" fn RELEASE_MUTEX(identifier: i64, code: Code<'_>) {
    reply(code, apex::release_mutex(identifier));
}

#[unsafe(no_mangle)]
extern "C" fn RESET_MUTEX(identifier: i64, process: i64, code: Code<'_>) {
    reply(code, apex::reset_mutex(identifier, process));
}

#[unsafe(no_mangle)]
extern "C" fn GET_MUTEX_ID(of: *const u8, to: Place<'_, i64>, code: Code<'_>) {
    give(to, code, || apex::get_mutex_id(&name(of)?));
}

#[unsafe(no_mangle)]
extern "C" fn GET_MUTEX_STATUS(identifier: i64, to: Place<'_, MutexStatus>, code: Code<'_>) {
    give(to, code, || {
        let status = apex::get_mutex_status(identifier)?;
        Ok(MutexStatus {
            owner: status.owner.unwrap_or(NULL_PROCESS_ID),
            state: status.owner.is_some().into(),
            priority: status.priority,
            lock_count: status.lock_count,
            waiting_processes: status.waiting_processes,
        })
    });
}

#[unsafe(no_mangle)]
extern "C" fn GET_PROCESS_MUTEX_STATE(process: i64, to: Place<'_, i64>, code: Code<'_>) {
    give(to, code, || apex::get_process_mutex_state(process));
}
