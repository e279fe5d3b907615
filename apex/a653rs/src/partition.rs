// SPDX-License-Identifier: Apache-2.0
//! The partition, time, health and schedules.

use crate::Bulkhead;
use crate::convert::{answer, name};
use a653rs::bindings::{
    ApexByte, ApexErrorP1, ApexErrorP4, ApexPartitionP4, ApexPartitionStatus, ApexScheduleP2,
    ApexScheduleStatus, ApexSystemTime, ApexTimeP1, ApexTimeP4, ErrorCode, ErrorHandlerConcurrencyControl,
    ErrorReturnCode, ErrorStatus, OperatingMode, ProcessorCoreId, ScheduleId, ScheduleName, StackSize,
    StartCondition, SystemAddress,
};
use bulkhead_apex::task as apex;
use bulkhead_apex::{ErrorCode as OurCode, OperatingMode as OurMode, StartCondition as OurCondition};

impl ApexPartitionP4 for Bulkhead {
    fn get_partition_status() -> ApexPartitionStatus {
        let status = apex::get_partition_status();
        ApexPartitionStatus {
            period: status.period,
            duration: status.duration,
            identifier: status.identifier,
            lock_level: status.lock_level,
            operating_mode: match status.operating_mode {
                OurMode::Idle => OperatingMode::Idle,
                OurMode::ColdStart => OperatingMode::ColdStart,
                OurMode::WarmStart => OperatingMode::WarmStart,
                OurMode::Normal => OperatingMode::Normal,
            },
            start_condition: match status.start_condition {
                OurCondition::NormalStart => StartCondition::NormalStart,
                OurCondition::PartitionRestart => StartCondition::PartitionRestart,
                OurCondition::HmModuleRestart => StartCondition::HmModuleRestart,
                OurCondition::HmPartitionRestart => StartCondition::HmPartitionRestart,
            },
            num_assigned_cores: 1,
        }
    }

    fn set_partition_mode(operating_mode: OperatingMode) -> Result<(), ErrorReturnCode> {
        answer(apex::set_partition_mode(match operating_mode {
            OperatingMode::Idle => OurMode::Idle,
            OperatingMode::ColdStart => OurMode::ColdStart,
            OperatingMode::WarmStart => OurMode::WarmStart,
            OperatingMode::Normal => OurMode::Normal,
        }))
    }
}

impl ApexTimeP4 for Bulkhead {
    fn periodic_wait() -> Result<(), ErrorReturnCode> {
        answer(apex::periodic_wait())
    }

    fn get_time() -> ApexSystemTime {
        apex::get_time()
    }
}

impl ApexTimeP1 for Bulkhead {
    fn timed_wait(delay_time: ApexSystemTime) -> Result<(), ErrorReturnCode> {
        answer(apex::timed_wait(delay_time))
    }

    fn replenish(budget_time: ApexSystemTime) -> Result<(), ErrorReturnCode> {
        answer(apex::replenish(budget_time))
    }
}

const fn our_code(code: ErrorCode) -> OurCode {
    match code {
        ErrorCode::DeadlineMissed => OurCode::DeadlineMissed,
        ErrorCode::ApplicationError => OurCode::ApplicationError,
        ErrorCode::NumericError => OurCode::NumericError,
        ErrorCode::IllegalRequest => OurCode::IllegalRequest,
        ErrorCode::StackOverflow => OurCode::StackOverflow,
        ErrorCode::MemoryViolation => OurCode::MemoryViolation,
        ErrorCode::HardwareFault => OurCode::HardwareFault,
        ErrorCode::PowerFail => OurCode::PowerFail,
    }
}

const fn their_code(code: OurCode) -> ErrorCode {
    match code {
        OurCode::DeadlineMissed => ErrorCode::DeadlineMissed,
        OurCode::ApplicationError => ErrorCode::ApplicationError,
        OurCode::NumericError => ErrorCode::NumericError,
        OurCode::IllegalRequest => ErrorCode::IllegalRequest,
        OurCode::StackOverflow => ErrorCode::StackOverflow,
        OurCode::MemoryViolation => ErrorCode::MemoryViolation,
        OurCode::HardwareFault => ErrorCode::HardwareFault,
        OurCode::PowerFail => ErrorCode::PowerFail,
    }
}

impl ApexErrorP4 for Bulkhead {
    fn report_application_message(message: &[ApexByte]) -> Result<(), ErrorReturnCode> {
        answer(apex::report_application_message(message))
    }

    fn raise_application_error(error_code: ErrorCode, message: &[ApexByte]) -> Result<(), ErrorReturnCode> {
        answer(apex::raise_application_error(our_code(error_code), message))
    }
}

/// Stands for the address of an error that has none.
extern "C" fn no_address() {}

impl ApexErrorP1 for Bulkhead {
    fn create_error_handler(
        entry_point: SystemAddress,
        stack_size: StackSize,
    ) -> Result<(), ErrorReturnCode> {
        answer(apex::create_error_handler(entry_point, stack_size))
    }

    fn get_error_status() -> Result<ErrorStatus, ErrorReturnCode> {
        let error = answer(apex::get_error_status())?;
        Ok(ErrorStatus {
            failed_address: apex::entry_of(error.process).unwrap_or(no_address),
            failed_process_id: error.process,
            error_code: their_code(error.code),
            length: error.length as i32,
            message: error.message,
        })
    }

    /// Accepts what is so anyway: the other processes of a partition with one core pause.
    fn configure_error_handler(
        concurrency_control: ErrorHandlerConcurrencyControl,
        _processor_core_id: ProcessorCoreId,
    ) -> Result<(), ErrorReturnCode> {
        match concurrency_control {
            ErrorHandlerConcurrencyControl::ProcessesPause => Ok(()),
            ErrorHandlerConcurrencyControl::ProcessesScheduled => Err(ErrorReturnCode::InvalidConfig),
        }
    }
}

impl ApexScheduleP2 for Bulkhead {
    fn set_module_schedule(schedule_id: ScheduleId) -> Result<(), ErrorReturnCode> {
        answer(apex::set_module_schedule(schedule_id))
    }

    fn get_module_schedule_status() -> Result<ApexScheduleStatus, ErrorReturnCode> {
        let status = answer(apex::get_module_schedule_status())?;
        Ok(ApexScheduleStatus {
            time_of_last_schedule_switch: status.since,
            current_schedule: status.current,
            next_schedule: status.next,
        })
    }

    fn get_module_schedule_id(schedule_name: ScheduleName) -> Result<ScheduleId, ErrorReturnCode> {
        answer(apex::get_module_schedule_id(&name(schedule_name)))
    }
}
