// SPDX-License-Identifier: Apache-2.0
//! The record that the end of the only pCPU leaves.

use bulkhead_abi::log::{Area, Crash};
use bulkhead_arch_support::crash::{self, Origin};

/// Makes a crash record of the only pCPU, whose class binary runs where it is linked. `details` adds
/// everything that is known besides the message.
#[inline(always)]
pub fn leave(area: &Area, kind: u32, message: &[u8], details: impl FnOnce(&Crash)) {
    let origin = Origin {
        kind,
        pcpu: 0,
        counter: || 0,
        base: 0,
    };
    crash::leave(area, &origin, message, details, || ());
}
