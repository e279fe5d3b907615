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
use crate::{Slot, SlotSet, StopReason, Ticks, VcpuParameters};

/// Some of the vCPUs, as ranks and as slots: all or those of one class.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
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
    /// Their ranks.
    members: u32,
    /// The rank that has the turn, if it is ready.
    turn: u8,
    /// What is left of the turn.
    left: Ticks,
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

/// The queue.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RunQueue {
    quantum: Ticks,
    rank_of: Table<u8>,
    slot_of: Table<u8>,
    /// By rank: the slots of this rank and those above.
    slots_from: Table<u32>,
    /// By rank: the lowest rank of its group.
    group_of: Table<u8>,
    /// By the lowest rank of the group.
    groups: Table<Group>,
    /// The ready ones, as ranks and as slots.
    ready: Band,
    /// Whether the turn picked last is being used up.
    is_shared: bool,
}

impl RunQueue {
    /// A queue without slots.
    pub const fn new(quantum: Ticks) -> Self {
        Self {
            quantum,
            rank_of: Table::new(0),
            slot_of: Table::new(0),
            slots_from: Table::new(0),
            group_of: Table::new(0),
            groups: Table::new(Group {
                members: 0,
                turn: 0,
                left: quantum,
            }),
            ready: Band::NONE,
            is_shared: false,
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
            let group = self.groups.at_mut(first);
            group.turn = first;
            group.members |= bit(rank);
        }
        let mut slots = 0;
        for rank in (0..count).rev() {
            slots |= bit(*self.slot_of.at(rank));
            *self.slots_from.at_mut(rank) = slots;
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

    /// The slots of this rank and those above.
    fn slots_from(&self, rank: u8) -> u32 {
        if u32::from(rank) < u32::BITS {
            *self.slots_from.at(rank)
        } else {
            0
        }
    }

    /// The slots that are more important than this one; of its own class, if it is not the highest class.
    pub fn above(&self, slot: u8) -> u32 {
        let (_, behind) = self.group_of_slot(slot);
        self.slots_from(behind)
    }

    /// The equals of a slot, itself among them, and those that are more important.
    pub fn not_below(&self, slot: u8) -> u32 {
        let (first, _) = self.group_of_slot(slot);
        self.slots_from(first)
    }

    /// The lowest rank of a slot's group, and the one behind its highest.
    fn group_of_slot(&self, slot: u8) -> (u8, u8) {
        let first = *self.group_of.at(self.rank(slot));
        let last = highest(self.groups.at(first).members).unwrap_or(first);
        (first, last.wrapping_add(1))
    }

    /// One of the most important ready slots of a band; which one of equals is not said.
    pub fn top(&self, band: Band) -> Option<u8> {
        highest(self.ready.ranks & band.ranks).map(|rank| self.slot(rank))
    }

    /// The slot of a band to run.
    #[inline]
    pub fn pick(&mut self, band: Band) -> Option<Pick> {
        let first = *self.group_of.at(highest(self.ready.ranks & band.ranks)?);
        let group = self.groups.at_mut(first);
        let ready = self.ready.ranks & group.members;
        if ready & bit(group.turn) == 0 {
            group.pass_turn(ready, self.quantum);
        }
        let (turn, members) = (group.turn, group.members);
        let (mut left, mut interested_from) = (Ticks::MAX, first);
        self.is_shared = ready != bit(turn);
        // Alone, the first equal to become ready starts the clock.
        if self.is_shared {
            left = group.left;
            interested_from = highest(members).unwrap_or(first).wrapping_add(1);
        }
        Some(Pick {
            slot: Slot(self.slot(turn)),
            left,
            interested: self.slots_from(interested_from) & band.slots & !self.ready.slots,
            interested_from,
        })
    }

    /// The slot picked last stops; it stays in the queue.
    #[inline]
    pub fn stopped(&mut self, slot: u8, why: StopReason, ran: Ticks) {
        let rank = self.rank(slot);
        let group = self.groups.at_mut(*self.group_of.at(rank));
        if group.turn != rank {
            return;
        }
        if self.is_shared {
            group.left = group.left.saturating_sub(ran);
        }
        if group.left == 0 || why == StopReason::Yielded {
            group.pass_turn(self.ready.ranks & group.members, self.quantum);
        }
    }
}

impl Group {
    /// Gives the turn to the next of these ranks in cyclic order; to the same one if there is no other.
    fn pass_turn(&mut self, ready: u32, quantum: Ticks) {
        let behind = ready & !below(usize::from(self.turn).wrapping_add(1));
        let next = if behind == 0 { ready } else { behind };
        if next != 0 {
            self.turn = next.trailing_zeros() as u8;
        }
        self.left = quantum;
    }
}

/// The set of all `count` slots.
pub const fn all_slots(count: usize) -> SlotSet {
    SlotSet(below(count))
}
