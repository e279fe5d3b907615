// SPDX-License-Identifier: Apache-2.0
//! The upcalls that the tasks of a pCPU wait for.

use crate::mailbox::bit;
use crate::parts::UPCALLS;
use bulkhead_arch_api::{GuestPhys, PartitionId, Ticks};
use bulkhead_sched::{MAX_SLOTS, Slot};

/// Slots whose tasks can have an upcall.
const UPCALL_SLOTS: usize = if UPCALLS { MAX_SLOTS } else { 0 };

/// The upcall that a task waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Upcall {
    /// The partition whose gate it watches.
    pub gate: PartitionId,
    /// The slot of the capability for that gate.
    pub index: u8,
    /// Its first instruction.
    pub entry: GuestPhys,
    /// The memory for the place where the task was.
    pub frame: GuestPhys,
    /// The time at which it comes without an event.
    pub until: Ticks,
}

/// The upcalls that tasks wait for, by slot. The order of the fields matters: the small one comes first.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Upcalls {
    /// The slots whose tasks wait.
    watching: u32,
    upcalls: [Option<Upcall>; UPCALL_SLOTS],
}

impl Upcalls {
    /// Returns the state before boot. The function is inlined, so the state is made where it stays.
    #[inline(always)]
    pub(super) const fn new() -> Self {
        Self {
            watching: 0,
            upcalls: [None; UPCALL_SLOTS],
        }
    }

    /// Returns the slots whose tasks wait, as a bitmap.
    #[inline(always)]
    pub(super) const fn watching(&self) -> u32 {
        self.watching
    }

    /// Tells whether a slot waits for an upcall.
    #[inline]
    pub const fn is_watching(&self, slot: Slot) -> bool {
        self.watching & bit(slot.0) != 0
    }

    /// Returns the upcall that a slot waits for.
    pub(crate) fn of(&self, slot: Slot) -> Option<Upcall> {
        self.upcalls.get(usize::from(slot.0)).copied().flatten()
    }

    /// Sets the upcall that a slot waits for. Returns the earlier one.
    pub(super) fn set(&mut self, slot: Slot, upcall: Option<Upcall>) -> Option<Upcall> {
        if upcall.is_some() {
            self.watching |= bit(slot.0);
        } else {
            self.watching &= !bit(slot.0);
        }
        let place = self.upcalls.get_mut(usize::from(slot.0))?;
        core::mem::replace(place, upcall)
    }
}
