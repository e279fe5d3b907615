// SPDX-License-Identifier: Apache-2.0
//! The commands of servers, and the checks of their arguments.

use bulkhead_abi::Error;
use bulkhead_abi::hypercall::{KEPT_GROUP, KEPT_WORDS, MAX_COPY, OWN_MEMORY, ServiceOperation};
use bulkhead_arch_api::{GuestPhys, Hypercall};

/// A step in serving clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Service {
    /// Take the access of the most important client that waits.
    Take,
    /// Answer the access with this number.
    Answer(u64, u64),
    /// Return what has happened to the windows.
    News,
    /// Add causes of the interrupt of a window, and take causes away.
    Interrupt(u8, u32, u32),
    /// Copy memory of a window's client.
    Copy(Transfer),
    /// Return the place on the bus of the memory that a window's client grants, or of the caller's own
    /// mapping with this address.
    Reach(Option<u8>, GuestPhys),
    /// Keep words beside a window, in the group with this number.
    Keep(u8, usize, [u64; KEPT_GROUP]),
    /// Return kept words.
    Kept(u8, usize),
}

/// A copy between the memory of a window's client and the memory of the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transfer {
    /// The number of the window.
    pub window: u8,
    /// The place in the client's memory.
    pub there: GuestPhys,
    /// The place in the server's memory.
    pub here: GuestPhys,
    /// The number of bytes, at most [`MAX_COPY`].
    pub length: u16,
    /// True if the client's memory is written.
    pub is_write: bool,
}

/// Checks a hypercall of a server.
#[inline(never)]
pub(crate) fn decode(operation: ServiceOperation, call: &Hypercall) -> Result<Service, Error> {
    let [_, x2, x3, x4, x5, x6] = call.arguments;
    let window = || u8::try_from(x2).map_err(|_| Error::InvalidArgument);
    let group = || {
        let is_one = x3 < KEPT_WORDS as u64 && x3.is_multiple_of(KEPT_GROUP as u64);
        is_one
            .then_some(x3 as usize / KEPT_GROUP)
            .ok_or(Error::InvalidArgument)
    };
    Ok(match operation {
        ServiceOperation::ServiceTake => Service::Take,
        ServiceOperation::ServiceAnswer => Service::Answer(x2, x3),
        ServiceOperation::ServiceNews => Service::News,
        ServiceOperation::ServiceInterrupt => Service::Interrupt(window()?, x3 as u32, x4 as u32),
        ServiceOperation::ServiceRead | ServiceOperation::ServiceWrite => {
            let length = u16::try_from(x4).map_err(|_| Error::InvalidArgument)?;
            if usize::from(length) > MAX_COPY {
                return Err(Error::InvalidArgument);
            }
            Service::Copy(Transfer {
                window: window()?,
                there: GuestPhys(x3),
                here: GuestPhys(x5),
                length,
                is_write: operation == ServiceOperation::ServiceWrite,
            })
        }
        ServiceOperation::ServiceReach => {
            let window = window()?;
            Service::Reach((window != OWN_MEMORY).then_some(window), GuestPhys(x3))
        }
        ServiceOperation::ServiceKeep => Service::Keep(window()?, group()?, [x4, x5, x6]),
        ServiceOperation::ServiceKept => Service::Kept(window()?, group()?),
    })
}
