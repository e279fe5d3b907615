// SPDX-License-Identifier: Apache-2.0
//! Ready vCPUs by priority. Equals take turns.
//!
//! **Model.** vCPUs belong to classes: a partition, a time domain, or one class for all. The vCPUs of one
//! class and one priority are equals and share one turn. The turn passes in the order of their slots. A turn
//! lasts one quantum of running time, and is only used up while an equal waits. Alone, a vCPU runs without a
//! deadline, so it never costs a timer interrupt. A vCPU that is preempted keeps its turn and the rest of its
//! quantum. A vCPU that blocks keeps the turn only if it is ready again before any equal ran.
//!
//! **Structure.** The queue sorts the vCPUs once, when it is made, by class, priority and slot. The place in
//! that order is the rank. A set of ranks is a bitmap. A class is a contiguous band of ranks, and so is a
//! group of equals. So the most important vCPU of a band is the highest bit. Every operation is O(1).

use crate::table::{Table, below, bit, highest};
use crate::{Slot, SlotSet, StopReason, Ticks, VcpuParameters};

/// Some of the vCPUs, as ranks and as slots: all vCPUs, or the vCPUs of one class.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
#[repr(C)]
pub struct Band {
    ranks: u32,
    /// The same vCPUs as slots.
    pub slots: u32,
}

impl Band {
    /// The band without vCPUs.
    pub const NONE: Self = Self { ranks: 0, slots: 0 };
}

/// A group of equals.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Group {
    /// The rest of the turn.
    left: Ticks,
    /// The ranks of the members.
    members: u32,
    /// The rank that has the turn, as a bit, if the rank is ready.
    turn: u32,
    /// The slots of the members and of higher ranks.
    not_below: u32,
    /// The slots of ranks higher than the members' ranks.
    above: u32,
    /// The slot that has the turn.
    slot: u8,
}

impl Band {
    /// The band of all vCPUs in the queue.
    pub const EVERYONE: Self = Self {
        ranks: u32::MAX,
        slots: u32::MAX,
    };
}

/// The choice of a vCPU to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pick {
    /// The vCPU.
    pub slot: Slot,
    /// The rest of the turn. `Ticks::MAX` if no equal waits.
    pub left: Ticks,
    /// The slots of the band whose readiness would change the choice or start the clock.
    pub interested: u32,
    /// The lowest rank that belongs to one of the slots in `interested`.
    pub interested_from: u8,
}

/// The value of [`RunQueue::shared`] if the slot picked last has no equal that is ready.
const UNSHARED: u8 = u8::MAX;

/// The queue. The fields that every decision touches come first.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[repr(C)]
pub struct RunQueue {
    /// The ready vCPUs, as ranks and as slots.
    ready: Band,
    /// The group of the last pick, by its lowest rank, if equals share its turn. [`UNSHARED`] otherwise.
    shared: u8,
    quantum: Ticks,
    rank_of: Table<u8>,
    slot_of: Table<u8>,
    /// By rank: the lowest rank of its group.
    group_of: Table<u8>,
    /// The groups, by their lowest rank.
    groups: Table<Group>,
}

