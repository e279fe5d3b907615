// SPDX-License-Identifier: Apache-2.0
//! Memory for tables whose length the system image decides: contexts, spaces, routes of lines.
//!
//! The pool begins after the variables of the class binary and is handed out at boot, a value at a time, for
//! ever. So a system with four partitions takes the memory of four. The linker script ensures that there is
//! enough for the most that an image can say.

use core::ptr::NonNull;
use core::sync::atomic::{AtomicBool, Ordering};

unsafe extern "C" {
    static __pool_start: u8;
    static __ram_end: u8;
}

/// The rest of the pool, as addresses.
#[derive(Debug)]
pub struct Pool {
    pub(crate) next: usize,
    pub(crate) end: usize,
}

impl Pool {
    /// Returns the whole pool to the first caller, and an empty one to all others.
    pub fn take() -> Self {
        static IS_TAKEN: AtomicBool = AtomicBool::new(false);
        let next = (&raw const __pool_start).expose_provenance();
        let is_first = !IS_TAKEN.swap(true, Ordering::Relaxed);
        let end = if is_first {
            (&raw const __ram_end).addr()
        } else {
            next
        };
        Self { next, end }
    }

    /// Takes room for `count` values, or returns `None` if there is not so much left. No other value gets
    /// this room.
    pub(crate) fn room<T>(&mut self, count: usize) -> Option<NonNull<T>> {
        let start = self.next.checked_next_multiple_of(align_of::<T>())?;
        let next = start.checked_add(size_of::<T>().checked_mul(count)?)?;
        if next > self.end {
            return None;
        }
        self.next = next;
        NonNull::new(core::ptr::with_exposed_provenance_mut(start))
    }

    /// Returns a table of so many entries, all alike, for ever.
    pub fn table<T: Copy>(&mut self, entry: T, count: usize) -> Option<&'static mut [T]> {
        let first = self.room::<T>(count)?;
        for index in 0..count {
            // SAFETY: inside the room that has just been taken.
            let place = unsafe { first.add(index) };
            // SAFETY: as above, at a multiple of its alignment.
            unsafe { place.write(entry) };
        }
        // SAFETY: all of them have just been written, and no other code has them.
        Some(unsafe { NonNull::slice_from_raw_parts(first, count).as_mut() })
    }
}
