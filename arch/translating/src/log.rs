// SPDX-License-Identifier: Apache-2.0
//! The log area (`bulkhead_abi::log`), which is the bytes directly below the class binary.
//!
//! Its place depends on nothing but the load address, so the area can be written before the system image is
//! understood, or if that never happens.

use crate::layout;
use bulkhead_abi::log::Area;

/// Returns the log area.
#[inline]
#[must_use]
pub fn log_area() -> &'static Area {
    let area = layout::log_address() as *const Area;
    // SAFETY: a board's RAM begins at least this far before the load address (checked by the host tool),
    // `own_map::map_binary` maps it for good, no partition may have a mapping there (checked by
    // `bulkhead_image`), and any bytes are an Area, which is all atomics.
    unsafe { &*area }
}