impl RunQueue {
    /// Returns a queue without slots.
    pub const fn new(quantum: Ticks) -> Self {
        Self {
            ready: Band::NONE,
            shared: UNSHARED,
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

    /// Gives a new queue its slots, in order of `vcpus`, and the class of each. There are at most 32 slots.
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

    /// Returns these slots as a band. They are all slots of some classes. The cost is linear: the function is
    /// for constructors.
    pub fn band(&self, slots: u32) -> Band {
        let ranks = crate::table::each(slots).fold(0, |ranks, slot| ranks | bit(self.rank(slot)));
        Band { ranks, slots }
    }

    /// Returns the running time of a turn.
    pub const fn quantum(&self) -> Ticks {
        self.quantum
    }

    /// Returns the place of a slot in the order of importance.
    pub const fn rank(&self, slot: u8) -> u8 {
        *self.rank_of.at(slot)
    }

    /// Returns the slot with this rank.
    pub const fn slot(&self, rank: u8) -> u8 {
        *self.slot_of.at(rank)
    }

    /// Returns the slots that are in the queue.
    pub const fn ready(&self) -> u32 {
        self.ready.slots
    }

    /// Puts a slot into the queue.
    #[inline]
    pub fn add(&mut self, slot: u8) {
        self.ready.ranks |= bit(self.rank(slot));
        self.ready.slots |= bit(slot);
    }

    /// Takes a slot out of the queue.
    #[inline]
    pub fn remove(&mut self, slot: u8) {
        self.ready.ranks &= !bit(self.rank(slot));
        self.ready.slots &= !bit(slot);
    }

    /// Returns the slots that are more important than this one. They are of the slot's own class, if that is
    /// not the highest class.
    pub fn above(&self, slot: u8) -> u32 {
        self.group_of_slot(slot).above
    }

    /// Returns the slot, its equals, and the slots that are more important.
    pub fn not_below(&self, slot: u8) -> u32 {
        self.group_of_slot(slot).not_below
    }

    fn group_of_slot(&self, slot: u8) -> &Group {
        self.groups.at(*self.group_of.at(self.rank(slot)))
    }

    /// Returns one of the most important ready slots of a band. Among equals, the result may be any.
    pub fn top(&self, band: Band) -> Option<u8> {
        highest(self.ready.ranks & band.ranks).map(|rank| self.slot(rank))
    }

    /// Picks the slot of a band to run.
    #[cfg_attr(feature = "small-tables", inline(never))]
    #[cfg_attr(not(feature = "small-tables"), inline(always))]
    pub fn pick(&mut self, band: Band) -> Option<Pick> {
        let ready = self.ready.ranks & band.ranks;
        let rank = highest(ready)?;
        Some(self.pick_from(*self.group_of.at(rank), ready, band))
    }

    /// Picks the slot of this group to run, among the ranks of a band that are ready. Requires: one rank of
    /// the group is ready.
    #[inline(always)]
    fn pick_from(&mut self, first: u8, ready: u32, band: Band) -> Pick {
        let group = self.groups.at_mut(first);
        let ready = ready & group.members;
        if ready & group.turn == 0 {
            group.pass_turn(ready, self.quantum, &self.slot_of);
        }
        let is_shared = ready != group.turn;
        self.shared = if is_shared { first } else { UNSHARED };
        // While the vCPU is alone, the first equal to become ready starts the clock.
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

    /// Takes note that the slot picked last stops. The slot has the turn of its group, and stays in the
    /// queue. The turn is used up only while equals share it.
    #[inline(always)]
    pub fn stopped(&mut self, slot: u8, why: StopReason, ran: Ticks) {
        if self.shared != UNSHARED || why == StopReason::Yielded {
            self.use_turn(slot, why, ran);
        }
    }

    /// Does [`RunQueue::stopped`], [`RunQueue::remove`] and [`RunQueue::pick`] for the slot picked last,
    /// which blocks. The rest of the slot's turn matters only if no equal takes the turn over at once.
    #[inline(always)]
    pub fn blocked(&mut self, slot: u8, ran: Ticks, band: Band) -> Option<Pick> {
        self.remove(slot);
        let ready = self.ready.ranks & band.ranks;
        let Some(rank) = highest(ready) else {
            self.keep_turn(slot, ran);
            return None;
        };
        let first = *self.group_of.at(rank);
        if self.shared != first && self.shared != UNSHARED {
            self.keep_turn(slot, ran);
        }
        Some(self.pick_from(first, ready, band))
    }

    /// Keeps the rest of a turn that was shared, for the slot that was picked last and has been removed.
    #[inline(never)]
    fn keep_turn(&mut self, slot: u8, ran: Ticks) {
        self.add(slot);
        self.stopped(slot, StopReason::Blocked, ran);
        self.remove(slot);
    }

    fn use_turn(&mut self, slot: u8, why: StopReason, ran: Ticks) {
        let group = self.groups.at_mut(*self.group_of.at(self.rank(slot)));
        if self.shared != UNSHARED {
            group.left = group.left.saturating_sub(ran);
        }
        if group.left == 0 || why == StopReason::Yielded {
            let ready = self.ready.ranks & group.members;
            group.pass_turn(ready, self.quantum, &self.slot_of);
        }
    }
}

impl Group {
    /// Gives the turn to the next of these ranks in cyclic order. If there is no other, the same rank has the
    /// turn again. Requires: one rank is ready.
    #[inline(always)]
    fn pass_turn(&mut self, ready: u32, quantum: Ticks, slot_of: &Table<u8>) {
        let behind = ready & self.turn.wrapping_shl(1).wrapping_neg();
        let next = if behind == 0 { ready } else { behind };
        self.turn = next & next.wrapping_neg();
        self.slot = *slot_of.at(next.trailing_zeros() as u8);
        self.left = quantum;
    }
}

/// Returns the set of all `count` slots.
pub const fn all_slots(count: usize) -> SlotSet {
    SlotSet(below(count))
}
