// SPDX-License-Identifier: Apache-2.0
//! Clears the memory of partitions.

use bulkhead_arch_support::physical;

/// Clears memory until `enough`, which is asked from time to time. Returns the number of cleared bytes.
///
/// # Safety
/// All of the range is memory to which no Rust reference exists.
pub unsafe fn clear(to: usize, length: usize, enough: impl Fn() -> bool) -> usize {
    /// Zeroes, aligned so that they are copied by doublewords.
    #[repr(align(8))]
    struct Zeros([u8; 128]);
    static ZEROS: Zeros = Zeros([0; 128]);
    let mut done = 0;
    while done < length && (done == 0 || !enough()) {
        let part = ZEROS.0.get(..length - done).unwrap_or(&ZEROS.0);
        // SAFETY: the caller's.
        unsafe { physical::write(to + done, part) }
        done += part.len();
    }
    done
}
