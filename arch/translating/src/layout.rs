// SPDX-License-Identifier: Apache-2.0
//! Places of the hypervisor's own parts in memory, by the linker's symbols.
//!
//! From low to high addresses: log area, code, read-only data, data, stacks, system image.

use bulkhead_abi::lockdown;
use bulkhead_abi::log::AREA_SIZE;
use bulkhead_arch_paging::PAGE_SIZE;
use bulkhead_arch_support::physical;
use bulkhead_image::layout::{BoardRecord, Header, MAGIC};
use core::mem::offset_of;

/// Most bytes of a system image that are mapped on the word of its unchecked header.
const IMAGE_LIMIT: u64 = 1 << 30;

unsafe extern "C" {
    static __image_start: u8;
    static __text_end: u8;
    static __rodata_end: u8;
    static __stacks_start: u8;
    static __image_end: u8;
}

/// The address of a linker symbol.
macro_rules! address_of {
    ($symbol:ident) => {
        (&raw const $symbol) as u64
    };
}

/// Returns the address at which the class binary runs.
#[inline]
#[must_use]
pub fn load_address() -> u64 {
    address_of!(__image_start)
}

/// Returns the first address after the code. Read-only data follows.
pub(crate) fn text_end() -> u64 {
    address_of!(__text_end)
}

/// Returns the first address after read-only data. Data follows.
#[inline]
#[must_use]
pub fn constants_end() -> u64 {
    address_of!(__rodata_end)
}

/// Returns the first address after data. The stacks follow.
pub(crate) fn data_end() -> u64 {
    address_of!(__stacks_start)
}

/// Returns the address of the system image.
pub(crate) fn image_address() -> u64 {
    address_of!(__image_end)
}

/// Returns the number of bytes of the system image by its own, unchecked word, limited to the mapped bytes.
pub(crate) fn image_length() -> u64 {
    let base = image_address() as usize;
    let mut magic = [0; MAGIC.len()];
    // SAFETY: a system image, or at least RAM, follows the class binary in the flashable file.
    unsafe { physical::read(base, &mut magic) }
    let mut length = [0; 8];
    // SAFETY: as above.
    unsafe { physical::read(base + offset_of!(Header, total_len), &mut length) }
    let length = u64::from_le_bytes(length);
    if magic == MAGIC && length <= IMAGE_LIMIT {
        length
    } else {
        PAGE_SIZE
    }
}

/// Returns the system image after the class binary. The image is as long as its own header says. Nothing
/// else of the header is checked.
#[must_use]
pub fn system_image() -> &'static [u8] {
    let (address, length) = (image_address() as *const u8, image_length() as usize);
    // SAFETY: `own_map::map_binary` mapped these bytes read-only, and nothing of the hypervisor's or a
    // partition's is there: the memory plan gives them to the image, and no mapping of a partition may touch
    // them (checked by `bulkhead_image`).
    unsafe { core::slice::from_raw_parts(address, length) }
}

/// Returns the first page after the system image.
pub(crate) fn image_end() -> u64 {
    image_address() + image_length().next_multiple_of(PAGE_SIZE)
}

/// Returns the reason to stop if the class binary is not where the system image says.
#[must_use]
pub fn misplaced(board: &BoardRecord) -> Option<&'static str> {
    if board.load_address.get() != load_address() {
        return Some(lockdown!("loaded at the wrong address"));
    }
    let is_below = board.log_base.get() == log_address();
    (!is_below).then_some(lockdown!(
        "the log's place is not directly below the load address"
    ))
}

/// Returns the address of the log area, which is directly below the class binary.
#[inline]
#[must_use]
pub fn log_address() -> u64 {
    load_address() - AREA_SIZE as u64
}
