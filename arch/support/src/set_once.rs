// SPDX-License-Identifier: Apache-2.0
//! A value that is set once, at boot, and read ever after.

use core::cell::UnsafeCell;
use core::mem::MaybeUninit;
use core::sync::atomic::{AtomicBool, Ordering};

/// A value that one pCPU sets at boot, and that every pCPU reads afterwards. There is no way to wait for it,
/// so there is no code for that.
#[derive(Debug)]
pub struct SetOnce<T> {
    /// A caller of [`SetOnce::set`] has claimed the value.
    claimed: AtomicBool,
    /// The value is there.
    is_set: AtomicBool,
    value: UnsafeCell<MaybeUninit<T>>,
}

// SAFETY: the value is written once, by the caller that has claimed it, and is only read after `is_set` says
// that it is there. The value goes from that caller to others, and they share it.
unsafe impl<T: Send + Sync> Sync for SetOnce<T> {}

impl<T> SetOnce<T> {
    /// Makes a value that is not set yet.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            claimed: AtomicBool::new(false),
            is_set: AtomicBool::new(false),
            value: UnsafeCell::new(MaybeUninit::uninit()),
        }
    }

    /// Sets the value, if no earlier call has, and returns the value that is set. The value is never dropped.
    #[inline]
    pub fn set(&self, value: T) -> Option<&T> {
        if !self.claimed.swap(true, Ordering::AcqRel) {
            // SAFETY: this is the only caller that gets here, and no reference to the value exists before
            // `is_set`.
            unsafe { self.value.get().write(MaybeUninit::new(value)) }
            self.is_set.store(true, Ordering::Release);
        }
        self.get()
    }

    /// Returns the value, if it is set.
    #[inline(always)]
    #[must_use]
    pub fn get(&self) -> Option<&T> {
        // SAFETY: the value is there, and is not written any more.
        self.is_set
            .load(Ordering::Acquire)
            .then(|| unsafe { &*self.value.get().cast::<T>() })
    }
}

impl<T> Default for SetOnce<T> {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_value_stays() {
        let value = SetOnce::new();
        assert_eq!(value.get(), None);
        assert_eq!(value.set(3), Some(&3));
        assert_eq!(value.set(4), Some(&3));
        assert_eq!(value.get(), Some(&3));
    }

    #[test]
    fn every_thread_sees_all_of_the_value_or_nothing() {
        static VALUE: SetOnce<[u64; 64]> = SetOnce::new();
        std::thread::scope(|scope| {
            for number in 1..5 {
                scope.spawn(move || {
                    if let Some(seen) = VALUE.set([number; 64]) {
                        assert!(seen.iter().all(|word| *word == seen[0]));
                    }
                });
            }
        });
        assert!(VALUE.get().is_some());
    }
}
