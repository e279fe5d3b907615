// SPDX-License-Identifier: Apache-2.0
//! Ready vCPUs by priority; equals take turns.
//!
//! **Model.** vCPUs belong to classes (a partition, a time domain; or all to one). Those of one class and one
//! priority are equals and share one turn, which passes in the order of their slots. A turn lasts one quantum of running
//! time and is only used up while an equal waits: alone, a vCPU runs without a deadline, so it never costs a
//! timer interrupt. A vCPU that is preempted keeps its turn and the rest of its quantum. One that blocks keeps
//! the turn only if it is ready again before any equal ran.
//!
//! **Structure.** vCPUs are sorted once, when the queue is made, by class, priority and slot; the place in
//! that order is the rank. A set of ranks is a bitmap, a class is a contiguous band of ranks, and so is a group of
//! equals: the most important one of a band is the highest bit. Every operation is O(1).

use crate::table::{Table, below, bit, highest};
use crate::types::HAS_SHORT_WAYS;
use crate::{Slot, SlotSet, StopReason, Ticks, VcpuParameters};

/// Some of the vCPUs, as ranks and as slots: all or those of one class.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
#[repr(C)]
pub struct Band {
    ranks: u32,
    /// The same as slots.
    pub slots: u32,
}

impl Band {
    /// Nobody.
    pub const NONE: Self = Self { ranks: 0, slots: 0 };
}

/// Equals.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Group {
    /// What is left of the turn.
    left: Ticks,
    /// Their ranks.
    members: u32,
    /// The rank that has the turn, if it is ready, as a bit.
    turn: u32,
    /// Their slots and those of higher ranks.
    not_below: u32,
    /// The slots of higher ranks than theirs.
    above: u32,
    /// The slot that has the turn.
    slot: u8,
}

impl Band {
    /// Whoever is in the queue.
    pub const EVERYONE: Self = Self {
        ranks: u32::MAX,
        slots: u32::MAX,
    };
}

/// Who runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pick {
    /// The vCPU.
    pub slot: Slot,
    /// How long its turn lasts; `Ticks::MAX` if no equal waits.
    pub left: Ticks,
    /// Those of the band whose readiness would change the choice or start the clock.
    pub interested: u32,
    /// The lowest rank that belongs to one of these.
    pub interested_from: u8,
}

/// The queue; what every decision touches comes first.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[repr(C)]
pub struct RunQueue {
    /// The ready ones, as ranks and as slots.
    ready: Band,
    /// The group picked from last, by its lowest rank.
    picked: u8,
    /// Whether the turn picked last is being used up.
    is_shared: bool,
    quantum: Ticks,
    rank_of: Table<u8>,
    slot_of: Table<u8>,
    /// By rank: the lowest rank of its group.
    group_of: Table<u8>,
    /// By the lowest rank of the group.
    groups: Table<Group>,
}

impl RunQueue {
    /// A queue without slots.
    pub const fn new(quantum: Ticks) -> Self {
        Self {
            ready: Band::NONE,
            picked: 0,
            is_shared: false,
            quantum,
            rank_of: Table::new(0),
            slot_of: Table::new(0),
            group_of: Table::new(0),
            groups: Table::new(Group {
                left: quantum,
                members: 0,
                turn: 0,
                not_below: 0,
                above: 0,
                slot: 0,
            }),
        }
    }

    /// Gives a new queue its slots, in order of `vcpus`, and the class of each; at most 32.
    pub fn sort(&mut self, vcpus: &[VcpuParameters], classes: &Table<u8>) {
        let mut count = 0_u8;
        let key = |slot: u8| {
            let priority = vcpus.get(usize::from(slot)).map_or(0, |vcpu| vcpu.priority);
            (*classes.at(slot), priority)
        };
        for slot in (0..).take(vcpus.len().min(crate::MAX_SLOTS)) {
            let mut place = count;
            while place > 0 && key(*self.slot_of.at(place.wrapping_sub(1))) > key(slot) {
                *self.slot_of.at_mut(place) = *self.slot_of.at(place.wrapping_sub(1));
                place = place.wrapping_sub(1);
            }
            *self.slot_of.at_mut(place) = slot;
            count = count.wrapping_add(1);
        }
        let mut first = 0;
        for rank in 0..count {
            let slot = *self.slot_of.at(rank);
            if key(*self.slot_of.at(first)) != key(slot) {
                first = rank;
            }
            *self.rank_of.at_mut(slot) = rank;
            *self.group_of.at_mut(rank) = first;
            self.groups.at_mut(first).members |= bit(rank);
        }
        let mut slots = 0;
        for rank in (0..count).rev() {
            let slot = *self.slot_of.at(rank);
            let group = self.groups.at_mut(*self.group_of.at(rank));
            if group.turn == 0 {
                group.above = slots;
            }
            slots |= bit(slot);
            // The lowest rank comes last and keeps the turn.
            (group.turn, group.slot, group.not_below) = (bit(rank), slot, slots);
        }
    }

    /// These slots, which are all of some classes. Linear: for constructors.
    pub fn band(&self, slots: u32) -> Band {
        let ranks = crate::table::each(slots).fold(0, |ranks, slot| ranks | bit(self.rank(slot)));
        Band { ranks, slots }
    }

    /// Running time of a turn.
    pub const fn quantum(&self) -> Ticks {
        self.quantum
    }

    /// The place of a slot in the order of importance.
    pub const fn rank(&self, slot: u8) -> u8 {
        *self.rank_of.at(slot)
    }

