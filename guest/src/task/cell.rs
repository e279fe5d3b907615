// SPDX-License-Identifier: Apache-2.0
//! A variable that a task's processes share.
//!
//! A task has one vCPU, so two users of a variable never run at the same time. But a process can be
//! interrupted while it uses the variable. So each use is marked, and a use within a use is refused.

use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicBool, Ordering};

/// A variable with one user at a time.
#[derive(Debug)]
pub struct TaskCell<T> {
    value: UnsafeCell<T>,
    /// True while a use goes on.
    is_used: AtomicBool,
}

// SAFETY: `with` hands out one reference at a time: `is_used` is set before the reference is made and
// cleared after its end. Loads and stores of it are enough, because a task has one vCPU: code that interrupts
// a user finds the mark, and goes on only after its own use has ended.
unsafe impl<T: Send> Sync for TaskCell<T> {}

impl<T> TaskCell<T> {
    /// Makes a variable.
    #[must_use]
    pub const fn new(value: T) -> Self {
        Self {
            value: UnsafeCell::new(value),
            is_used: AtomicBool::new(false),
        }
    }

    /// Uses the variable. Returns `None` within another use.
    pub fn with<R>(&self, user: impl FnOnce(&mut T) -> R) -> Option<R> {
        if self.is_used.load(Ordering::Acquire) {
            return None;
        }
        self.is_used.store(true, Ordering::Release);
        // SAFETY: no use goes on, so no other reference exists (see above).
        let result = user(unsafe { &mut *self.value.get() });
        self.is_used.store(false, Ordering::Release);
        Some(result)
    }
}
