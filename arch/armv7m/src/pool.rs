// SPDX-License-Identifier: Apache-2.0
//! Memory for what there are as many of as the system image says: contexts, spaces, routes of lines.
//!
//! It begins behind the variables of the class binary and is handed out at boot, a value at a time, for ever. So a system with
//! four partitions takes what four need; the linker script sees to it that there is enough for the most that an image can say.

use crate::space::Space;
use crate::vcpu::Context;
use core::arch::global_asm;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicBool, Ordering};

unsafe extern "C" {
    static __pool_start: u8;
    static __ram_end: u8;
}

// For the linker script and for whoever measures: what a partition and an interrupt line take of it.
global_asm!(
    ".global __pool_partition",
    ".set __pool_partition, {partition}",
    ".global __pool_line",
    ".set __pool_line, {line}",
    partition = const size_of::<Context>() + size_of::<Space>(),
    line = const crate::irq::BYTES_OF_LINE,
);

/// What is left of it, as addresses.
pub(crate) struct Pool {
    next: usize,
    end: usize,
}

impl Pool {
    /// All of it for the first who asks, nothing for others.
    pub(crate) fn take() -> Self {
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

    /// Room for `count` values, or `None` if there is not so much left. Nobody else gets it.
    fn room<T>(&mut self, count: usize) -> Option<NonNull<T>> {
        let start = self.next.checked_next_multiple_of(align_of::<T>())?;
        let next = start.checked_add(size_of::<T>().checked_mul(count)?)?;
        if next > self.end {
            return None;
        }
        self.next = next;
        NonNull::new(core::ptr::with_exposed_provenance_mut(start))
    }

    /// A table of so many entries, all alike, for ever.
    pub(crate) fn table<T: Copy>(&mut self, entry: T, count: usize) -> Option<&'static mut [T]> {
        let first = self.room::<T>(count)?;
        for index in 0..count {
            // SAFETY: inside the room that has just been taken.
            let place = unsafe { first.add(index) };
            // SAFETY: as above, at a multiple of its alignment.
            unsafe { place.write(entry) };
        }
        // SAFETY: all of them have just been written, and nobody else has them.
        Some(unsafe { NonNull::slice_from_raw_parts(first, count).as_mut() })
    }

    /// Puts a value there, for ever.
    pub(crate) fn put<T>(&mut self, value: T) -> Option<NonNull<T>> {
        let place = self.room(1)?;
        // SAFETY: room for a `T`, at a multiple of its alignment, and nobody else's.
        unsafe { place.write(value) };
        Some(place)
    }
}
