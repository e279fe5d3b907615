// SPDX-License-Identifier: Apache-2.0
//! A 64-bit word of two halves, for a machine with one pCPU.

use core::sync::atomic::{AtomicU32, Ordering};

/// A 64-bit word of a machine with one pCPU: whole as long as no context that uses it interrupts another.
#[derive(Debug, Default)]
#[repr(C, align(8))]
pub struct AtomicU64 {
    // In the order of the CPU, so that readers of memory find a number of 64 bits.
    #[cfg(target_endian = "big")]
    high: AtomicU32,
    low: AtomicU32,
    #[cfg(target_endian = "little")]
    high: AtomicU32,
}

impl AtomicU64 {
    /// Makes a word of this value.
    #[must_use]
    pub const fn new(value: u64) -> Self {
        Self {
            low: AtomicU32::new(value as u32),
            high: AtomicU32::new((value >> 32) as u32),
        }
    }

    /// Returns the value.
    #[inline]
    #[must_use]
    pub fn load(&self, order: Ordering) -> u64 {
        u64::from(self.high.load(order)) << 32 | u64::from(self.low.load(order))
    }

    /// Stores a value. The function is a part of its caller: a call for each half costs more than the
    /// store.
    #[inline(always)]
    pub fn store(&self, value: u64, order: Ordering) {
        self.low.store(value as u32, order);
        self.high.store((value >> 32) as u32, order);
    }

    /// Stores a value; returns the one before.
    #[inline]
    pub fn swap(&self, value: u64, order: Ordering) -> u64 {
        self.change(order, |_| value)
    }

    /// Sets bits; returns the value before.
    #[inline]
    pub fn fetch_or(&self, bits: u64, order: Ordering) -> u64 {
        self.change(order, |value| value | bits)
    }

    /// Keeps only these bits; returns the value before.
    #[inline]
    pub fn fetch_and(&self, bits: u64, order: Ordering) -> u64 {
        self.change(order, |value| value & bits)
    }

    /// Stores what `new` makes of the value, and returns the value before. The halves are accessed
    /// relaxed: there is no other context to order them for.
    fn change(&self, _order: Ordering, new: impl FnOnce(u64) -> u64) -> u64 {
        let before = self.load(Ordering::Relaxed);
        self.store(new(before), Ordering::Relaxed);
        before
    }
}
