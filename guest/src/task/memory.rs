// SPDX-License-Identifier: Apache-2.0
//! The memory of a task after its program. No start clears it but a cold one, so a warm start finds it as
//! the earlier life has left it.

use core::sync::atomic::{AtomicBool, Ordering};

use crate::startup_page::StartupPage;

const PAGE: usize = 4096;

unsafe extern "C" {
    /// The end of the program, from the linker script.
    static __image_end: u8;
}

static IS_TAKEN: AtomicBool = AtomicBool::new(false);

/// Takes the memory between the program and the stack, for good. The stack keeps `stack` bytes. Returns
/// `None` at the second call, or if nothing is left.
#[must_use]
pub fn take(page: &StartupPage<'_>, stack: usize) -> Option<&'static mut [u8]> {
    let image = core::ptr::addr_of!(__image_end);
    let start = image.expose_provenance().checked_next_multiple_of(PAGE)?;
    let end = usize::try_from(page.memory_end()).ok()?.checked_sub(stack)?;
    let size = end.checked_sub(start).filter(|size| *size != 0)?;
    if IS_TAKEN.swap(true, Ordering::Relaxed) {
        return None;
    }
    let first = core::ptr::with_exposed_provenance_mut(start);
    // SAFETY: the hypervisor maps the task's memory up to the end that the startup page tells, and clears it
    // before the first start. The program ends below `start`, and the stack is above `end` as the caller
    // promises to use no more of it. `IS_TAKEN` says that this is the only reference.
    Some(unsafe { core::slice::from_raw_parts_mut(first, size) })
}
