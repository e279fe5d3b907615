// SPDX-License-Identifier: Apache-2.0
//! Hypercalls of a guest: decoded from its registers, and answered in them (`bulkhead_abi` has the
//! convention).

use crate::emulate::advance_it;
use crate::guest::Guest;
use bulkhead_abi::hypercall::FUNCTION_BASE;
use bulkhead_abi::{Error, Operation};
use bulkhead_arch_api::Hypercall;

/// The first registers of the results.
const RESULTS: [u8; 4] = [2, 4, 6, 8];

/// Takes the hypercall by an instruction of `length` bytes that the live frame's PC is still at; of SVC the
/// CPU has counted that itself. `None` if it is none of ours: then it is answered.
pub fn take_hypercall(guest: &mut impl Guest, length: u32) -> Option<Hypercall> {
    let function = guest.register(0);
    let next = guest.register(15).wrapping_add(length);
    guest.set_register(15, next);
    // An undefined instruction may be one of an IT block.
    if length != 0 {
        guest.set_xpsr(advance_it(guest.xpsr()));
    }
    if function & !0xFFFF != FUNCTION_BASE {
        refuse_hypercall(guest, Error::NotSupported);
        return None;
    }
    let pair =
        |low: u8| u64::from(guest.register(low)) | u64::from(guest.register(low.wrapping_add(1))) << 32;
    Some(Hypercall {
        operation: function as u16,
        arguments: [
            guest.register(1).into(),
            pair(2),
            pair(4),
            pair(6),
            pair(8),
            pair(10),
        ],
    })
}

/// Answers the hypercall whose function identifier is still in r0. Registers that are no result of it keep
/// their value.
pub fn answer_hypercall(guest: &mut impl Guest, results: &[u64; 4]) {
    let count = Operation::from_number(guest.register(0) as u16).map_or(results.len(), Operation::results);
    guest.set_register(0, 0);
    for (value, low) in results.iter().zip(RESULTS).take(count) {
        guest.set_register(low, *value as u32);
        guest.set_register(low.wrapping_add(1), (*value >> 32) as u32);
    }
}

/// Refuses the hypercall. Every register but r0 keeps its value.
pub fn refuse_hypercall(guest: &mut impl Guest, error: Error) {
    guest.set_register(0, error as i64 as u32);
}
