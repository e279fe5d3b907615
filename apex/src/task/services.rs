// SPDX-License-Identifier: Apache-2.0
//! The services, one function each. The errors are the same as for the method of [`Apex`](crate::Apex) with
//! the same name.

use super::{Entry, call, call_and_wait, change, now, with};
use crate::types::{Answer, Name, PortDirection, QueueSize, QueuingDiscipline, Time};
use crate::{
    Attributes, BlackboardStatus, BufferStatus, ErrorCode, ErrorStatus, EventStatus, MutexStatus,
    PartitionStatus, ProcessStatus, QueuingPortStatus, SamplingPortStatus, ScheduleStatus, SemaphoreStatus,
    Validity, Woken,
};
use core::sync::atomic::Ordering;

/// Copies a message that came after a wait.
fn take(woken: Woken<'_>, to: &mut [u8]) -> usize {
    let length = woken.message.len().min(to.len());
    to[..length].copy_from_slice(&woken.message[..length]);
    length
}

/// `GET_TIME`: nanoseconds since boot.
#[must_use]
pub fn get_time() -> Time {
    now()
}

/// `GET_PARTITION_STATUS`.
#[must_use]
pub fn get_partition_status() -> PartitionStatus {
    call(|state, _| state.apex.get_partition_status())
}

/// `CREATE_PROCESS`: the entry is the one of `entry`, not the one in the attributes.
///
/// # Errors
/// See the head of this file; `INVALID_CONFIG` also if there is no memory for the stack.
pub fn create_process(attributes: &Attributes, entry: Entry) -> Answer<i64> {
    call(|state, _| {
        let attributes = Attributes {
            entry_point: entry as *const () as usize,
            ..*attributes
        };
        let identifier = state.apex.create_process(&attributes)?;
        let place = state.apex.place(identifier)?;
        state.equip(place, entry, attributes.stack_size)?;
        Ok(identifier)
    })
}

/// `STOP_SELF`.
pub fn stop_self() {
    super::LOCKED.store(true, Ordering::Relaxed);
    with(|state| state.apex.stop_self());
    change();
}

/// `START`.
///
/// # Errors
/// See the head of this file.
pub fn start(identifier: i64) -> Answer {
    call(|state, now| state.apex.start(identifier, now))
}

/// `DELAYED_START`.
///
/// # Errors
/// See the head of this file.
pub fn delayed_start(identifier: i64, delay: Time) -> Answer {
    call(|state, now| state.apex.delayed_start(identifier, delay, now))
}

/// `STOP`.
///
/// # Errors
/// See the head of this file.
pub fn stop(identifier: i64) -> Answer {
    call(|state, _| state.apex.stop(identifier))
}

/// `SUSPEND`.
///
/// # Errors
/// See the head of this file.
pub fn suspend(identifier: i64) -> Answer {
    call(|state, _| state.apex.suspend(identifier))
}

/// `SUSPEND_SELF`.
///
/// # Errors
/// See the head of this file.
pub fn suspend_self(time_out: Time) -> Answer {
    call_and_wait(|state, now| state.apex.suspend_self(time_out, now), |_| ())
}

/// `RESUME`.
///
/// # Errors
/// See the head of this file.
pub fn resume(identifier: i64) -> Answer {
    call(|state, _| state.apex.resume(identifier))
}

/// `SET_PRIORITY`.
///
/// # Errors
/// See the head of this file.
pub fn set_priority(identifier: i64, priority: i32) -> Answer {
    call(|state, _| state.apex.set_priority(identifier, priority))
}

/// `LOCK_PREEMPTION`.
///
/// # Errors
/// See the head of this file.
pub fn lock_preemption() -> Answer<i32> {
    call(|state, _| state.apex.lock_preemption())
}

/// `UNLOCK_PREEMPTION`.
///
/// # Errors
/// See the head of this file.
pub fn unlock_preemption() -> Answer<i32> {
    call(|state, _| state.apex.unlock_preemption())
}

/// `GET_MY_ID`.
///
/// # Errors
/// See the head of this file.
pub fn get_my_id() -> Answer<i64> {
    call(|state, _| state.apex.get_my_id())
}

/// `GET_PROCESS_ID`.
///
/// # Errors
/// See the head of this file.
pub fn get_process_id(name: &Name) -> Answer<i64> {
    call(|state, _| state.apex.get_process_id(name))
}

/// `GET_PROCESS_STATUS`.
///
/// # Errors
/// See the head of this file.
pub fn get_process_status(identifier: i64) -> Answer<ProcessStatus> {
    call(|state, _| state.apex.get_process_status(identifier))
}

