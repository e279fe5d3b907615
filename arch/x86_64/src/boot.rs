// SPDX-License-Identifier: Apache-2.0
//! First steps, and the end when one of them fails.

use crate::{crash, layout};

/// Returns the system image after the class binary. The image is as long as its own header says. Nothing
/// else of the header is checked.
pub(crate) fn system_image() -> &'static [u8] {
    let (address, length) = (
        layout::image_address() as *const u8,
        layout::image_length() as usize,
    );
    // SAFETY: `mmu::build` mapped these bytes read-only, and nothing of the hypervisor's or a partition's is
    // there: the memory plan gives them to the image, and no mapping of a partition may touch them (checked
    // by `bulkhead_image`).
    unsafe { core::slice::from_raw_parts(address, length) }
}

/// Ends this CPU with a reason, before the kernel could.
pub(crate) fn halt(reason: &str) -> ! {
    crash::refuse(reason)
}
