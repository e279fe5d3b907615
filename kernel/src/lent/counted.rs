// SPDX-License-Identifier: Apache-2.0
//! A table with a lock, whose entries rest on capabilities, and a count that needs no lock.

use core::sync::atomic::{AtomicU32, Ordering, fence};
use spin::RelaxStrategy;
use spin::mutex::TicketMutex;

/// A table in which entries come and go.
#[derive(Debug)]
pub struct Counted<T, const N: usize, R> {
    /// The number of entries, for readers that need no lock if there are none.
    count: AtomicU32,
    table: TicketMutex<[Option<T>; N], R>,
}

impl<T: Copy, const N: usize, R: RelaxStrategy> Counted<T, N, R> {
    /// Makes a table without entries.
    pub const fn new() -> Self {
        Self {
            count: AtomicU32::new(0),
            table: TicketMutex::new([None; N]),
        }
    }

    /// Tells whether there is no entry. If another pCPU makes one at the same time, that pCPU finds what the
    /// caller has done to slots before.
    #[inline]
    pub fn is_empty(&self) -> bool {
        fence(Ordering::SeqCst);
        self.count.load(Ordering::Relaxed) == 0
    }

    /// Changes the table, with its lock held. Counts the entries: a step for each place.
    pub fn change<U>(&self, action: impl FnOnce(&mut [Option<T>; N]) -> U) -> U {
        let mut table = self.table.lock();
        // Do not reorder: the action looks at a slot. A pCPU that empties the slot and does not see this
        // count has emptied the slot before that look.
        self.count.fetch_add(1, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        let result = action(&mut table);
        self.recount(&table);
        result
    }

    #[inline(never)]
    fn recount(&self, table: &[Option<T>; N]) {
        let mut entries = 0_u32;
        for entry in table {
            entries = entries.saturating_add(u32::from(entry.is_some()));
        }
        self.count.store(entries, Ordering::Release);
    }
}
