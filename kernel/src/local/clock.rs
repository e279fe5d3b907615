// SPDX-License-Identifier: Apache-2.0
//! The times at which a pCPU has something to do: the ends of waits, watchdogs, and work that belongs to no
//! slot.

use super::{Activity, Local, Upcall};
use crate::mailbox::bits;
use crate::network::Intake;
use crate::orders::Orders;
use crate::time::Timebase;
use bulkhead_abi::log::in_steps;
use bulkhead_arch_api::{MAX_PCPUS, PartitionId, Ticks};
use bulkhead_sched::{PcpuPolicy, Slot, SlotSet};
use core::sync::atomic::Ordering;

impl<P: PcpuPolicy> Local<P> {
    /// Returns the time at which the decision in force must be looked at again. This is the earliest of: its
    /// own end, the timers of slots that would change it, a watchdog, and other work that is due.
    #[inline(always)]
    pub fn deadline(&mut self) -> Ticks {
        if self.has_time_before_end() {
            self.end().min(self.earliest_of_slots())
        } else {
            self.end()
        }
    }

    /// Tells whether nothing is forgotten: a decision is asked for, or the clock is armed for each time that
    /// is noted and can change the decision, and a line of the log has a time or a chore. This must hold for
    /// each step that is decided. Bounded by the slots in use.
    #[must_use]
    pub fn leaves_nothing_behind(&self) -> bool {
        let SlotSet(concerned) = self.concerned();
        let own = bits(concerned).map(|slot| self.time_of(Slot(slot)));
        let is_armed = self.armed <= own.fold(self.end(), Ord::min);
        let is_planned = self.output.is_planned() || self.output.is_step_due();
        self.reschedule || is_armed && (is_planned || !self.output.has_line)
    }

    /// Returns the part of [`Local::deadline`] that belongs to the slots. The watchdog of a slot that does
    /// not concern the decision waits: it must not interrupt a more important vCPU again and again. Takes a
    /// step for each slot before the one that is found.
    #[inline(never)]
    fn earliest_of_slots(&mut self) -> Ticks {
        let SlotSet(concerned) = self.concerned();
        while self.timed & concerned != 0
            && let Some(slot) = self.first_of(concerned)
        {
            let time = self.slot(slot).time;
            // A vCPU that was woken early leaves the end of its wait here.
            if self.time_of(slot) == time {
                return time;
            }
            self.note(slot);
        }
        Ticks::NEVER
    }

    /// Returns the time at which a slot has something to do without anybody waking it: the end of its wait,
    /// or of a task that computes, its upcall.
    #[inline(always)]
    pub fn own_time(&self, slot: Slot) -> Ticks {
        match self.slot(slot).activity {
            Activity::Ready => self.upcalls.of(slot).map_or(Ticks::NEVER, |upcall| upcall.until),
            activity => activity.until(),
        }
    }

    /// Sets the time at which to look at the watchdog of the partition whose first vCPU is in `slot`.
    pub fn set_watchdog(&mut self, slot: Slot, at: Ticks) {
        self.slot_mut(slot).watchdog = at;
        self.note(slot);
    }

    /// Sets the upcall that a slot waits for. Returns the earlier one.
    pub(crate) fn set_upcall(&mut self, slot: Slot, upcall: Option<Upcall>) -> Option<Upcall> {
        let earlier = self.upcalls.set(slot, upcall);
        self.note(slot);
        earlier
    }

    /// Makes this pCPU see to the end of the system's time.
    pub fn end_at(&mut self, limit: Ticks) {
        self.limit = limit;
        self.find_other_due();
    }

    /// Notes in the log area when the clock is to interrupt this pCPU. With one pCPU there is no other pCPU
    /// that reads the time.
    #[inline]
    pub(crate) fn note_clock(&self) {
        if MAX_PCPUS > 1 {
            let due = match self.armed {
                Ticks::NEVER => 0,
                Ticks(at) => in_steps(at),
            };
            self.counters.due.store(due, Ordering::Relaxed);
        }
    }

