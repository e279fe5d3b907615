// SPDX-License-Identifier: Apache-2.0
//! Semaphores, events and mutexes.

use crate::Bulkhead;
use crate::convert::{answer, discipline, name};
use a653rs::bindings::{
    ApexEventP1, ApexMutexP1, ApexSemaphoreP1, ApexSystemTime, ErrorReturnCode, EventId, EventName,
    EventState, EventStatus, MAIN_PROCESS_ID, MutexId, MutexName, MutexState, MutexStatus, NULL_PROCESS_ID,
    Priority, ProcessId, QueuingDiscipline, SemaphoreId, SemaphoreName, SemaphoreStatus, SemaphoreValue,
};
use bulkhead_apex::task as apex;

const _: () = assert!(MAIN_PROCESS_ID == bulkhead_apex::MAIN_PROCESS);

impl ApexSemaphoreP1 for Bulkhead {
    fn create_semaphore(
        semaphore_name: SemaphoreName,
        current_value: SemaphoreValue,
        maximum_value: SemaphoreValue,
        queuing_discipline: QueuingDiscipline,
    ) -> Result<SemaphoreId, ErrorReturnCode> {
        let order = discipline(queuing_discipline);
        answer(apex::create_semaphore(
            name(semaphore_name),
            current_value,
            maximum_value,
            order,
        ))
    }

    fn wait_semaphore(semaphore_id: SemaphoreId, time_out: ApexSystemTime) -> Result<(), ErrorReturnCode> {
        answer(apex::wait_semaphore(semaphore_id, time_out))
    }

    fn signal_semaphore(semaphore_id: SemaphoreId) -> Result<(), ErrorReturnCode> {
        answer(apex::signal_semaphore(semaphore_id))
    }

    fn get_semaphore_id(semaphore_name: SemaphoreName) -> Result<SemaphoreId, ErrorReturnCode> {
        answer(apex::get_semaphore_id(&name(semaphore_name)))
    }

    fn get_semaphore_status(semaphore_id: SemaphoreId) -> Result<SemaphoreStatus, ErrorReturnCode> {
        let status = answer(apex::get_semaphore_status(semaphore_id))?;
        Ok(SemaphoreStatus {
            current_value: status.current_value,
            maximum_value: status.maximum_value,
            waiting_processes: status.waiting_processes,
        })
    }
}

impl ApexEventP1 for Bulkhead {
    fn create_event(event_name: EventName) -> Result<EventId, ErrorReturnCode> {
        answer(apex::create_event(name(event_name)))
    }

    fn set_event(event_id: EventId) -> Result<(), ErrorReturnCode> {
        answer(apex::set_event(event_id))
    }

    fn reset_event(event_id: EventId) -> Result<(), ErrorReturnCode> {
        answer(apex::reset_event(event_id))
    }

    fn wait_event(event_id: EventId, time_out: ApexSystemTime) -> Result<(), ErrorReturnCode> {
        answer(apex::wait_event(event_id, time_out))
    }

    fn get_event_id(event_name: EventName) -> Result<EventId, ErrorReturnCode> {
        answer(apex::get_event_id(&name(event_name)))
    }

    fn get_event_status(event_id: EventId) -> Result<EventStatus, ErrorReturnCode> {
        let status = answer(apex::get_event_status(event_id))?;
        Ok(EventStatus {
            event_state: if status.is_up {
                EventState::Up
            } else {
                EventState::Down
            },
            waiting_processes: status.waiting_processes,
        })
    }
}

impl ApexMutexP1 for Bulkhead {
    fn create_mutex(
        mutex_name: MutexName,
        mutex_priority: Priority,
        queuing_discipline: QueuingDiscipline,
    ) -> Result<MutexId, ErrorReturnCode> {
        let order = discipline(queuing_discipline);
        answer(apex::create_mutex(name(mutex_name), mutex_priority, order))
    }

    fn acquire_mutex(mutex_id: MutexId, time_out: ApexSystemTime) -> Result<(), ErrorReturnCode> {
        answer(apex::acquire_mutex(mutex_id, time_out))
    }

    fn release_mutex(mutex_id: MutexId) -> Result<(), ErrorReturnCode> {
        answer(apex::release_mutex(mutex_id))
    }

    fn reset_mutex(mutex_id: MutexId, process_id: ProcessId) -> Result<(), ErrorReturnCode> {
        answer(apex::reset_mutex(mutex_id, process_id))
    }

    fn get_mutex_id(mutex_name: MutexName) -> Result<MutexId, ErrorReturnCode> {
        answer(apex::get_mutex_id(&name(mutex_name)))
    }

    fn get_mutex_status(mutex_id: MutexId) -> Result<MutexStatus, ErrorReturnCode> {
        let status = answer(apex::get_mutex_status(mutex_id))?;
        Ok(MutexStatus {
            mutex_owner: status.owner.unwrap_or(NULL_PROCESS_ID),
            mutex_state: match status.owner {
                Some(_) => MutexState::Owned,
                None => MutexState::Available,
            },
            mutex_priority: status.priority,
            lock_count: status.lock_count,
            waiting_processes: status.waiting_processes,
        })
    }

    fn get_process_mutex_state(process_id: ProcessId) -> Result<MutexId, ErrorReturnCode> {
        answer(apex::get_process_mutex_state(process_id))
    }
}
