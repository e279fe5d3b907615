// SPDX-License-Identifier: Apache-2.0
//! The last steps: the firmware ends, and the instructions that are apart carry the system to its places.
//!
//! The instructions are position-independent, use no stack without the firmware, and touch nothing but the
//! memory apart and the memory of the pieces. So it does not matter that a piece overwrites the firmware, its
//! translation tables or this loader.

use crate::class;
use crate::job::{CODE_BYTES, Staged};
use core::slice;
use uefi::boot;
use uefi::mem::memory_map::MemoryType;

unsafe extern "C" {
    static bulkhead_jump: u8;
    static bulkhead_jump_end: u8;
}

/// Returns the instructions.
pub(crate) fn code() -> &'static [u8] {
    let (begin, end) = (&raw const bulkhead_jump, &raw const bulkhead_jump_end);
    let length = end as usize - begin as usize;
    // SAFETY: the two labels are around instructions of this program, which nothing changes.
    unsafe { slice::from_raw_parts(begin, length.min(CODE_BYTES)) }
}

/// Ends the firmware and starts the system.
pub(crate) fn leave(staged: &Staged) -> ! {
    // SAFETY: no value of a boot service is used any more; what is needed is in the memory apart.
    let map = unsafe { boot::exit_boot_services(Some(MemoryType::LOADER_DATA)) };
    // The memory of the map cannot be given back: the firmware has ended.
    core::mem::forget(map);
    class::go(staged)
}
