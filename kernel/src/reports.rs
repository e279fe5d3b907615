// SPDX-License-Identifier: Apache-2.0
//! Lines that a pCPU still has to write to the log: the states of partitions, and registers.

use crate::mailbox::{bit, bits};
use bulkhead_abi::PartitionState;
use bulkhead_abi::size::limit;
use bulkhead_abi::status::StartWord;
use bulkhead_arch_api::{Dump, MAX_PARTITIONS, PartitionId, Ticks, VcpuId};

/// Reports that wait at a time.
pub(crate) const KEPT: usize = limit(2, 4);
/// States that wait at a time.
pub(crate) const STATES: usize = limit(2, 8);
/// Partitions that can be told later. Where there are few, all are told at once.
const WATCHERS: usize = limit(0, MAX_PARTITIONS);

/// Registers that are still to be written to the log.
#[derive(Clone, Copy, Debug)]
pub struct Pending {
    pub(crate) vcpu: VcpuId,
    pub(crate) dump: Dump,
    pub(crate) written: usize,
}

/// A state that a partition has entered, still to be told.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entered {
    pub(crate) at: Ticks,
    pub(crate) partition: PartitionId,
    pub(crate) state: PartitionState,
    pub(crate) start: StartWord,
}

/// The reports of a pCPU that are still to be written, the oldest first, and the partitions that are still to
/// be told of states.
#[derive(Clone, Copy, Debug)]
pub struct Reports {
    pub(crate) states: [Option<Entered>; STATES],
    pub(crate) waiting: [Option<Pending>; KEPT],
    /// The partitions whose gates are to get events, as a bitmap.
    watchers: u32,
    /// The events, by partition.
    events: [u64; WATCHERS],
}

impl Reports {
    /// Returns an empty set of reports.
    #[must_use]
    pub(crate) const fn new() -> Self {
        Self {
            states: [None; STATES],
            waiting: [None; KEPT],
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
    pub(crate) fn take_events(&mut self) -> Option<(PartitionId, u64)> {
        let watcher = bits(self.watchers).next()?;
        self.watchers &= !bit(watcher);
        let events = self.events.get_mut(usize::from(watcher))?;
        Some((PartitionId(watcher), core::mem::take(events)))
    }

    /// Tells whether all reports are written.
    #[inline]
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        let [first, ..] = &self.waiting;
        first.is_none() && self.has_told_states()
    }

    /// Tells whether all states are written, and told to all watchers.
    #[inline]
    #[must_use]
    pub const fn has_told_states(&self) -> bool {
        let [first, ..] = &self.states;
        first.is_none() && self.watchers == 0
    }

    /// Takes the oldest state, which is to be written now.
    pub(crate) fn take_state(&mut self) -> Option<Entered> {
        let [first, ..] = &mut self.states;
        let taken = first.take();
        self.states.rotate_left(1);
        taken
    }

    /// Tells whether registers of this vCPU are among the reports.
    pub(crate) fn has(&self, vcpu: VcpuId) -> bool {
        self.waiting.iter().flatten().any(|pending| pending.vcpu == vcpu)
    }

    /// Returns the place for the next report of registers, if there is one.
    pub(crate) fn free(&mut self) -> Option<&mut Option<Pending>> {
        self.waiting.iter_mut().find(|place| place.is_none())
    }

    pub(crate) const fn oldest(&mut self) -> Option<&mut Pending> {
        let [first, ..] = &mut self.waiting;
        first.as_mut()
    }

    /// Drops the oldest report of registers, which is written.
    pub(crate) fn drop_oldest(&mut self) {
        let [first, ..] = &mut self.waiting;
        *first = None;
        self.waiting.rotate_left(1);
    }
}
