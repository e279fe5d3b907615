// SPDX-License-Identifier: Apache-2.0
//! Holds: memory of a channel that a side sees only while the side holds a capability for the channel.
//!
//! **Model.** The manifest gives such a side a window: an address, and the most that the side may do
//! there. At first nothing is mapped in the window. A hold maps the memory there, with the rights of one
//! capability that the holder names. The hold stands as long as that slot has that capability. So whoever
//! takes the capability away takes the memory away. A side has one hold at most.
//!
//! **Order.** A hold looks at its slot under the lock of the holds. A revocation empties slots first, and
//! then looks for holds without their capabilities under the same lock. So no hold is left that a revocation
//! should have found, on whatever pCPU it came about.
//!
//! **Work bounds.** A hold or its end changes the pages of one window, at most
//! [`MAX_HELD`](bulkhead_image::MAX_HELD) bytes. A look for holds without their capabilities is a step for
//! each side, and ends one hold at most.

use crate::cap::Capability;
use crate::parts::{Part, entries};
use core::sync::atomic::{AtomicU32, Ordering, fence};
use spin::RelaxStrategy;
use spin::mutex::TicketMutex;

/// Entries of the table: the sides of all channels. A small class has no windows of this kind.
const SIDES: usize = entries(Part::Lent, bulkhead_image::MAX_SIDES);

/// The reason why a window is mapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hold {
    /// The slot of the holder.
    pub index: u8,
    /// The capability that was in the slot.
    pub capability: Capability,
}

/// The holds, by the number of the side in the system image.
pub type Table = [Option<Hold>; SIDES];

/// All holds.
#[derive(Debug)]
pub struct Holds<R> {
    /// The number of holds, for readers that need no lock if there are none.
    count: AtomicU32,
    table: TicketMutex<Table, R>,
}

impl<R: RelaxStrategy> Holds<R> {
    /// Makes the state before boot.
    pub const fn new() -> Self {
        Self {
            count: AtomicU32::new(0),
            table: TicketMutex::new([None; SIDES]),
        }
    }

    /// Tells whether nothing is held. If another pCPU begins a hold at the same time, that pCPU finds what
    /// the caller has done to slots before.
    #[inline]
    pub fn is_empty(&self) -> bool {
        fence(Ordering::SeqCst);
        self.count.load(Ordering::Relaxed) == 0
    }

    /// Changes the table. The action takes no other lock but the backend's own.
    pub fn change<T>(&self, action: impl FnOnce(&mut Table) -> T) -> T {
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
    fn recount(&self, table: &Table) {
        let mut held = 0_u32;
        for entry in table {
            held = held.saturating_add(u32::from(entry.is_some()));
        }
        self.count.store(held, Ordering::Release);
    }
}