/// `TIMED_WAIT`.
///
/// # Errors
/// See the head of this file.
pub fn timed_wait(delay: Time) -> Answer {
    call_and_wait(|state, now| state.apex.timed_wait(delay, now), |_| ())
}

/// `PERIODIC_WAIT`.
///
/// # Errors
/// See the head of this file.
pub fn periodic_wait() -> Answer {
    call_and_wait(|state, now| state.apex.periodic_wait(now), |_| ())
}

/// `REPLENISH`.
///
/// # Errors
/// See the head of this file.
pub fn replenish(budget: Time) -> Answer {
    call(|state, now| state.apex.replenish(budget, now))
}

/// `CREATE_BUFFER`.
///
/// # Errors
/// See the head of this file.
pub fn create_buffer(name: Name, size: u32, maximum: u32, discipline: QueuingDiscipline) -> Answer<i64> {
    call(|state, _| state.apex.create_buffer(name, size, maximum, discipline))
}

/// `SEND_BUFFER`.
///
/// # Errors
/// See the head of this file.
pub fn send_buffer(identifier: i64, message: &[u8], time_out: Time) -> Answer {
    call_and_wait(
        |state, now| state.apex.send_buffer(identifier, message, time_out, now),
        |_| (),
    )
}

/// `RECEIVE_BUFFER`.
///
/// # Errors
/// See the head of this file.
pub fn receive_buffer(identifier: i64, to: &mut [u8], time_out: Time) -> Answer<usize> {
    let buffer = core::cell::RefCell::new(to);
    call_and_wait(
        |state, now| {
            state
                .apex
                .receive_buffer(identifier, &mut buffer.borrow_mut(), time_out, now)
        },
        |woken| take(woken, &mut buffer.borrow_mut()),
    )
}

/// `GET_BUFFER_ID`.
///
/// # Errors
/// See the head of this file.
pub fn get_buffer_id(name: &Name) -> Answer<i64> {
    call(|state, _| state.apex.get_buffer_id(name))
}

/// `GET_BUFFER_STATUS`.
///
/// # Errors
/// See the head of this file.
pub fn get_buffer_status(identifier: i64) -> Answer<BufferStatus> {
    call(|state, _| state.apex.get_buffer_status(identifier))
}

/// `CREATE_BLACKBOARD`.
///
/// # Errors
/// See the head of this file.
pub fn create_blackboard(name: Name, size: u32) -> Answer<i64> {
    call(|state, _| state.apex.create_blackboard(name, size))
}

/// `DISPLAY_BLACKBOARD`.
///
/// # Errors
/// See the head of this file.
pub fn display_blackboard(identifier: i64, message: &[u8]) -> Answer {
    call(|state, _| state.apex.display_blackboard(identifier, message))
}

/// `READ_BLACKBOARD`.
///
/// # Errors
/// See the head of this file.
pub fn read_blackboard(identifier: i64, to: &mut [u8], time_out: Time) -> Answer<usize> {
    let buffer = core::cell::RefCell::new(to);
    call_and_wait(
        |state, now| {
            state
                .apex
                .read_blackboard(identifier, &mut buffer.borrow_mut(), time_out, now)
        },
        |woken| take(woken, &mut buffer.borrow_mut()),
    )
}

/// `CLEAR_BLACKBOARD`.
///
/// # Errors
/// See the head of this file.
pub fn clear_blackboard(identifier: i64) -> Answer {
    call(|state, _| state.apex.clear_blackboard(identifier))
}

/// `GET_BLACKBOARD_ID`.
///
/// # Errors
/// See the head of this file.
pub fn get_blackboard_id(name: &Name) -> Answer<i64> {
    call(|state, _| state.apex.get_blackboard_id(name))
}

/// `GET_BLACKBOARD_STATUS`.
///
/// # Errors
/// See the head of this file.
pub fn get_blackboard_status(identifier: i64) -> Answer<BlackboardStatus> {
    call(|state, _| state.apex.get_blackboard_status(identifier))
}

/// `CREATE_SEMAPHORE`.
///
/// # Errors
/// See the head of this file.
pub fn create_semaphore(name: Name, value: i32, maximum: i32, discipline: QueuingDiscipline) -> Answer<i64> {
    call(|state, _| state.apex.create_semaphore(name, value, maximum, discipline))
}

/// `WAIT_SEMAPHORE`.
///
/// # Errors
/// See the head of this file.
pub fn wait_semaphore(identifier: i64, time_out: Time) -> Answer {
    call_and_wait(
        |state, now| state.apex.wait_semaphore(identifier, time_out, now),
        |_| (),
    )
}

