// SPDX-License-Identifier: Apache-2.0
//! Partitions that a pCPU still has to tell of states.

use crate::mailbox::{bit, bits};
use bulkhead_abi::size::limit;
use bulkhead_arch_api::{MAX_PARTITIONS, PartitionId};

/// Partitions that can be told later. Where there are few, all are told at once.
const WATCHERS: usize = limit(0, MAX_PARTITIONS);

/// The watchers that are still to be told, and their events.
#[derive(Clone, Copy, Debug)]
pub struct Untold {
    /// The partitions whose gates are to get events, as a bitmap.
    watchers: u32,
    /// The events, by partition.
    events: [u64; WATCHERS],
}

impl Untold {
    /// Returns a value without watchers.
    #[must_use]
    pub(crate) const fn new() -> Self {
        Self {
            watchers: 0,
            events: [0; WATCHERS],
        }
    }

    /// Keeps an event of a partition's gate. Returns false if there is no place for the event.
    pub(crate) fn defer(&mut self, watcher: u8, event: u64) -> bool {
        let Some(place) = self.events.get_mut(usize::from(watcher)) else {
            return false;
        };
        *place |= event;
        self.watchers |= bit(watcher);
        true
    }

    /// Takes the events of one partition, if there are any.
    pub(crate) fn take(&mut self) -> Option<(PartitionId, u64)> {
        let watcher = bits(self.watchers).next()?;
        self.watchers &= !bit(watcher);
        let events = self.events.get_mut(usize::from(watcher))?;
        Some((PartitionId(watcher), core::mem::take(events)))
    }
}
