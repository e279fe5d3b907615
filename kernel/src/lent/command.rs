// SPDX-License-Identifier: Apache-2.0
//! The commands about what is lent, and the checks of their arguments.

use crate::cap::{Spaces, named};
use crate::port_id::PortId;
use bulkhead_abi::hypercall::LentOperation;
use bulkhead_abi::{Error, ObjectKind, Rights};
use bulkhead_arch_api::PartitionId;
use spin::RelaxStrategy;

/// A command about something that is lent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LentCommand {
    /// Map the caller's side, with the rights of the capability at this index. Without an index, unmap it.
    Hold(Option<u8>),
    /// Take a step with the line of the device, by the capability at this index.
    Line(u8, LineStep),
}

/// A step with a line that is lent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineStep {
    /// Let its interrupts be messages at this port, by the capability for the port in this slot.
    Bind(PortId, u8),
    /// Let it interrupt again.
    Done,
    /// Let it interrupt no more.
    Unbind,
}

/// Checks a hypercall about something that is lent. The look-up has found the slot, so the index is small.
pub(crate) fn decode<R: RelaxStrategy>(
    operation: LentOperation,
    index: u64,
    port: u64,
    caller: PartitionId,
    spaces: &Spaces<R>,
) -> Result<LentCommand, Error> {
    let index = index as u8;
    Ok(match operation {
        LentOperation::ChannelHold | LentOperation::DeviceHold => LentCommand::Hold(Some(index)),
        LentOperation::ChannelRelease | LentOperation::DeviceRelease => LentCommand::Hold(None),
        LentOperation::InterruptBind => {
            let found = PortId(named(spaces, caller, port, ObjectKind::Port, Rights::READ)?);
            LentCommand::Line(index, LineStep::Bind(found, port as u8))
        }
        LentOperation::InterruptDone => LentCommand::Line(index, LineStep::Done),
        LentOperation::InterruptUnbind => LentCommand::Line(index, LineStep::Unbind),
    })
}
