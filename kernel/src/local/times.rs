// SPDX-License-Identifier: Apache-2.0
//! The times at which the slots of a pCPU have something to do without anybody waking them, earliest first.
//!
//! **Model.** The time of a slot is the end of its wait, its upcall or its watchdog, whichever comes first.
//! The slots that have a time are in one order. All policies and all waits share it, so the next time of a
//! pCPU is at hand. A slot that was woken early keeps its place until the time is asked for.
//!
//! **Cost.** To note a time takes a step for each slot whose time is earlier, and at most two for each of the
//! n slots in use. To take the earliest takes one step. Slots at rest, and slots whose times are later, cost
//! nothing. A heap would bound a note by log n, but then each wake-up would pay. Here a vCPU pays that begins
//! a long wait, or that has a watchdog.
//!
//! **Place.** The order is in free bytes of the slots: the slot with the number `n` keeps the member `n`.

use super::Local;
use crate::mailbox::bit;
use bulkhead_arch_api::Ticks;
use bulkhead_sched::{PcpuPolicy, Slot};

impl<P: PcpuPolicy> Local<P> {
    #[inline(always)]
    fn member_mut(&mut self, number: u8) -> &mut Slot {
        &mut self.slot_mut(Slot(number)).member
    }

    /// Returns the slot with the earliest time among some slots.
    #[inline(always)]
    pub(super) fn first_of(&self, slots: u32) -> Option<Slot> {
        let by_time = (0..self.timed_count).rev();
        let mut by_time = by_time.map(|number| self.slot(Slot(number)).member);
        by_time.find(|slot| bit(slot.0) & slots != 0)
    }

    /// Returns the time of a slot.
    #[inline(always)]
    pub(super) fn time_of(&self, slot: Slot) -> Ticks {
        self.own_time(slot).min(self.slot(slot).watchdog)
    }

    /// Notes the time of a slot, which may have changed. A time that is later, or no more, need not be noted.
    #[cold]
    pub(crate) fn note(&mut self, slot: Slot) {
        let time = self.time_of(slot);
        if self.timed & bit(slot.0) != 0 {
            self.timed_count = self.timed_count.wrapping_sub(1);
            let mut moved = slot;
            for number in (0..=self.timed_count).rev() {
                moved = core::mem::replace(self.member_mut(number), moved);
                if moved == slot {
                    break;
                }
            }
        }
        self.timed &= !bit(slot.0);
        if time != Ticks::NEVER {
            self.timed |= bit(slot.0);
            self.slot_mut(slot).time = time;
            let mut place = self.timed_count;
            for next in (0..place).rev() {
                let earlier = *self.member_mut(next);
                if self.slot(earlier).time > time {
                    break;
                }
                *self.member_mut(place) = earlier;
                place = next;
            }
            *self.member_mut(place) = slot;
            self.timed_count = self.timed_count.wrapping_add(1);
        }
        self.find_due();
    }

    /// Takes the slots whose time has come, as a bitmap.
    #[inline(always)]
    pub(crate) fn take_due(&mut self, now: Ticks) -> u32 {
        let mut due = 0;
        while self.due <= now {
            self.timed_count = self.timed_count.wrapping_sub(1);
            due |= bit(self.slot(Slot(self.timed_count)).member.0);
            self.find_due();
        }
        self.timed &= !due;
        due
    }

    #[inline(always)]
    fn find_due(&mut self) {
        let first = self.first_of(u32::MAX);
        self.due = first.map_or(Ticks::NEVER, |slot| self.slot(slot).time);
    }
}
