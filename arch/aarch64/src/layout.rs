// SPDX-License-Identifier: Apache-2.0
//! Places of the hypervisor's own parts in memory, by the linker's symbols: the places that each class has
//! that translates, and the constants that are relocated.

pub(crate) use bulkhead_arch_translating::layout::{constants_end, load_address, log_address, system_image};

unsafe extern "C" {
    static __relro_start: u8;
}

/// Returns the first address of the constants that are relocated.
pub(crate) fn constants() -> u64 {
    (&raw const __relro_start) as u64
}
