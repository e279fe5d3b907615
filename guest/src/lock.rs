// SPDX-License-Identifier: Apache-2.0
//! Locks that the hypervisor keeps. Their owner runs in the place of the most important vCPU that waits.
//!
//! [`Guard`] releases its lock when it goes. A vCPU that ends without that loses its locks, and the next
//! owner is told ([`Guard::is_broken`]).

use bulkhead_abi::{Error, Operation};

use crate::hypercall::{Handle, call};

/// The lock is the caller's until this value goes.
#[derive(Debug, PartialEq, Eq)]
pub struct Guard {
    lock: Handle,
    is_broken: bool,
}

impl Guard {
    /// Tells whether the last owner ended without a release. The data that the lock guards may then be
    /// half-done. A release says that it is right again.
    #[must_use]
    pub const fn is_broken(&self) -> bool {
        self.is_broken
    }

    /// Keeps the lock when this value goes.
    pub const fn keep(self) {
        core::mem::forget(self);
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        // The partition that revoked the capability meanwhile has taken the lock with it.
        let _revoked = release(self.lock);
    }
}

/// Waits until the caller owns the lock, at most until `deadline` (nanoseconds since boot, 0 = for ever).
/// Meanwhile the owner runs in the caller's place, if both are on one pCPU.
///
/// # Errors
/// `TimedOut` at the deadline, `Interrupted` in a VM for which an interrupt waits, `WrongState` if the caller
/// owns the lock, `DonationCycle` if the owner waits for the caller; else as all calls.
pub fn take(lock: Handle, deadline: u64) -> Result<Guard, Error> {
    request(Operation::LockTake, lock, deadline)
}

/// Takes the lock if it is free.
///
/// # Errors
/// `TimedOut` if another vCPU owns the lock, `WrongState` if the caller does; else as all calls.
pub fn try_take(lock: Handle) -> Result<Guard, Error> {
    request(Operation::LockTryTake, lock, 0)
}

/// Releases a lock that was kept ([`Guard::keep`]).
///
/// # Errors
/// `WrongState` if the caller does not own the lock; else as all calls.
pub fn release(lock: Handle) -> Result<(), Error> {
    call(Operation::LockRelease, [u64::from(lock.0), 0, 0, 0, 0, 0]).map(drop)
}

fn request(operation: Operation, lock: Handle, deadline: u64) -> Result<Guard, Error> {
    let [broken, ..] = call(operation, [u64::from(lock.0), deadline, 0, 0, 0, 0])?;
    Ok(Guard {
        lock,
        is_broken: broken != 0,
    })
}
