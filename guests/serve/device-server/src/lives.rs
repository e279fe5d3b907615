// SPDX-License-Identifier: Apache-2.0
//! The lives of this program: a page of the task's memory counts them since the last cold start, which clears
//! that memory.

/// Bytes of the page with the count.
const PAGE: usize = 4096;

/// Counts this life in the first page of the memory. Returns the number of lives since the cold start, and
/// the rest of the memory.
pub fn count_life(memory: &'static mut [u8]) -> Option<(u64, &'static mut [u8])> {
    let (page, rest) = memory.split_at_mut_checked(PAGE)?;
    let count = page.first_chunk_mut()?;
    let lives = u64::from_le_bytes(*count).saturating_add(1);
    *count = lives.to_le_bytes();
    Some((lives, rest))
}