    /// Notes in the log area by how much the clock, which has just interrupted this pCPU, was late.
    pub(crate) fn note_delay(&self, now: Ticks) {
        if MAX_PCPUS > 1 && self.armed != Ticks(0) {
            let late = in_steps(now.0.saturating_sub(self.armed.0));
            if late > self.counters.late.load(Ordering::Relaxed) {
                self.counters.late.store(late, Ordering::Relaxed);
            }
        }
    }

    fn find_other_due(&mut self) {
        let ordered = self.orders.first().map_or(Ticks::NEVER, Orders::due);
        self.other_due = self.output.due.min(self.limit).min(self.intake.due).min(ordered);
    }

    /// Notes that this pCPU orders the stop of `partition` itself.
    pub(crate) fn order_here(&mut self, partition: PartitionId) {
        self.orders
            .iter_mut()
            .for_each(|orders| orders.order_here(partition));
    }

    /// Tells whether the stop of `partition`, which was ordered, is carried out now.
    pub(crate) fn admits_stop(&mut self, partition: PartitionId, now: Ticks, time: &Timebase) -> bool {
        let Some(orders) = self.orders.first_mut() else {
            return true;
        };
        let is_admitted = orders.admit(partition, now, time);
        self.find_other_due();
        is_admitted
    }

    /// Takes a partition whose stop was ordered by another pCPU and has waited long enough.
    pub(crate) fn take_stop(&mut self, now: Ticks, time: &Timebase) -> Option<PartitionId> {
        let stop = self.orders.first_mut()?.take(now, time);
        if stop.is_some() {
            self.find_other_due();
        }
        stop
    }

    /// Makes this pCPU take the frames from outside, with so much time in each period.
    pub(crate) const fn limit_intake(&mut self, intake: Intake) {
        self.intake = intake;
    }

    /// Charges the time from `began` to `ended` for a frame from outside. Returns false if no other frame may
    /// be taken before [`Local::take_intake`] says so.
    pub(crate) fn charge_intake(&mut self, began: Ticks, ended: Ticks) -> bool {
        let has_more = self.intake.charge(began, ended);
        if !has_more {
            self.find_other_due();
            self.reschedule = true;
        }
        has_more
    }

    /// Tells whether frames from outside, which were not taken, are to be taken again now. Returns true once.
    pub(crate) fn take_intake(&mut self, now: Ticks) -> bool {
        let is_due = self.intake.due <= now;
        if is_due {
            self.intake.due = Ticks::NEVER;
            self.find_other_due();
        }
        is_due
    }

    /// Makes sure that output left unsent is handed on at the time `at`, or earlier if an earlier time is set
    /// already.
    pub fn drain_by(&mut self, at: Ticks) {
        self.output.due = self.output.due.min(at);
        self.other_due = self.other_due.min(at);
    }

    /// Tells whether output left unsent is to be handed on now. Returns true once.
    pub fn take_output(&mut self, now: Ticks) -> bool {
        let is_due = self.output.due <= now;
        if is_due {
            self.output.due = Ticks::NEVER;
            self.find_other_due();
        }
        is_due
    }

    /// Tells whether some slot's own time may come before the decision in force ends. Mostly none does.
    #[inline(always)]
    pub fn has_time_before_end(&self) -> bool {
        self.due < self.end()
    }

    /// Returns the time at which the decision in force ends, or something else is due that belongs to no
    /// slot.
    #[inline(always)]
    pub fn end(&self) -> Ticks {
        Ticks(self.in_force.until).min(self.other_due)
    }

    /// Tells whether the time of something has come that belongs to no slot.
    #[inline(always)]
    pub fn is_other_due(&self, now: Ticks) -> bool {
        self.other_due <= now
    }

    /// Tells whether some slot's own time, or the time of something else, has come.
    #[inline(always)]
    pub fn is_due(&self, now: Ticks) -> bool {
        self.due.min(self.other_due) <= now
    }
}
