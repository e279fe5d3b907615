// SPDX-License-Identifier: Apache-2.0
//! The times at which the slots of a pCPU have something to do without anybody waking them, earliest first.
//!
//! **Model.** A slot has two times: its own (the end of its wait, or its upcall), and the one of its watchdog.
//! There is an order for each kind, of the slots whose time is set. All policies and all waits share them, so
//! the next time of a pCPU is at hand. A slot that was woken early keeps its own time until somebody asks.
//!
//! **Cost.** To set a time takes a step for each slot whose time is earlier. To take the earliest takes one
//! step. Slots at rest, and slots whose times are later, cost nothing. A heap would bound a change by log n,
//! but then each wake-up would pay. Here the vCPU that begins a long wait pays.
//!
//! **Place.** The orders are in the free bytes of the slots: the slot `n` has the member `n` of each order.

use super::Local;
use crate::mailbox::bit;
use bulkhead_arch_api::Ticks;
use bulkhead_sched::{PcpuPolicy, Slot};

/// The kind of the slots' own times.
pub(super) const OWN: usize = 0;
/// The kind of the watchdogs.
pub(super) const WATCHDOG: usize = 1;

#[expect(clippy::indexing_slicing, reason = "there are two kinds")]
impl<P: PcpuPolicy> Local<P> {
    /// Returns the time of a slot, `NEVER` if it is not set.
    #[inline(always)]
    pub(super) fn time(&self, kind: usize, slot: Slot) -> Ticks {
        self.slot(slot).times[kind & 1]
    }

    #[inline(always)]
    fn order_mut(&mut self, kind: usize, number: u8) -> &mut Slot {
        &mut self.slot_mut(Slot(number)).order[kind & 1]
    }

    /// Returns the slots whose time is set, the earliest first.
    #[inline(always)]
    fn order(&self, kind: usize) -> impl Iterator<Item = Slot> {
        (0..self.timed[kind & 1])
            .rev()
            .map(move |number| self.slot(Slot(number)).order[kind & 1])
    }

    /// Returns the slot with the earliest time among some slots.
    #[inline(always)]
    pub(super) fn first_of(&self, kind: usize, slots: u32) -> Option<Slot> {
        self.order(kind).find(|slot| bit(slot.0) & slots != 0)
    }

    /// Returns the earliest time.
    #[inline(always)]
    fn earliest(&self, kind: usize) -> Ticks {
        self.order(kind)
            .next()
            .map_or(Ticks::NEVER, |slot| self.time(kind, slot))
    }

    /// Sets the time of a slot. `NEVER` clears it.
    #[inline(never)]
    pub(super) fn set_time(&mut self, kind: usize, slot: Slot, time: Ticks) {
        if self.time(kind, slot) != Ticks::NEVER {
            self.take_out(kind, slot);
        }
        self.slot_mut(slot).times[kind & 1] = time;
        if kind == OWN {
            self.waiting &= !bit(slot.0);
            if time != Ticks::NEVER {
                self.waiting |= bit(slot.0);
            }
        }
        if time != Ticks::NEVER {
            let mut place = self.timed[kind & 1];
            self.timed[kind & 1] = place.wrapping_add(1);
            for next in (0..place).rev() {
                let earlier = *self.order_mut(kind, next);
                if self.time(kind, earlier) > time {
                    break;
                }
                *self.order_mut(kind, place) = earlier;
                place = next;
            }
            *self.order_mut(kind, place) = slot;
        }
        self.find_due();
    }

    /// Takes a slot whose time is set out of the order.
    fn take_out(&mut self, kind: usize, slot: Slot) {
        let last = self.timed[kind & 1].wrapping_sub(1);
        self.timed[kind & 1] = last;
        let mut moved = slot;
        for place in (0..=last).rev() {
            moved = core::mem::replace(self.order_mut(kind, place), moved);
            if moved == slot {
                break;
            }
        }
    }

    /// Takes the slots whose own time has come by `now`, as a bitmap.
    #[inline(always)]
    pub(crate) fn take_due(&mut self, now: Ticks) -> u32 {
        let mut due = 0;
        while self.earliest(OWN) <= now {
            let last = self.timed[OWN].wrapping_sub(1);
            let slot = *self.order_mut(OWN, last);
            due |= bit(slot.0);
            self.slot_mut(slot).times[OWN] = Ticks::NEVER;
            self.timed[OWN] = last;
        }
        self.find_due();
        self.waiting &= !due;
        due
    }

    #[inline(always)]
    fn find_due(&mut self) {
        self.due = self.earliest(OWN).min(self.earliest(WATCHDOG));
    }
}
