// SPDX-License-Identifier: Apache-2.0
//! A variable that a task's processes share.
//!
//! A task has one vCPU, so two users of a variable never run at the same time. But a process can be
//! interrupted while it uses the variable. So each use is marked, and a use within a use is refused.
//!
//! A life of the task can end in the middle of a use, and a warm start keeps the memory. So the mark is the
//! number of the life. The value may then be half-written: a task writes it anew before it reads it.

use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicU32, Ordering};

/// The number of this life. Its first value is not 0, so that it is in memory that no start but a cold one
/// writes.
static LIFE: AtomicU32 = AtomicU32::new(1);
/// No life.
const NOBODY: u32 = 0;

/// Begins a life of the task, before its program uses any variable.
pub(super) fn begin_life() {
    let next = LIFE.load(Ordering::Relaxed).wrapping_add(1).max(1);
    LIFE.store(next, Ordering::Relaxed);
}

/// A variable with one user at a time.
#[derive(Debug)]
pub struct TaskCell<T> {
    value: UnsafeCell<T>,
    /// The life in which a use goes on.
    used_in: AtomicU32,
}

// SAFETY: `with` hands out one reference at a time: `used_in` is set before the reference is made and
// cleared after its end. Loads and stores of it are enough, because a task has one vCPU: whoever interrupts
// a user finds the mark, and goes on only after its own use has ended.
unsafe impl<T: Send> Sync for TaskCell<T> {}

impl<T> TaskCell<T> {
    /// Makes a variable.
    #[must_use]
    pub const fn new(value: T) -> Self {
        Self {
            value: UnsafeCell::new(value),
            used_in: AtomicU32::new(NOBODY),
        }
    }

    /// Uses the variable. Returns `None` within another use.
    pub fn with<R>(&self, user: impl FnOnce(&mut T) -> R) -> Option<R> {
        let life = LIFE.load(Ordering::Relaxed);
        if self.used_in.load(Ordering::Acquire) == life {
            return None;
        }
        self.used_in.store(life, Ordering::Release);
        // SAFETY: no use of this life goes on, so no other reference exists (see above).
        let result = user(unsafe { &mut *self.value.get() });
        self.used_in.store(NOBODY, Ordering::Release);
        Some(result)
    }
}
