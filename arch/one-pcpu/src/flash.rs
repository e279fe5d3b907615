// SPDX-License-Identifier: Apache-2.0
//! The code memory of a microcontroller: the system image after the class binary, and the programs that stay
//! there.

use bulkhead_image::{Image, ImageError, Portable, claimed_length};

unsafe extern "C" {
    static __image_end: u8;
    static __code_end: u8;
}

/// Returns the system image after the class binary. The image is as long as its own header says. Nothing
/// else of the header is checked.
#[must_use]
pub fn system_image() -> &'static [u8] {
    let start = &raw const __image_end;
    let room = (&raw const __code_end).addr().saturating_sub(start.addr());
    // SAFETY: code memory up to `__code_end` is the hypervisor's (the linker script and the host tool ensure
    // this), no code writes it, and any bytes are bytes.
    let all = unsafe { core::slice::from_raw_parts(start, room) };
    // A bad image is refused on the console, which is looked for in the image.
    let length = claimed_length(all)
        .ok()
        .and_then(|length| usize::try_from(length).ok());
    length.and_then(|length| all.get(..length)).unwrap_or(all)
}

/// Checks the programs of partitions that stay in code memory. At boot, before the first partition runs.
///
/// # Errors
/// [`ImageError`]: a program is not the one of the image.
pub fn check_residents(image: Image<'static>) -> Result<(), ImageError> {
    for (index, record) in (0..).zip(image.residents()) {
        let start = record.address.get() as usize as *const u8;
        // SAFETY: the image is checked: the bytes are in code memory, which no code writes before the first
        // partition runs, and any bytes are bytes.
        let bytes = unsafe { core::slice::from_raw_parts(start, record.size.get() as usize) };
        image.check_resident(index, bytes, &Portable)?;
    }
    Ok(())
}
