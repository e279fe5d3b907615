// SPDX-License-Identifier: Apache-2.0
//! The command by which a task asks for an upcall.

use bulkhead_abi::Error;
use bulkhead_abi::hypercall::MESSAGE_ALIGN;
use bulkhead_arch_api::{GuestPhys, Hypercall};

/// An upcall as a task asks for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UpcallWish {
    /// The place to go on from, if not after the call.
    pub from: Option<GuestPhys>,
    /// The first instruction of the upcall, if there is to be one.
    pub entry: Option<GuestPhys>,
    /// Memory for the place where the task is when the upcall comes.
    pub frame: GuestPhys,
    /// The time at which it comes without an event (nanoseconds since boot, `None` for never).
    pub until: Option<u64>,
}

/// Checks the arguments of [`bulkhead_abi::Operation::EventUpcall`].
pub(crate) fn decode(call: &Hypercall) -> Result<UpcallWish, Error> {
    let [_, from, entry, frame, until, _] = call.arguments;
    if !from.is_multiple_of(MESSAGE_ALIGN) || !frame.is_multiple_of(MESSAGE_ALIGN) {
        return Err(Error::InvalidArgument);
    }
    Ok(UpcallWish {
        from: (from != 0).then_some(GuestPhys(from)),
        entry: (entry != 0).then_some(GuestPhys(entry)),
        frame: GuestPhys(frame),
        until: (until != 0).then_some(until),
    })
}
