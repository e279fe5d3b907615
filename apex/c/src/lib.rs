// SPDX-License-Identifier: Apache-2.0
//! The services of ARINC 653 under their names of the standard, for partitions in C.
//!
//! Model: the headers in `guest/c/apex` declare types and services. Each service here takes what the header
//! declares, calls the function of `bulkhead_apex::task` with the same name, and stores the answer where the
//! caller wants it. The partition defines two symbols: `APEX_CONFIGURATION`, the facts that the integrator
//! fixes, and `APEX_MAIN`, the main process. The archive brings the partition's first instructions too.
//!
//! A null pointer is `INVALID_PARAM`, and so is a value that an enumeration of the header does not have. A
//! null pointer to the return code is allowed. Every other pointer must be what the standard says; no code
//! can check that.
//!
//! Reference: ARINC Specification 653 Part 1, the appendix with the C interface.
#![no_std]
#![deny(missing_docs)]

mod configuration;
mod memory;
mod messages;
mod objects;
mod partition;
mod process;

use bulkhead_apex::{Answer, PortDirection, QueuingDiscipline, ReturnCode};
use core::mem::MaybeUninit;

/// A place for a result of a service; `None` is a null pointer.
type Place<'a, T> = Option<&'a mut MaybeUninit<T>>;
/// The place for `RETURN_CODE`.
type Code<'a> = Place<'a, u32>;

/// Stores the answer of a service without a result.
fn reply(code: Code<'_>, answer: Answer) {
    if let Some(code) = code {
        code.write(answer.map_or_else(|code| code as u32, |()| 0));
    }
}

/// Stores the answer of a service, and its result at `to`.
fn give<T>(to: Place<'_, T>, code: Code<'_>, service: impl FnOnce() -> Answer<T>) {
    let answer = match to {
        None => Err(ReturnCode::InvalidParam),
        Some(to) => service().map(|value| {
            to.write(value);
        }),
    };
    reply(code, answer);
}

/// Returns the discipline with this number.
fn discipline(number: u32) -> Answer<QueuingDiscipline> {
    match number {
        0 => Ok(QueuingDiscipline::Fifo),
        1 => Ok(QueuingDiscipline::Priority),
        _ => Err(ReturnCode::InvalidParam),
    }
}

/// Returns the direction with this number.
fn direction(number: u32) -> Answer<PortDirection> {
    match number {
        0 => Ok(PortDirection::Source),
        1 => Ok(PortDirection::Destination),
        _ => Err(ReturnCode::InvalidParam),
    }
}