    /// The slot with this rank.
    pub const fn slot(&self, rank: u8) -> u8 {
        *self.slot_of.at(rank)
    }

    /// The slots that are in the queue.
    pub const fn ready(&self) -> u32 {
        self.ready.slots
    }

    /// Puts a slot into the queue.
    pub fn add(&mut self, slot: u8) {
        self.ready.ranks |= bit(self.rank(slot));
        self.ready.slots |= bit(slot);
    }

    /// Takes a slot out of the queue.
    pub fn remove(&mut self, slot: u8) {
        self.ready.ranks &= !bit(self.rank(slot));
        self.ready.slots &= !bit(slot);
    }

    /// The slots that are more important than this one; of its own class, if it is not the highest class.
    pub fn above(&self, slot: u8) -> u32 {
        self.group_of_slot(slot).above
    }

    /// The equals of a slot, itself among them, and those that are more important.
    pub fn not_below(&self, slot: u8) -> u32 {
        self.group_of_slot(slot).not_below
    }

    fn group_of_slot(&self, slot: u8) -> &Group {
        self.groups.at(*self.group_of.at(self.rank(slot)))
    }

    /// One of the most important ready slots of a band; which one of equals is not said.
    pub fn top(&self, band: Band) -> Option<u8> {
        highest(self.ready.ranks & band.ranks).map(|rank| self.slot(rank))
    }

    /// The slot of a band to run. Where short ways are too long for the class, it is one function for all who ask.
    #[inline(always)]
    pub fn pick(&mut self, band: Band) -> Option<Pick> {
        if HAS_SHORT_WAYS {
            self.pick_here(band)
        } else {
            self.pick_once(band)
        }
    }

    #[inline(never)]
    fn pick_once(&mut self, band: Band) -> Option<Pick> {
        self.pick_here(band)
    }

    #[inline(always)]
    fn pick_here(&mut self, band: Band) -> Option<Pick> {
        Some(self.pick_from(self.first_group(band)?, band))
    }

    /// The most important group of a band with a ready slot, by its lowest rank.
    #[inline(always)]
    fn first_group(&self, band: Band) -> Option<u8> {
        highest(self.ready.ranks & band.ranks).map(|rank| *self.group_of.at(rank))
    }

    /// The slot of this group to run. Requires: one is ready.
    #[inline(always)]
    fn pick_from(&mut self, first: u8, band: Band) -> Pick {
        let group = self.groups.at_mut(first);
        let ready = self.ready.ranks & group.members;
        if ready & group.turn == 0 {
            group.pass_turn(ready, self.quantum, &self.slot_of);
        }
        let is_shared = ready != group.turn;
        (self.is_shared, self.picked) = (is_shared, first);
        // Alone, the first equal to become ready starts the clock.
        let (left, interested) = if is_shared {
            (group.left, group.above)
        } else {
            (Ticks::MAX, group.not_below)
        };
        Pick {
            slot: Slot(group.slot),
            left,
            interested: interested & band.slots & !self.ready.slots,
            interested_from: if is_shared {
                highest(group.members).unwrap_or(first).wrapping_add(1)
            } else {
                first
            },
        }
    }

    /// The slot picked last stops; it stays in the queue.
    #[inline]
    pub fn stopped(&mut self, slot: u8, why: StopReason, ran: Ticks) {
        let rank = self.rank(slot);
        let group = self.groups.at_mut(*self.group_of.at(rank));
        if group.turn != bit(rank) {
            return;
        }
        if self.is_shared {
            group.left = group.left.saturating_sub(ran);
        }
        if group.left == 0 || why == StopReason::Yielded {
            let ready = self.ready.ranks & group.members;
            group.pass_turn(ready, self.quantum, &self.slot_of);
        }
    }

    /// [`RunQueue::stopped`], [`RunQueue::remove`] and [`RunQueue::pick`] in one step: the slot picked last blocks, and one of
    /// everyone is to run. What is left of a turn matters only if no equal takes it over at once.
    #[inline(always)]
    pub fn blocked(&mut self, slot: u8, ran: Ticks) -> Option<Pick> {
        self.remove(slot);
        let first = self.first_group(Band::EVERYONE);
        if self.is_shared && first != Some(self.picked) {
            self.keep_turn(slot, ran);
        }
        Some(self.pick_from(first?, Band::EVERYONE))
    }

    /// The slot picked last keeps the rest of its turn.
    #[inline(never)]
    fn keep_turn(&mut self, slot: u8, ran: Ticks) {
        let rank = self.rank(slot);
        let group = self.groups.at_mut(*self.group_of.at(rank));
        if group.turn == bit(rank) {
            group.left = group.left.saturating_sub(ran);
            if group.left == 0 {
                let ready = (self.ready.ranks | bit(rank)) & group.members;
                group.pass_turn(ready, self.quantum, &self.slot_of);
            }
        }
    }
}

impl Group {
    /// Gives the turn to the next of these ranks in cyclic order; to the same one if there is no other.
    #[inline(always)]
    fn pass_turn(&mut self, ready: u32, quantum: Ticks, slot_of: &Table<u8>) {
        let behind = ready & self.turn.wrapping_shl(1).wrapping_neg();
        let next = if behind == 0 { ready } else { behind };
        if next != 0 {
            self.turn = next & next.wrapping_neg();
            self.slot = *slot_of.at(next.trailing_zeros() as u8);
        }
        self.left = quantum;
    }
}

/// The set of all `count` slots.
pub const fn all_slots(count: usize) -> SlotSet {
    SlotSet(below(count))
}
