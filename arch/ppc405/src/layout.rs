// SPDX-License-Identifier: Apache-2.0
//! Places of the hypervisor's own parts in memory, by the linker's symbols.
//!
//! From low to high addresses: log area, vectors and code, read-only data, data, stack, system image.

use bulkhead_abi::log::AREA_SIZE;
use bulkhead_arch_support::physical;
use bulkhead_image::layout::{Header, MAGIC};
use core::mem::offset_of;

/// Most bytes of a system image that are read on the word of its unchecked header.
const IMAGE_LIMIT: u64 = 64 << 20;
/// Bytes that are read of an image whose header is damaged.
const PAGE: u64 = 4096;

/// The word under the stack, as long as no call has been deeper than the stack.
pub(crate) const MARK: u32 = 0xB01C_4EAD;

unsafe extern "C" {
    static __image_start: u8;
    static __image_end: u8;
    static __stack_guard: u8;
    static __stack_bottom: u8;
    static __stack_top: u8;
}

/// Returns the address at which the class binary runs, the address of its vectors.
pub(crate) fn load_address() -> usize {
    (&raw const __image_start).addr()
}

/// Returns the address of the log area, which is directly below the class binary.
pub(crate) fn log_address() -> usize {
    load_address() - AREA_SIZE
}

/// Returns the addresses of the stack.
pub(crate) fn stack() -> core::ops::Range<usize> {
    (&raw const __stack_bottom).addr()..(&raw const __stack_top).addr()
}

/// Returns the addresses of the words under the stack, which `entry` fills with [`MARK`].
pub(crate) fn stack_guard() -> core::ops::Range<usize> {
    (&raw const __stack_guard).addr()..(&raw const __stack_bottom).addr()
}

/// Returns a word of the stack or of the words under it. Requires: a multiple of 4.
pub(crate) fn stack_word(address: usize) -> Option<u32> {
    let inside = stack_guard().start <= address && address < stack().end;
    // SAFETY: a word of the stack or under it, which exist always.
    inside.then(|| unsafe { physical::read_word32(address) })
}

/// Returns the system image after the class binary. The image is as long as its own header says. Nothing
/// else of the header is checked.
pub(crate) fn system_image() -> &'static [u8] {
    let start = &raw const __image_end;
    let mut magic = [0; MAGIC.len()];
    // SAFETY: RAM follows the class binary.
    unsafe { physical::read(start.addr(), &mut magic) }
    let mut length = [0; 8];
    // SAFETY: as above.
    unsafe { physical::read(start.addr() + offset_of!(Header, total_len), &mut length) }
    let length = u64::from_le_bytes(length);
    let length = if magic == MAGIC && length <= IMAGE_LIMIT {
        length
    } else {
        PAGE
    };
    // SAFETY: nothing of the hypervisor's or a partition's is there: the memory plan gives these bytes to the
    // image, and no mapping of a partition may touch them (checked by `bulkhead_image`). No code writes them.
    unsafe { core::slice::from_raw_parts(start, length as usize) }
}
