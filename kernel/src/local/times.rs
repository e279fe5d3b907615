// SPDX-License-Identifier: Apache-2.0
//! The times at which the slots of a pCPU have something to do without anybody waking them, earliest first.
//!
//! **Model.** A slot has two places: one for its own time (the end of its wait, or its upcall), and one for
//! its watchdog. The places whose time is set are in one order. All policies and all waits share it, so the
//! next time of a pCPU is at hand.
//!
//! **Cost.** A place is set in one step for each place of an earlier time. The time that comes next is taken
//! away in one step. Slots at rest, and those whose times are later, cost nothing. A heap would bound a change
//! by log n, but each wake-up would pay for it; here the vCPU that begins a long wait pays.

use crate::mailbox::bit;
use bulkhead_arch_api::Ticks;
use bulkhead_sched::MAX_SLOTS;

/// The places of the own times come first, by slot. The places of the watchdogs follow.
pub(super) const WATCHDOGS: u8 = MAX_SLOTS as u8;

const PLACES: usize = 2 * MAX_SLOTS;

/// The times.
#[derive(Debug)]
pub(super) struct Times {
    /// The number of places whose time is set.
    count: u8,
    /// The places whose time is set, the earliest last.
    order: [u8; PLACES],
    times: [Ticks; PLACES],
}

#[expect(clippy::indexing_slicing, reason = "a masked index is below PLACES")]
impl Times {
    /// Returns times of which none is set. The function is inlined, so they are made where they stay.
    #[inline(always)]
    pub(super) const fn new() -> Self {
        Self {
            count: 0,
            order: [0; PLACES],
            times: [Ticks::NEVER; PLACES],
        }
    }

    /// Returns the time of a place.
    pub(super) const fn get(&self, place: u8) -> Ticks {
        self.times[place as usize & (PLACES - 1)]
    }

    const fn time_mut(&mut self, place: u8) -> &mut Ticks {
        &mut self.times[place as usize & (PLACES - 1)]
    }

    const fn order_mut(&mut self, at: u8) -> &mut u8 {
        &mut self.order[at as usize & (PLACES - 1)]
    }

    /// Returns the places whose time is set, the earliest first.
    pub(super) fn places(&self) -> impl Iterator<Item = u8> {
        (0..self.count)
            .rev()
            .map(|at| self.order[usize::from(at) & (PLACES - 1)])
    }

    /// Returns the earliest time.
    pub(super) fn earliest(&self) -> Ticks {
        self.places().next().map_or(Ticks::NEVER, |place| self.get(place))
    }

    /// Returns the place with the earliest time among those of some slots.
    pub(super) fn first_of(&self, slots: u32) -> Option<u8> {
        self.places()
            .find(|place| bit(place & (WATCHDOGS - 1)) & slots != 0)
    }

    /// Sets the time of a place. `NEVER` clears it.
    pub(super) fn set(&mut self, place: u8, time: Ticks) {
        if self.get(place) != Ticks::NEVER {
            self.remove(place);
        }
        *self.time_mut(place) = time;
        if time != Ticks::NEVER {
            let mut at = self.count;
            for next in (0..self.count).rev() {
                let earlier = *self.order_mut(next);
                if self.get(earlier) > time {
                    break;
                }
                *self.order_mut(at) = earlier;
                at = next;
            }
            *self.order_mut(at) = place;
            self.count = self.count.wrapping_add(1);
        }
    }

    /// Takes a place whose time is set out of the order.
    fn remove(&mut self, place: u8) {
        self.count = self.count.wrapping_sub(1);
        let mut moved = place;
        for at in (0..=self.count).rev() {
            moved = core::mem::replace(self.order_mut(at), moved);
            if moved == place {
                break;
            }
        }
    }

    /// Takes the slots whose own times have come by `now`, as a bitmap. A watchdog stays until it is judged.
    pub(super) fn take(&mut self, now: Ticks) -> u32 {
        let mut due = 0;
        let all = self.count;
        while self.earliest() <= now {
            self.count = self.count.wrapping_sub(1);
        }
        for at in self.count..all {
            let place = *self.order_mut(at);
            if place < WATCHDOGS {
                due |= bit(place);
                *self.time_mut(place) = Ticks::NEVER;
            } else {
                *self.order_mut(self.count) = place;
                self.count = self.count.wrapping_add(1);
            }
        }
        due
    }
}