/// `SIGNAL_SEMAPHORE`.
///
/// # Errors
/// See the head of this file.
pub fn signal_semaphore(identifier: i64) -> Answer {
    call(|state, _| state.apex.signal_semaphore(identifier))
}

/// `GET_SEMAPHORE_ID`.
///
/// # Errors
/// See the head of this file.
pub fn get_semaphore_id(name: &Name) -> Answer<i64> {
    call(|state, _| state.apex.get_semaphore_id(name))
}

/// `GET_SEMAPHORE_STATUS`.
///
/// # Errors
/// See the head of this file.
pub fn get_semaphore_status(identifier: i64) -> Answer<SemaphoreStatus> {
    call(|state, _| state.apex.get_semaphore_status(identifier))
}

/// `CREATE_EVENT`.
///
/// # Errors
/// See the head of this file.
pub fn create_event(name: Name) -> Answer<i64> {
    call(|state, _| state.apex.create_event(name))
}

/// `SET_EVENT`.
///
/// # Errors
/// See the head of this file.
pub fn set_event(identifier: i64) -> Answer {
    call(|state, _| state.apex.set_event(identifier))
}

/// `RESET_EVENT`.
///
/// # Errors
/// See the head of this file.
pub fn reset_event(identifier: i64) -> Answer {
    call(|state, _| state.apex.reset_event(identifier))
}

/// `WAIT_EVENT`.
///
/// # Errors
/// See the head of this file.
pub fn wait_event(identifier: i64, time_out: Time) -> Answer {
    call_and_wait(
        |state, now| state.apex.wait_event(identifier, time_out, now),
        |_| (),
    )
}

/// `GET_EVENT_ID`.
///
/// # Errors
/// See the head of this file.
pub fn get_event_id(name: &Name) -> Answer<i64> {
    call(|state, _| state.apex.get_event_id(name))
}

/// `GET_EVENT_STATUS`.
///
/// # Errors
/// See the head of this file.
pub fn get_event_status(identifier: i64) -> Answer<EventStatus> {
    call(|state, _| state.apex.get_event_status(identifier))
}

/// `CREATE_MUTEX`.
///
/// # Errors
/// See the head of this file.
pub fn create_mutex(name: Name, priority: i32, discipline: QueuingDiscipline) -> Answer<i64> {
    call(|state, _| state.apex.create_mutex(name, priority, discipline))
}

/// `ACQUIRE_MUTEX`.
///
/// # Errors
/// See the head of this file.
pub fn acquire_mutex(identifier: i64, time_out: Time) -> Answer {
    call_and_wait(
        |state, now| state.apex.acquire_mutex(identifier, time_out, now),
        |_| (),
    )
}

/// `RELEASE_MUTEX`.
///
/// # Errors
/// See the head of this file.
pub fn release_mutex(identifier: i64) -> Answer {
    call(|state, _| state.apex.release_mutex(identifier))
}

/// `RESET_MUTEX`.
///
/// # Errors
/// See the head of this file.
pub fn reset_mutex(identifier: i64, process: i64) -> Answer {
    call(|state, _| state.apex.reset_mutex(identifier, process))
}

/// `GET_MUTEX_ID`.
///
/// # Errors
/// See the head of this file.
pub fn get_mutex_id(name: &Name) -> Answer<i64> {
    call(|state, _| state.apex.get_mutex_id(name))
}

/// `GET_MUTEX_STATUS`.
///
/// # Errors
/// See the head of this file.
pub fn get_mutex_status(identifier: i64) -> Answer<MutexStatus> {
    call(|state, _| state.apex.get_mutex_status(identifier))
}

/// `GET_PROCESS_MUTEX_STATE`.
///
/// # Errors
/// See the head of this file.
pub fn get_process_mutex_state(process: i64) -> Answer<i64> {
    call(|state, _| state.apex.get_process_mutex_state(process))
}

/// `CREATE_SAMPLING_PORT`.
///
/// # Errors
/// See the head of this file.
pub fn create_sampling_port(name: Name, size: u32, direction: PortDirection, refresh: Time) -> Answer<i64> {
    call(|state, _| {
        state
            .apex
            .create_sampling_port(&mut state.world, name, size, direction, refresh)
    })
}

/// `WRITE_SAMPLING_MESSAGE`.
///
/// # Errors
/// See the head of this file.
pub fn write_sampling_message(identifier: i64, message: &[u8]) -> Answer {
    call(|state, now| {
        state
            .apex
            .write_sampling_message(&mut state.world, identifier, message, now)
    })
}

