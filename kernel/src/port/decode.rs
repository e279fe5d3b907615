// SPDX-License-Identifier: Apache-2.0
//! The checks of hypercalls about ports and replies.

use crate::cap::{ReplyIndex, Spaces, rights};
use crate::port::command::{Answering, Buffer, CallMode, Gift, Message, PortCommand};
use crate::port_id::PortId;
use bulkhead_abi::hypercall::{MAX_MESSAGE, MESSAGE_ALIGN, PortOperation, SEND_REPLACES};
use bulkhead_abi::{Error, ObjectKind, Rights};
use bulkhead_arch_api::{GuestPhys, Hypercall, PartitionId, VcpuId};
use spin::RelaxStrategy;

/// Checks a hypercall about ports and replies. The object was found, with these rights.
#[inline(never)]
pub(crate) fn decode<R: RelaxStrategy>(
    operation: PortOperation,
    call: &Hypercall,
    caller: PartitionId,
    object: u8,
    held: Rights,
    spaces: &Spaces<R>,
) -> Result<PortCommand, Error> {
    let [x1, x2, x3, x4, x5, x6] = call.arguments;
    let port = PortId(object);
    let until = |time: u64| (time != 0).then_some(time);
    let given = |gift| {
        Ok::<_, Error>(Message {
            gift,
            ..message(x2, x3)?
        })
    };
    Ok(match operation {
        PortOperation::PortSend => {
            let message = Message {
                replaces: x4 & SEND_REPLACES != 0,
                ..given(gift(x4 & !SEND_REPLACES, caller, held, spaces)?)?
            };
            PortCommand::Send(port, message)
        }
        PortOperation::PortReceive => PortCommand::Receive(port, buffer(x2, x3, until(x4))?, true),
        PortOperation::PortTryReceive => PortCommand::Receive(port, buffer(x2, x3, None)?, false),
        PortOperation::PortSendReceive | PortOperation::PortSendReceiveDonate => {
            let mode = CallMode {
                donates: operation == PortOperation::PortSendReceiveDonate,
                reply_rights: Rights::WRITE.union(held.intersection(Rights::GRANT)),
            };
            PortCommand::Call(port, message(x2, x3)?, buffer(x4, x5, until(x6))?, mode)
        }
        PortOperation::PortReceiveDonate => {
            let reply = match x5 {
                0 => None,
                index => Some((answering(index, caller, spaces)?, message(x2, x4)?)),
            };
            PortCommand::ReplyReceive(port, reply, buffer(x2, x3, until(x6))?)
        }
        PortOperation::PortResume => PortCommand::Resume(until(x2)),
        PortOperation::PortReply => {
            let answering = Answering {
                caller: VcpuId(object),
                index: ReplyIndex(x1 as u32),
            };
            PortCommand::Reply(answering, given(gift(x4, caller, held, spaces)?)?)
        }
    })
}

/// Checks the index of the capability by which a reply is sent. The reply itself finds out whether the call
/// is open.
fn answering<R: RelaxStrategy>(
    index: u64,
    caller: PartitionId,
    spaces: &Spaces<R>,
) -> Result<Answering, Error> {
    let Some(index) = ReplyIndex::of(index) else {
        return spaces.look_up(caller, index).and(Err(Error::WrongKind));
    };
    Ok(Answering {
        caller: index.caller(),
        index,
    })
}

fn message(from: u64, length: u64) -> Result<Message, Error> {
    let length = u16::try_from(length).map_err(|_| Error::InvalidArgument)?;
    if !from.is_multiple_of(MESSAGE_ALIGN) || usize::from(length) > MAX_MESSAGE {
        return Err(Error::InvalidArgument);
    }
    Ok(Message {
        from: GuestPhys(from),
        length,
        gift: None,
        replaces: false,
    })
}

fn buffer(to: u64, size: u64, until: Option<u64>) -> Result<Buffer, Error> {
    if !to.is_multiple_of(MESSAGE_ALIGN) {
        return Err(Error::InvalidArgument);
    }
    Ok(Buffer {
        to: GuestPhys(to),
        size: size.min(MAX_MESSAGE as u64) as u16,
        until,
    })
}

/// Checks the capability that goes with a message: its index in bits 15:0 of `argument`, the rights for the
/// receiver in bits 23:16. The object that the message is sent to was named with the rights `held`.
fn gift<R: RelaxStrategy>(
    argument: u64,
    caller: PartitionId,
    held: Rights,
    spaces: &Spaces<R>,
) -> Result<Option<Gift>, Error> {
    if argument == 0 {
        return Ok(None);
    }
    if !held.contains(Rights::GRANT) {
        return Err(Error::NoRight);
    }
    let rights = rights(argument >> 16)?;
    let index = u8::try_from(argument & 0xFFFF).map_err(|_| Error::NoCapability)?;
    let capability = spaces.look_up(caller, u64::from(index))?;
    if capability.kind == ObjectKind::Reply {
        return Err(Error::WrongKind);
    }
    if !capability.rights.contains(rights) {
        return Err(Error::NoRight);
    }
    Ok(Some(Gift {
        index,
        rights,
        capability,
    }))
}
