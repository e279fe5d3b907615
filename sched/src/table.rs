// SPDX-License-Identifier: Apache-2.0
//! Tables and bitmaps of 32. Indexing has no way to fail.

use crate::MAX_SLOTS;

/// A table with one entry for each slot, or for each rank of a slot. An index is taken modulo the length.
/// Callers only have numbers below the length, so the modulo never shows. It spares every access a branch
/// that cannot be taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Table<T>([T; MAX_SLOTS]);

impl<T: Copy> Table<T> {
    /// Returns a table with the same entry everywhere.
    pub const fn new(entry: T) -> Self {
        Self([entry; MAX_SLOTS])
    }

    /// Returns an entry.
    #[inline]
    #[expect(clippy::indexing_slicing, reason = "a masked index is below MAX_SLOTS")]
    pub const fn at(&self, number: u8) -> &T {
        &self.0[number as usize & (MAX_SLOTS - 1)]
    }

    /// Returns an entry, to change.
    #[inline]
    #[expect(clippy::indexing_slicing, reason = "a masked index is below MAX_SLOTS")]
    pub const fn at_mut(&mut self, number: u8) -> &mut T {
        &mut self.0[number as usize & (MAX_SLOTS - 1)]
    }

    /// Returns all entries.
    pub const fn all(&self) -> &[T; MAX_SLOTS] {
        &self.0
    }
}

/// Returns the bit of a slot, rank or domain. The number is below 32.
#[inline]
pub const fn bit(number: u8) -> u32 {
    1_u32.wrapping_shl(number as u32)
}

/// Returns the bits of the numbers below `count`.
pub const fn below(count: usize) -> u32 {
    if count >= u32::BITS as usize {
        u32::MAX
    } else {
        bit(count as u8).wrapping_sub(1)
    }
}

/// Returns the highest number in a bitmap.
#[inline]
pub fn highest(bits: u32) -> Option<u8> {
    bits.checked_ilog2().map(|number| number as u8)
}

/// Returns the numbers in a bitmap, lowest first. There are at most 32 steps.
pub fn each(bits: u32) -> impl Iterator<Item = u8> {
    let mut rest = bits;
    core::iter::from_fn(move || {
        let lowest = rest.trailing_zeros() as u8;
        (rest != 0).then(|| {
            rest &= !bit(lowest);
            lowest
        })
    })
}
