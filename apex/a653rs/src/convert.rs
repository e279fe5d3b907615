// SPDX-License-Identifier: Apache-2.0
//! The types of `a653rs` and ours.

use a653rs::bindings::{ApexName, ErrorReturnCode, PortDirection, QueuingDiscipline};
use bulkhead_apex::{Answer, Name, ReturnCode};

/// Returns an answer with the other crate's error.
pub(crate) fn answer<T>(answer: Answer<T>) -> Result<T, ErrorReturnCode> {
    answer.map_err(|code| match code {
        ReturnCode::NoAction => ErrorReturnCode::NoAction,
        ReturnCode::NotAvailable => ErrorReturnCode::NotAvailable,
        ReturnCode::InvalidParam => ErrorReturnCode::InvalidParam,
        ReturnCode::InvalidConfig => ErrorReturnCode::InvalidConfig,
        ReturnCode::InvalidMode => ErrorReturnCode::InvalidMode,
        ReturnCode::TimedOut => ErrorReturnCode::TimedOut,
    })
}

/// Returns our name.
pub(crate) fn name(name: ApexName) -> Name {
    Name(name)
}

/// Returns our discipline.
pub(crate) fn discipline(discipline: QueuingDiscipline) -> bulkhead_apex::QueuingDiscipline {
    match discipline {
        QueuingDiscipline::Fifo => bulkhead_apex::QueuingDiscipline::Fifo,
        QueuingDiscipline::Priority => bulkhead_apex::QueuingDiscipline::Priority,
    }
}

/// Returns our direction.
pub(crate) fn direction(direction: PortDirection) -> bulkhead_apex::PortDirection {
    match direction {
        PortDirection::Source => bulkhead_apex::PortDirection::Source,
        PortDirection::Destination => bulkhead_apex::PortDirection::Destination,
    }
}

/// Returns the other crate's direction.
pub(crate) fn their_direction(direction: bulkhead_apex::PortDirection) -> PortDirection {
    match direction {
        bulkhead_apex::PortDirection::Source => PortDirection::Source,
        bulkhead_apex::PortDirection::Destination => PortDirection::Destination,
    }
}
