// SPDX-License-Identifier: Apache-2.0
//! The commands about a lock.

use bulkhead_abi::hypercall::LockOperation;

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

/// Returns the command that a hypercall about a lock is.
pub(crate) const fn decode(operation: LockOperation, until: u64) -> LockCommand {
    match operation {
        LockOperation::LockTake if until == 0 => LockCommand::Take(None),
        LockOperation::LockTake => LockCommand::Take(Some(until)),
        LockOperation::LockTryTake => LockCommand::TryTake,
        LockOperation::LockRelease => LockCommand::Release,
    }
}
