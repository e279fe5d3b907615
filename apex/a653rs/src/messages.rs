// SPDX-License-Identifier: Apache-2.0
//! Buffers, blackboards and ports. The functions that `a653rs` calls unsafe are safe here: a message that is
//! longer than the caller's memory is cut.

use crate::Bulkhead;
use crate::convert::{answer, direction, discipline, name, their_direction};
use a653rs::bindings::{
    ApexBlackboardP1, ApexBufferP1, ApexByte, ApexQueuingPortP1, ApexQueuingPortP4, ApexSamplingPortP1,
    ApexSamplingPortP4, ApexSamplingPortStatus, ApexSystemTime, BlackboardId, BlackboardName,
    BlackboardStatus, BufferId, BufferName, BufferStatus, EmptyIndicator, ErrorReturnCode, MessageRange,
    MessageSize, PortDirection, QueueOverflow, QueuingDiscipline, QueuingPortId, QueuingPortName,
    QueuingPortStatus, SamplingPortId, SamplingPortName, Validity,
};
use bulkhead_apex::task as apex;
use bulkhead_apex::{QueueSize, Validity as OurValidity};

impl ApexBufferP1 for Bulkhead {
    fn create_buffer(
        buffer_name: BufferName,
        max_message_size: MessageSize,
        max_nb_message: MessageRange,
        queuing_discipline: QueuingDiscipline,
    ) -> Result<BufferId, ErrorReturnCode> {
        let order = discipline(queuing_discipline);
        answer(apex::create_buffer(
            name(buffer_name),
            max_message_size,
            max_nb_message,
            order,
        ))
    }

    fn send_buffer(
        buffer_id: BufferId,
        message: &[ApexByte],
        time_out: ApexSystemTime,
    ) -> Result<(), ErrorReturnCode> {
        answer(apex::send_buffer(buffer_id, message, time_out))
    }

    unsafe fn receive_buffer(
        buffer_id: BufferId,
        time_out: ApexSystemTime,
        message: &mut [ApexByte],
    ) -> Result<MessageSize, ErrorReturnCode> {
        answer(apex::receive_buffer(buffer_id, message, time_out)).map(|length| length as MessageSize)
    }

    fn get_buffer_id(buffer_name: BufferName) -> Result<BufferId, ErrorReturnCode> {
        answer(apex::get_buffer_id(&name(buffer_name)))
    }

    fn get_buffer_status(buffer_id: BufferId) -> Result<BufferStatus, ErrorReturnCode> {
        let status = answer(apex::get_buffer_status(buffer_id))?;
        Ok(BufferStatus {
            nb_message: status.messages,
            max_nb_message: status.maximum,
            max_message_size: status.size,
            waiting_processes: status.waiting_processes,
        })
    }
}

impl ApexBlackboardP1 for Bulkhead {
    fn create_blackboard(
        blackboard_name: BlackboardName,
        max_message_size: MessageSize,
    ) -> Result<BlackboardId, ErrorReturnCode> {
        answer(apex::create_blackboard(name(blackboard_name), max_message_size))
    }

    fn display_blackboard(blackboard_id: BlackboardId, message: &[ApexByte]) -> Result<(), ErrorReturnCode> {
        answer(apex::display_blackboard(blackboard_id, message))
    }

    unsafe fn read_blackboard(
        blackboard_id: BlackboardId,
        time_out: ApexSystemTime,
        message: &mut [ApexByte],
    ) -> Result<MessageSize, ErrorReturnCode> {
        answer(apex::read_blackboard(blackboard_id, message, time_out)).map(|length| length as MessageSize)
    }

    fn clear_blackboard(blackboard_id: BlackboardId) -> Result<(), ErrorReturnCode> {
        answer(apex::clear_blackboard(blackboard_id))
    }

    fn get_blackboard_id(blackboard_name: BlackboardName) -> Result<BlackboardId, ErrorReturnCode> {
        answer(apex::get_blackboard_id(&name(blackboard_name)))
    }

    fn get_blackboard_status(blackboard_id: BlackboardId) -> Result<BlackboardStatus, ErrorReturnCode> {
        let status = answer(apex::get_blackboard_status(blackboard_id))?;
        Ok(BlackboardStatus {
            empty_indicator: if status.is_occupied {
                EmptyIndicator::Occupied
            } else {
                EmptyIndicator::Empty
            },
            max_message_size: status.size,
            waiting_processes: status.waiting_processes,
        })
    }
}

