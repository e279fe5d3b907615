// SPDX-License-Identifier: Apache-2.0
//! Static storage that is handed out slot by slot.

use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicU32, Ordering};

/// `N` slots (at most 64), each for one owner for ever.
///
/// The storage of vCPU contexts is static and shared by all pCPUs, yet each slot is used by the one
/// pCPU its vCPU is bound to. Claiming makes that a fact instead of a habit: a second claim fails.
pub struct ClaimTable<T, const N: usize> {
    claimed: [AtomicU32; 2],
    slots: [UnsafeCell<T>; N],
}

// SAFETY: a slot is reached only through `slot`, whose caller has claimed it; a claim succeeds once,
// so no two threads reach the same slot. `T: Send` because the claimer is not the thread that made it.
unsafe impl<T: Send, const N: usize> Sync for ClaimTable<T, N> {}

impl<T, const N: usize> ClaimTable<T, N> {
    /// Makes a table of these slots, none claimed.
    #[must_use]
    pub const fn new(slots: [UnsafeCell<T>; N]) -> Self {
        assert!(N <= 64, "one bit per slot");
        Self {
            claimed: [const { AtomicU32::new(0) }; 2],
            slots,
        }
    }

    /// Makes the caller the owner of slot `index`; false if it has one already or does not exist.
    pub fn claim(&self, index: usize) -> bool {
        if index >= N {
            return false;
        }
        let bit = 1 << (index % 32);
        self.claimed
            .get(index / 32)
            .is_some_and(|word| word.fetch_or(bit, Ordering::AcqRel) & bit == 0)
    }

    /// Returns the slot, or null if it does not exist. Only the code that claimed it may dereference it, and
    /// must not make two overlapping references from it.
    #[inline]
    #[must_use]
    pub fn slot(&self, index: usize) -> *mut T {
        match self.slots.get(index) {
            Some(slot) => slot.get(),
            None => core::ptr::null_mut(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_has_one_owner() {
        let table = ClaimTable::new([const { UnsafeCell::new(0u32) }; 3]);
        assert!(table.claim(2));
        assert!(!table.claim(2));
        assert!(table.claim(0));
        assert!(!table.claim(3));
        assert!(!table.slot(2).is_null());
        assert!(table.slot(3).is_null());
    }
}
