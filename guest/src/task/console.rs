// SPDX-License-Identifier: Apache-2.0
//! A task's console: the first console capability of its startup page, written by hypercall.

use core::sync::atomic::{AtomicU32, Ordering};

use crate::hypercall::{self, Handle};
use crate::startup_page::StartupPage;
use bulkhead_abi::{ObjectKind, Rights};

/// No console: what is printed is dropped.
const NONE: u32 = u32::MAX;

static CONSOLE: AtomicU32 = AtomicU32::new(NONE);

/// Finds the console in the startup page.
pub(super) fn attach(page: &StartupPage<'_>) {
    let console = page.capabilities().find(|capability| {
        capability.kind == ObjectKind::Console && capability.rights.contains(Rights::WRITE)
    });
    CONSOLE.store(console.map_or(NONE, |console| console.index), Ordering::Relaxed);
}

/// Returns the task's console, if it has one.
#[must_use]
pub fn handle() -> Option<Handle> {
    let index = CONSOLE.load(Ordering::Relaxed);
    (index != NONE).then_some(Handle(index))
}

/// Writes all of `bytes`; gives up what the hypervisor refuses.
pub fn write(mut bytes: &[u8]) {
    let Some(console) = handle() else { return };
    while !bytes.is_empty() {
        match hypercall::console_write(console, bytes) {
            Ok(taken) => bytes = &bytes[taken..],
            Err(_) => return,
        }
        // A full console takes nothing: let its reader make progress before the next attempt.
        core::hint::spin_loop();
    }
}