const fn validity(validity: OurValidity) -> Validity {
    match validity {
        OurValidity::Invalid => Validity::Invalid,
        OurValidity::Valid => Validity::Valid,
    }
}

impl ApexSamplingPortP4 for Bulkhead {
    fn create_sampling_port(
        sampling_port_name: SamplingPortName,
        max_message_size: MessageSize,
        port_direction: PortDirection,
        refresh_period: ApexSystemTime,
    ) -> Result<SamplingPortId, ErrorReturnCode> {
        answer(apex::create_sampling_port(
            name(sampling_port_name),
            max_message_size,
            direction(port_direction),
            refresh_period,
        ))
    }

    fn write_sampling_message(
        sampling_port_id: SamplingPortId,
        message: &[ApexByte],
    ) -> Result<(), ErrorReturnCode> {
        answer(apex::write_sampling_message(sampling_port_id, message))
    }

    unsafe fn read_sampling_message(
        sampling_port_id: SamplingPortId,
        message: &mut [ApexByte],
    ) -> Result<(Validity, MessageSize), ErrorReturnCode> {
        let (age, length) = answer(apex::read_sampling_message(sampling_port_id, message))?;
        Ok((validity(age), length as MessageSize))
    }
}

impl ApexSamplingPortP1 for Bulkhead {
    fn get_sampling_port_id(sampling_port_name: SamplingPortName) -> Result<SamplingPortId, ErrorReturnCode> {
        answer(apex::get_sampling_port_id(&name(sampling_port_name)))
    }

    fn get_sampling_port_status(
        sampling_port_id: SamplingPortId,
    ) -> Result<ApexSamplingPortStatus, ErrorReturnCode> {
        let status = answer(apex::get_sampling_port_status(sampling_port_id))?;
        Ok(ApexSamplingPortStatus {
            refresh_period: status.refresh_period,
            max_message_size: status.size,
            port_direction: their_direction(status.direction),
            last_msg_validity: validity(status.last_validity),
        })
    }
}

impl ApexQueuingPortP4 for Bulkhead {
    fn create_queuing_port(
        queuing_port_name: QueuingPortName,
        max_message_size: MessageSize,
        max_nb_message: MessageRange,
        port_direction: PortDirection,
        queuing_discipline: QueuingDiscipline,
    ) -> Result<QueuingPortId, ErrorReturnCode> {
        answer(apex::create_queuing_port(
            name(queuing_port_name),
            QueueSize {
                message: max_message_size,
                messages: max_nb_message,
            },
            direction(port_direction),
            discipline(queuing_discipline),
        ))
    }

    fn send_queuing_message(
        queuing_port_id: QueuingPortId,
        message: &[ApexByte],
        time_out: ApexSystemTime,
    ) -> Result<(), ErrorReturnCode> {
        answer(apex::send_queuing_message(queuing_port_id, message, time_out))
    }

    unsafe fn receive_queuing_message(
        queuing_port_id: QueuingPortId,
        time_out: ApexSystemTime,
        message: &mut [ApexByte],
    ) -> Result<(MessageSize, QueueOverflow), ErrorReturnCode> {
        let length = answer(apex::receive_queuing_message(queuing_port_id, message, time_out))?;
        Ok((length as MessageSize, false))
    }

    fn get_queuing_port_status(queuing_port_id: QueuingPortId) -> Result<QueuingPortStatus, ErrorReturnCode> {
        let status = answer(apex::get_queuing_port_status(queuing_port_id))?;
        Ok(QueuingPortStatus {
            nb_message: status.messages,
            max_nb_message: status.maximum,
            max_message_size: status.size,
            port_direction: their_direction(status.direction),
            waiting_processes: status.waiting_processes,
        })
    }

    fn clear_queuing_port(queuing_port_id: QueuingPortId) -> Result<(), ErrorReturnCode> {
        answer(apex::clear_queuing_port(queuing_port_id))
    }
}

impl ApexQueuingPortP1 for Bulkhead {
    fn get_queuing_port_id(queuing_port_name: QueuingPortName) -> Result<QueuingPortId, ErrorReturnCode> {
        answer(apex::get_queuing_port_id(&name(queuing_port_name)))
    }
}
