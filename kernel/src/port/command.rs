// SPDX-License-Identifier: Apache-2.0
//! The commands about ports and replies.

use crate::cap::{Capability, ReplyIndex};
use crate::port_id::PortId;
use bulkhead_abi::Rights;
use bulkhead_arch_api::{GuestPhys, VcpuId};

/// A command about ports and replies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PortCommand {
    /// Send a message to a port.
    Send(PortId, Message),
    /// Take a message from a port. Wait for one, unless the flag is false.
    Receive(PortId, Buffer, bool),
    /// Send a message to a port and wait for the reply.
    Call(PortId, Message, Buffer, CallMode),
    /// Reply, if there is a reply, and take the next message from a port.
    ReplyReceive(PortId, Option<(Answering, Message)>, Buffer),
    /// Go on to wait for a reply, at most until this time (nanoseconds since boot, `None` for ever).
    Resume(Option<u64>),
    /// Reply.
    Reply(Answering, Message),
}

/// A message in the memory of the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message {
    /// The place of the message.
    pub from: GuestPhys,
    /// The number of bytes, at most [`MAX_MESSAGE`].
    pub length: u16,
    /// The capability that goes with the message.
    pub gift: Option<Gift>,
    /// True if a full port drops its oldest message for this one, if that is the sender's own.
    pub replaces: bool,
}

/// A capability of the sender that goes with a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gift {
    /// The index of the capability in the sender's space.
    pub index: u8,
    /// The rights of the receiver.
    pub rights: Rights,
    /// The capability, as the sender named it.
    pub capability: Capability,
}

/// Memory of the caller for a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Buffer {
    /// The place of the memory.
    pub to: GuestPhys,
    /// The number of bytes, as far as a message can have them.
    pub size: u16,
    /// The end of the wait (nanoseconds since boot, `None` for ever).
    pub until: Option<u64>,
}

/// The manner of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallMode {
    /// True if the receiver runs in the caller's place meanwhile.
    pub donates: bool,
    /// The rights of the capability to reply by.
    pub reply_rights: Rights,
}

/// The call that a reply answers, and the index of the capability to reply by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answering {
    /// The vCPU that waits.
    pub caller: VcpuId,
    /// The index.
    pub index: ReplyIndex,
}
