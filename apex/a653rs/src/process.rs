// SPDX-License-Identifier: Apache-2.0
//! Processes.

use crate::Bulkhead;
use crate::convert::{answer, name};
use a653rs::bindings::{
    ApexProcessAttribute, ApexProcessP1, ApexProcessP4, ApexProcessStatus, ApexSystemTime,
    CORE_AFFINITY_NO_PREFERENCE, Deadline, ErrorReturnCode, LockLevel, Priority, ProcessId, ProcessIndex,
    ProcessName, ProcessState, ProcessorCoreId,
};
use bulkhead_apex::task as apex;
use bulkhead_apex::{Attributes, Deadline as OurDeadline, ProcessState as OurState};

impl ApexProcessP4 for Bulkhead {
    fn create_process(attributes: &ApexProcessAttribute) -> Result<ProcessId, ErrorReturnCode> {
        let ours = Attributes {
            name: name(attributes.name),
            entry_point: 0,
            stack_size: attributes.stack_size,
            base_priority: attributes.base_priority,
            period: attributes.period,
            time_capacity: attributes.time_capacity,
            deadline: match attributes.deadline {
                Deadline::Soft => OurDeadline::Soft,
                Deadline::Hard => OurDeadline::Hard,
            },
        };
        answer(apex::create_process(&ours, attributes.entry_point))
    }

    fn start(process_id: ProcessId) -> Result<(), ErrorReturnCode> {
        answer(apex::start(process_id))
    }
}

impl ApexProcessP1 for Bulkhead {
    fn set_priority(process_id: ProcessId, priority: Priority) -> Result<(), ErrorReturnCode> {
        answer(apex::set_priority(process_id, priority))
    }

    fn suspend_self(time_out: ApexSystemTime) -> Result<(), ErrorReturnCode> {
        answer(apex::suspend_self(time_out))
    }

    fn suspend(process_id: ProcessId) -> Result<(), ErrorReturnCode> {
        answer(apex::suspend(process_id))
    }

    fn resume(process_id: ProcessId) -> Result<(), ErrorReturnCode> {
        answer(apex::resume(process_id))
    }

    fn stop_self() {
        apex::stop_self();
    }

    fn stop(process_id: ProcessId) -> Result<(), ErrorReturnCode> {
        answer(apex::stop(process_id))
    }

    fn delayed_start(process_id: ProcessId, delay_time: ApexSystemTime) -> Result<(), ErrorReturnCode> {
        answer(apex::delayed_start(process_id, delay_time))
    }

    fn lock_preemption() -> Result<LockLevel, ErrorReturnCode> {
        answer(apex::lock_preemption())
    }

    fn unlock_preemption() -> Result<LockLevel, ErrorReturnCode> {
        answer(apex::unlock_preemption())
    }

    fn get_my_id() -> Result<ProcessId, ErrorReturnCode> {
        answer(apex::get_my_id())
    }

    fn get_process_id(process_name: ProcessName) -> Result<ProcessId, ErrorReturnCode> {
        answer(apex::get_process_id(&name(process_name)))
    }

    fn get_process_status(process_id: ProcessId) -> Result<ApexProcessStatus, ErrorReturnCode> {
        let status = answer(apex::get_process_status(process_id))?;
        let attributes = status.attributes;
        let entry_point = apex::entry_of(process_id).ok_or(ErrorReturnCode::InvalidParam)?;
        Ok(ApexProcessStatus {
            deadline_time: status.deadline_time,
            current_priority: status.current_priority,
            process_state: match status.state {
                OurState::Dormant => ProcessState::Dormant,
                OurState::Ready => ProcessState::Ready,
                OurState::Running => ProcessState::Running,
                OurState::Waiting => ProcessState::Waiting,
                OurState::Faulted => ProcessState::Faulted,
            },
            attributes: ApexProcessAttribute {
                period: attributes.period,
                time_capacity: attributes.time_capacity,
                entry_point,
                stack_size: attributes.stack_size,
                base_priority: attributes.base_priority,
                deadline: match attributes.deadline {
                    OurDeadline::Soft => Deadline::Soft,
                    OurDeadline::Hard => Deadline::Hard,
                },
                name: attributes.name.0,
            },
        })
    }

    /// Accepts the one core that there is.
    fn initialize_process_core_affinity(
        process_id: ProcessId,
        processor_core_id: ProcessorCoreId,
    ) -> Result<(), ErrorReturnCode> {
        answer(apex::get_process_status(process_id))?;
        if processor_core_id == 0 || processor_core_id == CORE_AFFINITY_NO_PREFERENCE {
            Ok(())
        } else {
            Err(ErrorReturnCode::InvalidConfig)
        }
    }

    fn get_my_processor_core_id() -> ProcessorCoreId {
        0
    }

    fn get_my_index() -> Result<ProcessIndex, ErrorReturnCode> {
        answer(apex::get_my_id()).map(|identifier| identifier as ProcessIndex - 1)
    }
}