/// `READ_SAMPLING_MESSAGE`.
///
/// # Errors
/// See the head of this file.
pub fn read_sampling_message(identifier: i64, to: &mut [u8]) -> Answer<(Validity, usize)> {
    call(|state, now| {
        state
            .apex
            .read_sampling_message(&mut state.world, identifier, to, now)
    })
}

/// `GET_SAMPLING_PORT_ID`.
///
/// # Errors
/// See the head of this file.
pub fn get_sampling_port_id(name: &Name) -> Answer<i64> {
    call(|state, _| state.apex.get_sampling_port_id(name))
}

/// `GET_SAMPLING_PORT_STATUS`.
///
/// # Errors
/// See the head of this file.
pub fn get_sampling_port_status(identifier: i64) -> Answer<SamplingPortStatus> {
    call(|state, _| state.apex.get_sampling_port_status(identifier))
}

/// `CREATE_QUEUING_PORT`.
///
/// # Errors
/// See the head of this file.
pub fn create_queuing_port(
    name: Name,
    size: QueueSize,
    direction: PortDirection,
    discipline: QueuingDiscipline,
) -> Answer<i64> {
    call(|state, _| {
        state
            .apex
            .create_queuing_port(&mut state.world, name, size, direction, discipline)
    })
}

/// `SEND_QUEUING_MESSAGE`.
///
/// # Errors
/// See the head of this file.
pub fn send_queuing_message(identifier: i64, message: &[u8], time_out: Time) -> Answer {
    call_and_wait(
        |state, now| {
            state
                .apex
                .send_queuing_message(&mut state.world, identifier, message, time_out, now)
        },
        |_| (),
    )
}

/// `RECEIVE_QUEUING_MESSAGE`.
///
/// # Errors
/// See the head of this file.
pub fn receive_queuing_message(identifier: i64, to: &mut [u8], time_out: Time) -> Answer<usize> {
    let buffer = core::cell::RefCell::new(to);
    call_and_wait(
        |state, now| {
            state.apex.receive_queuing_message(
                &mut state.world,
                identifier,
                &mut buffer.borrow_mut(),
                time_out,
                now,
            )
        },
        |woken| take(woken, &mut buffer.borrow_mut()),
    )
}

/// `CLEAR_QUEUING_PORT`.
///
/// # Errors
/// See the head of this file.
pub fn clear_queuing_port(identifier: i64) -> Answer {
    call(|state, _| state.apex.clear_queuing_port(&mut state.world, identifier))
}

/// `GET_QUEUING_PORT_ID`.
///
/// # Errors
/// See the head of this file.
pub fn get_queuing_port_id(name: &Name) -> Answer<i64> {
    call(|state, _| state.apex.get_queuing_port_id(name))
}

/// `GET_QUEUING_PORT_STATUS`.
///
/// # Errors
/// See the head of this file.
pub fn get_queuing_port_status(identifier: i64) -> Answer<QueuingPortStatus> {
    call(|state, _| state.apex.get_queuing_port_status(&mut state.world, identifier))
}

/// `GET_ERROR_STATUS`.
///
/// # Errors
/// See the head of this file.
pub fn get_error_status() -> Answer<ErrorStatus> {
    call(|state, _| state.apex.get_error_status())
}

/// `RAISE_APPLICATION_ERROR`.
///
/// # Errors
/// See the head of this file.
pub fn raise_application_error(code: ErrorCode, message: &[u8]) -> Answer {
    call(|state, _| state.apex.raise_application_error(code, message))
}

/// `REPORT_APPLICATION_MESSAGE`.
///
/// # Errors
/// See the head of this file.
pub fn report_application_message(message: &[u8]) -> Answer {
    call(|state, _| state.apex.report_application_message(&mut state.world, message))
}

/// `SET_MODULE_SCHEDULE`.
///
/// # Errors
/// See the head of this file.
pub fn set_module_schedule(identifier: i64) -> Answer {
    call(|state, _| state.apex.set_module_schedule(&mut state.world, identifier))
}

/// `GET_MODULE_SCHEDULE_STATUS`.
///
/// # Errors
/// See the head of this file.
pub fn get_module_schedule_status() -> Answer<ScheduleStatus> {
    call(|state, _| state.apex.get_module_schedule_status(&mut state.world))
}

/// `GET_MODULE_SCHEDULE_ID`.
///
/// # Errors
/// See the head of this file.
pub fn get_module_schedule_id(name: &Name) -> Answer<i64> {
    call(|state, _| state.apex.get_module_schedule_id(name))
}
