// SPDX-License-Identifier: Apache-2.0
//! The record with the keys, and the class binary's own constants.

use bulkhead_image::layout::{TRUST_MAGIC, TrustRecord};

/// The record, as the compiler leaves it: without a key. The host tool finds it by its symbol.
#[unsafe(export_name = "bulkhead_trust")]
#[unsafe(link_section = ".trust")]
static RECORD: [u8; size_of::<TrustRecord>()] = {
    let mut bytes = [0; size_of::<TrustRecord>()];
    let (magic, _) = bytes.split_at_mut(TRUST_MAGIC.len());
    magic.copy_from_slice(&TRUST_MAGIC);
    bytes
};

unsafe extern "C" {
    static __constants_start: u8;
    static __constants_end: u8;
}

/// Returns the record. The compiler must not know it: the host tool changes it.
pub(crate) fn record() -> TrustRecord {
    // A compiler may know what a volatile read of a constant finds. It cannot know where this one reads.
    // SAFETY: the bytes of a static are read, and no code writes them.
    let bytes = unsafe { core::hint::black_box(&raw const RECORD).read_volatile() };
    zerocopy::transmute!(bytes)
}

/// Returns the instructions and constants of the class binary that are as the linker left them, and as the
/// host tool knows them.
pub(crate) fn constants() -> &'static [u8] {
    let start = &raw const __constants_start;
    let length = (&raw const __constants_end).addr().saturating_sub(start.addr());
    // SAFETY: the linker script of each class puts the two symbols around code and constants, which are
    // mapped and which no code writes. Any bytes are bytes.
    unsafe { core::slice::from_raw_parts(start, length) }
}
