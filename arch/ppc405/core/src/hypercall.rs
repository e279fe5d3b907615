// SPDX-License-Identifier: Apache-2.0
//! Hypercalls: `sc` with a function identifier in r0 (the head of `bulkhead_abi` has the convention).
//!
//! The identifiers are the same as in the other classes and begin at 0xC6000000. No operating system has a
//! system call with such a number. A VM calls in its supervisor state only: any other `sc` is a system call
//! of the guest's own.

use crate::registers::Frame;
use bulkhead_abi::hypercall::FUNCTION_BASE;
use bulkhead_abi::{Error, Operation};
use bulkhead_arch_api::{CallRegisters, Hypercall};

/// The first registers of arguments and results, of which each is a pair with the high word first.
const PAIRS: [u8; 5] = [4, 6, 8, 10, 12];
/// The results that an operation has at most.
const RESULTS: usize = 4;

/// Tells whether `sc` with these registers is a hypercall.
#[must_use]
pub fn is_hypercall(frame: &Frame) -> bool {
    frame.register(0) & !0xFFFF == FUNCTION_BASE
}

/// Reads the hypercall from the registers.
#[must_use]
pub fn read(frame: &Frame) -> Hypercall {
    let pair =
        |high: u8| u64::from(frame.register(high)) << 32 | u64::from(frame.register(high.wrapping_add(1)));
    let [second, third, fourth, fifth, sixth] = PAIRS.map(pair);
    Hypercall {
        operation: frame.register(0) as u16,
        arguments: [frame.register(3).into(), second, third, fourth, fifth, sixth],
    }
}

/// Returns the call as the kernel's short answers take it: the operation and its arguments.
#[must_use]
pub fn registers(frame: &Frame) -> CallRegisters {
    let Hypercall {
        operation,
        arguments: [first, second, third, fourth, fifth, sixth],
    } = read(frame);
    [operation.into(), first, second, third, fourth, fifth, sixth]
}

/// Answers the hypercall whose identifier is still in r0. Registers that are no result keep their value.
pub fn answer(frame: &mut Frame, answer: Result<[u64; 4], Error>) {
    match answer {
        Ok(results) => {
            let operation = Operation::from_number(frame.register(0) as u16);
            let count = operation.map_or(RESULTS, Operation::results);
            frame.set_register(3, 0);
            for (value, high) in results.iter().zip(PAIRS).take(count) {
                frame.set_register(high, (*value >> 32) as u32);
                frame.set_register(high.wrapping_add(1), *value as u32);
            }
        }
        Err(error) => frame.set_register(3, error as i64 as u32),
    }
}
