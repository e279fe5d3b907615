// SPDX-License-Identifier: Apache-2.0
//! The tables of a microcontroller with a second pCPU.

use crate::{Pool, Slots};

impl Pool {
    /// Takes room for `bytes` and returns it as a pool for the other pCPU. `None` if there is not
    /// so much left.
    pub fn split(&mut self, bytes: usize) -> Option<Self> {
        let next = self.next.checked_next_multiple_of(8)?;
        let end = next.checked_add(bytes)?;
        if end > self.end {
            return None;
        }
        self.next = end;
        Some(Self { next, end })
    }
}

impl<T, const N: usize> Slots<T, N> {
    /// Returns a table of the same values.
    ///
    /// # Safety
    /// From now on no value of either table is changed, and none is put there.
    #[must_use]
    pub const unsafe fn shared(&self) -> Self {
        Self { places: self.places }
    }
}
