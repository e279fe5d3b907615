// SPDX-License-Identifier: Apache-2.0
//! The commands about a lock.

use bulkhead_abi::{Error, Operation};

/// A command about a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockCommand {
    /// Take the lock, at most until this time (nanoseconds since boot, `None` for ever).
    Take(Option<u64>),
    /// Take the lock if it is free.
    TryTake,
    /// Give the lock up.
    Release,
}

/// Checks a hypercall about a lock.
pub(crate) fn decode(operation: Operation, until: u64) -> Result<LockCommand, Error> {
    Ok(match operation {
        Operation::LockTake => LockCommand::Take((until != 0).then_some(until)),
        Operation::LockTryTake => LockCommand::TryTake,
        Operation::LockRelease => LockCommand::Release,
        _ => return Err(Error::NotSupported),
    })
}
