// SPDX-License-Identifier: Apache-2.0
//! The kind of the program: a task, or a VM. The startup code notes it before `main`.

use core::sync::atomic::{AtomicBool, Ordering};

static IS_TASK: AtomicBool = AtomicBool::new(false);

/// Notes that the program runs as a task. Called by the startup code.
pub(crate) fn set_task() {
    IS_TASK.store(true, Ordering::Relaxed);
}

/// Tells whether the program runs as a task (else as a VM).
#[must_use]
pub fn is_task() -> bool {
    IS_TASK.load(Ordering::Relaxed)
}
