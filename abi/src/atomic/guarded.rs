// SPDX-License-Identifier: Apache-2.0
//! A 64-bit word of two halves, for a microcontroller with two pCPUs.
//!
//! One lock guards all such words. A pCPU holds it for a few instructions, in which nothing interrupts the
//! hypervisor. So a wait for the other pCPU is as short.

use super::halves;
use core::sync::atomic::{AtomicBool, Ordering};

/// True while a pCPU uses one of the words.
static IS_TAKEN: AtomicBool = AtomicBool::new(false);

/// Does something with a word while the other pCPU does nothing with any.
fn alone<R>(work: impl FnOnce() -> R) -> R {
    while IS_TAKEN
        .compare_exchange_weak(false, true, Ordering::Acquire, Ordering::Relaxed)
        .is_err()
    {
        core::hint::spin_loop();
    }
    let result = work();
    IS_TAKEN.store(false, Ordering::Release);
    result
}

/// A 64-bit word that both pCPUs see whole.
#[derive(Debug, Default)]
#[repr(transparent)]
pub struct AtomicU64(halves::AtomicU64);

impl AtomicU64 {
    /// Makes a word of this value.
    #[must_use]
    pub const fn new(value: u64) -> Self {
        Self(halves::AtomicU64::new(value))
    }

    /// Returns the value.
    #[must_use]
    pub fn load(&self, order: Ordering) -> u64 {
        alone(|| self.0.load(order))
    }

    /// Stores a value.
    pub fn store(&self, value: u64, order: Ordering) {
        alone(|| self.0.store(value, order));
    }

    /// Stores a value; returns the one before.
    pub fn swap(&self, value: u64, order: Ordering) -> u64 {
        alone(|| self.0.swap(value, order))
    }

    /// Sets bits; returns the value before.
    pub fn fetch_or(&self, bits: u64, order: Ordering) -> u64 {
        alone(|| self.0.fetch_or(bits, order))
    }

    /// Keeps only these bits; returns the value before.
    pub fn fetch_and(&self, bits: u64, order: Ordering) -> u64 {
        alone(|| self.0.fetch_and(bits, order))
    }
}
