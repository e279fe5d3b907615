// SPDX-License-Identifier: Apache-2.0
//! Values in memory of the pool, by number: contexts of vCPUs, spaces of partitions.

use crate::Pool;
use core::ptr::NonNull;

/// A table with room for `N` values. The table has the only way to each value, so a borrow of the table
/// borrows all of them.
#[derive(Debug)]
pub struct Slots<T, const N: usize> {
    pub(crate) places: [Option<NonNull<T>>; N],
}

impl<T, const N: usize> Slots<T, N> {
    /// Makes a table without a value.
    #[must_use]
    pub const fn new() -> Self {
        Self { places: [None; N] }
    }

    /// Returns a value, if it is there.
    #[inline(always)]
    #[must_use]
    pub fn get(&self, number: u8) -> Option<&T> {
        let place = self.places.get(usize::from(number)).copied().flatten()?;
        // SAFETY: `put` has put a value there, which only this table knows; references to it come from the
        // table only, and borrow the table.
        Some(unsafe { place.as_ref() })
    }

    /// Returns a value that can change, if it is there.
    #[inline(always)]
    #[must_use]
    pub fn get_mut(&mut self, number: u8) -> Option<&mut T> {
        let mut place = self.places.get(usize::from(number)).copied().flatten()?;
        // SAFETY: as for `get`; the table is borrowed for as long as the reference lives.
        Some(unsafe { place.as_mut() })
    }

    /// Puts a value there, in the place of the one that was there. Returns false if there is no memory for
    /// it.
    pub fn put(&mut self, number: u8, value: T, pool: &mut Pool) -> bool {
        let Some(slot) = self.places.get_mut(usize::from(number)) else {
            return false;
        };
        *slot = slot.or_else(|| pool.room(1));
        let Some(place) = *slot else {
            return false;
        };
        // SAFETY: the pool's room for one `T`, which only this table knows; the table is borrowed, so no
        // reference to the value lives.
        unsafe { place.write(value) };
        true
    }
}

impl<T, const N: usize> Default for Slots<T, N> {
    fn default() -> Self {
        Self::new()
    }
}
