// SPDX-License-Identifier: Apache-2.0
//! A channel by its number, and the commands about one.

use crate::table::Id;
use bulkhead_abi::hypercall::ChannelOperation;

/// A channel, by its number in the system image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChannelId(pub u8);

impl Id for ChannelId {
    fn index(self) -> usize {
        usize::from(self.0)
    }
}

/// A command about a channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChannelCommand {
    /// Return where the caller sees the channel.
    Place,
    /// Ring at these sides of the channel (a bitmap, 0 for all), but not at the caller's own.
    Doorbell(u64),
}

/// Returns the command that a hypercall about a channel is.
pub(crate) const fn decode(operation: ChannelOperation, sides: u64) -> ChannelCommand {
    match operation {
        ChannelOperation::ChannelPlace => ChannelCommand::Place,
        ChannelOperation::ChannelDoorbell => ChannelCommand::Doorbell(sides),
    }
}
