// SPDX-License-Identifier: Apache-2.0
//! The state of one pCPU alone: its policy and the activities of its vCPUs.
//!
//! The loop of the pCPU owns this state. No other pCPU ever sees the state, so nothing in here is atomic or
//! locked. This is the only place that talks to the policy. It keeps the policy's protocol: a slot is
//! reported ready when it gets something to do, and a slot that ran is reported stopped before the next
//! decision.

mod activity;
mod clock;
mod loans;
mod output;
mod times;
mod upcalls;

use crate::local::loans::Loans;
use crate::local::output::Output;
use crate::local::upcalls::Upcalls;
use bulkhead_arch_api::{MAX_PCPUS, Ticks, VcpuId};
use bulkhead_sched::{
    AnyPolicy, InForce, MAX_SLOTS, PcpuPolicy, PolicyError, PolicyParameters, ScheduleStatus, Signals, Slot,
    SlotSet,
};

use crate::load::Cursor;
use crate::mailbox::{bit, bits};
use crate::network::Intake;
use crate::orders::Orders;
use crate::record::add_ticks;
use crate::trace::Tracer;
use crate::untold::Untold;
use crate::wait::Pause;
use bulkhead_abi::atomic::AtomicU64;
use bulkhead_abi::log::{NONE, Pcpu, Vcpu};
use bulkhead_abi::trace::{BlockReason, Event};
use core::sync::atomic::Ordering;

pub use activity::{Activity, SlotState};
pub(crate) use output::Chore;
pub use upcalls::Upcall;

/// A function that makes an event about a vCPU.
type OfVcpu = fn(u8) -> Event;

/// Returns slots that are not in use. The function is not inlined, so the slots are written where they stay.
#[inline(never)]
const fn unused() -> [SlotState; MAX_SLOTS] {
    [SlotState::UNUSED; MAX_SLOTS]
}

/// The state of one pCPU. The order of the fields matters: those that every decision touches come first, the
/// large tables last.
#[derive(Debug)]
#[repr(C)]
pub struct Local<P = AnyPolicy> {
    counters: &'static Pcpu,
    /// The time at which the decision in force was taken, or the one before it ended.
    since: Ticks,
    in_force: InForce,
    count: u8,
    /// The number of slots that have a time ([`times`]).
    timed_count: u8,
    /// These slots.
    timed: u32,
    /// The earliest time that is noted. No slot's own time comes before it.
    due: Ticks,
    /// The time at which something else is due: the end of the system's time (on the boot pCPU), output left
    /// unsent, or frames from outside.
    other_due: Ticks,
    /// The time at which the system's time ends, if this pCPU sees to that end.
    limit: Ticks,
    /// True if a decision is wanted before anything runs.
    pub reschedule: bool,
    /// The deadline that the clock is armed with. `NEVER` if the clock is not armed, 0 if it has fired.
    pub armed: Ticks,
    /// The output that is to be handed on.
    pub(crate) output: Output,
    /// The place for the records of this pCPU.
    pub tracer: Tracer,
    slots: [SlotState; MAX_SLOTS],
    /// The upcalls that tasks wait for.
    pub(crate) upcalls: Upcalls,
    /// The loans of places.
    pub(crate) loans: Loans,
    policy: P,
    /// The watchers that are still to be told of states.
    pub untold: Untold,
    /// The time that frames from outside may take.
    intake: Intake,
    /// The stops that other pCPUs ordered. There are none where there is only one pCPU.
    orders: [Orders; (MAX_PCPUS > 1) as usize],
}

impl<P: PcpuPolicy> Local<P> {
    /// Returns a pCPU without vCPUs, which will have a policy of this kind. The pCPU wants a decision.
    #[inline(always)]
    pub fn new(counters: &'static Pcpu, tracer: Tracer, kind: &PolicyParameters<'_>) -> Self {
        Self {
            counters,
            slots: unused(),
            upcalls: Upcalls::new(),
            loans: Loans::new(),
            count: 0,
            timed_count: 0,
            timed: 0,
            since: Ticks::NEVER,
            in_force: InForce::NONE,
            due: Ticks::NEVER,
            other_due: Ticks::NEVER,
            limit: Ticks::NEVER,
            reschedule: true,
            armed: Ticks::NEVER,
            output: Output::new(),
            untold: Untold::new(),
            intake: Intake::UNLIMITED,
            orders: [const { Orders::NONE }; (MAX_PCPUS > 1) as usize],
            tracer,
            policy: P::blank(kind),
        }
    }

    /// Adds a vCPU, which is off, and its counters. The vCPUs of a pCPU come in the order of their slots.
    pub fn add(&mut self, vcpu: VcpuId, counters: &'static Vcpu) {
        if let Some(slot) = self.slots.get_mut(usize::from(self.count)) {
            slot.vcpu = vcpu;
            slot.counters = counters;
            self.count = self.count.saturating_add(1);
        }
    }

    /// Returns the policy, to be set up for this pCPU.
    pub(crate) const fn policy_mut(&mut self) -> &mut P {
        &mut self.policy
    }

    /// Returns all slots in use.
    pub fn all(&self) -> impl Iterator<Item = Slot> + use<P> {
        (0..self.count).map(Slot)
    }

    /// Returns the state of a slot.
    #[inline]
    #[expect(clippy::indexing_slicing, reason = "a masked index is below MAX_SLOTS")]
    pub fn slot(&self, slot: Slot) -> &SlotState {
        &self.slots[usize::from(slot.0) & (MAX_SLOTS - 1)]
    }

    /// Returns the state of a slot, to change.
    #[inline]
    #[expect(clippy::indexing_slicing, reason = "a masked index is below MAX_SLOTS")]
    pub fn slot_mut(&mut self, slot: Slot) -> &mut SlotState {
        &mut self.slots[usize::from(slot.0) & (MAX_SLOTS - 1)]
    }

    /// Returns the slot that the decision in force runs.
    #[inline]
    pub const fn running(&self) -> Option<Slot> {
        match self.in_force.slot {
            InForce::NOBODY => None,
            slot => Some(slot),
        }
    }

    /// Returns the slots for which mail must not wait: those whose readiness would change the decision in
    /// force, and the one that runs if it waits for an upcall.
    pub fn interested(&self) -> SlotSet {
        if self.upcalls.watching() == 0 {
            return self.in_force.interested;
        }
        let own = self
            .running()
            .map_or(0, |slot| bit(slot.0) & self.upcalls.watching());
        SlotSet(self.in_force.interested.0 | own)
    }

    /// Returns the slots that the decision in force concerns: those whose readiness would change the
    /// decision, and the one that runs.
    pub fn concerned(&self) -> SlotSet {
        SlotSet(self.in_force.interested.0 | self.running().map_or(0, |slot| bit(slot.0)))
    }

    /// Makes `slot` ready: it has something to do.
    pub fn make_ready(&mut self, slot: Slot, now: Ticks) {
        if self.tracer.is_on() {
            self.trace_wake(slot, now);
        }
        self.slot_mut(slot).activity = Activity::Ready;
        self.policy.ready(slot, now.0);
        if self.in_force.interested.0 & bit(slot.0) != 0 {
            self.reschedule = true;
        }
    }

    /// Makes `slot` load its partition in its time.
    pub fn make_loading(&mut self, slot: Slot, cursor: Cursor, now: Ticks) {
        self.make_ready(slot, now);
        self.slot_mut(slot).activity = Activity::Loading(cursor);
    }

    /// Makes `slot`, which is blocked, find out in its own time why it was woken.
    pub fn make_looking(&mut self, slot: Slot, pause: Pause, now: Ticks) {
        self.make_ready(slot, now);
        self.slot_mut(slot).activity = Activity::Looking(pause);
    }

    /// Tells the policy of a critical interrupt for `slot`. The work of the slot was made ready before.
    /// Loading of the slot's partition is no such work.
    pub fn urge(&mut self, slot: Slot, now: Ticks) {
        if matches!(
            self.slot(slot).activity,
            Activity::Ready | Activity::Revoking(..) | Activity::Looking(_)
        ) {
            let vcpu = self.slot(slot).vcpu.0;
            self.tracer.record(now, Event::Critical { vcpu });
            self.policy.critical(slot, now.0);
            self.reschedule = true;
        }
    }

    /// Gives the running slot an activity that is not ready. The slot has nothing to do before it is made
    /// ready again.
    #[inline(always)]
    pub fn wait(&mut self, slot: Slot, activity: Activity) {
        self.slot_mut(slot).activity = activity;
        if activity.has_end() {
            self.note(slot);
        }
    }

    /// Makes the running slot wait for an interrupt, or until a time.
    #[inline(always)]
    pub fn idle(&mut self, slot: Slot, until: Ticks) {
        self.wait(slot, Activity::Idle(until));
    }

    /// Does [`Local::wait`], and wants a decision.
    pub fn block(&mut self, slot: Slot, activity: Activity) {
        self.wait(slot, activity);
        self.reschedule = true;
    }

    /// Switches `slot` off. Requires: no slot is running ([`Local::settle`]).
    pub fn switch_off(&mut self, slot: Slot, now: Ticks) {
        if self.slot(slot).activity.is_ready() {
            self.policy.withdraw(slot, now.0);
            self.tracer.record(
                now,
                Event::Block {
                    vcpu: self.slot(slot).vcpu.0,
                    why: BlockReason::Off,
                },
            );
        }
        self.slot_mut(slot).activity = Activity::Off;
        self.set_watchdog(slot, Ticks::NEVER);
    }

    #[inline(never)]
    fn trace_wake(&self, slot: Slot, now: Ticks) {
        let state = self.slot(slot);
        if !state.activity.is_ready() {
            // The time of a timer that is due has passed already.
            let late = now.0.saturating_sub(self.own_time(slot).0);
            let event = Event::Wake {
                vcpu: state.vcpu.0,
                late: late as u32,
            };
            self.tracer.record(now, event);
        }
    }

    /// Records the effects of the decision besides the choice.
    pub fn trace_signals(&self, signals: Signals) {
        if !self.tracer.is_on() {
            return;
        }
        if signals.schedule_changed {
            let schedule = self.policy.schedule().current;
            self.tracer.record(self.since, Event::Schedule { schedule });
        }
        let events: [(SlotSet, OfVcpu); 4] = [
            (signals.exhausted, |vcpu| Event::Exhausted { vcpu }),
            (signals.replenished, |vcpu| Event::Replenished { vcpu }),
            (signals.window_start, |vcpu| Event::WindowStart { vcpu }),
            (signals.period_start, |vcpu| Event::PeriodStart { vcpu }),
        ];
        for (slots, event) in events {
            for slot in bits(slots.0) {
                let vcpu = self.slot(Slot(slot)).vcpu;
                self.tracer.record(self.since, event(vcpu.0));
            }
        }
    }

    /// Records the decision that was taken at `now` and stands.
    #[inline]
    pub fn trace_decision(&mut self, now: Ticks) {
        let to = self.running().map(|slot| (slot, self.slot(slot).vcpu));
        let before = self.tracer.shown();
        if before != to {
            let is_ready = before.is_some_and(|(slot, _)| self.slot(slot).activity.is_ready());
            self.tracer.switch(now, to, is_ready);
        }
    }

    /// Returns the time at which the decision in force began.
    pub const fn began(&self) -> Ticks {
        self.since
    }

    /// Ends the decision in force.
    #[inline(always)]
    pub fn settle(&mut self, now: Ticks) {
        if let Some(slot) = self.running() {
            let (why, counters) = (self.slot(slot).activity.stop_reason(), self.slot(slot).counters);
            let ran = self.spend(&counters.ran, now);
            self.policy.stopped(slot, why, ran.0, now.0);
            self.in_force.slot = InForce::NOBODY;
        } else {
            self.spend(&self.counters.idle, now);
        }
    }

    /// Does [`Local::settle`] and [`Local::pick`] in one step, because the running slot blocks. Returns the
    /// slot that runs then, with its vCPU, and [`Local::has_signals`].
    #[inline(always)]
    pub fn switch(&mut self, slot: Slot, now: Ticks) -> (Option<(Slot, VcpuId)>, bool) {
        let counters = self.slot(slot).counters;
        let ran = self.spend(&counters.ran, now);
        self.policy.block(slot, ran.0, now.0, &mut self.in_force);
        let has_signals = self.in_force.has_signals;
        (self.adopt(), has_signals)
    }

    /// Counts the time since the decision in force was taken.
    #[inline(always)]
    fn spend(&mut self, counter: &AtomicU64, now: Ticks) -> Ticks {
        let ran = now.since(self.since);
        self.since = now;
        // A reader of the counters adds the time since then to the time counted. The board may go off between
        // these two stores. A moment that is not counted is better than a moment counted twice.
        self.counters.since.store(now.0, Ordering::Relaxed);
        add_ticks(counter, ran);
        ran
    }

    /// Puts the next decision in force. Requires: settled, at this time.
    #[inline(always)]
    pub fn pick(&mut self, now: Ticks) {
        self.reschedule = false;
        self.policy.decide(now.0, &mut self.in_force);
        self.adopt();
    }

    /// Adopts the decision that the policy says is in force. Returns the slot that runs, with its vCPU.
    #[inline(always)]
    fn adopt(&mut self) -> Option<(Slot, VcpuId)> {
        if !P::IS_TRUSTED {
            self.vet();
        }
        let Some(slot) = self.running() else {
            self.show_idle();
            return None;
        };
        let vcpu = self.slot(slot).vcpu;
        self.counters.running.store(u32::from(vcpu.0), Ordering::Relaxed);
        Some((slot, vcpu))
    }

    #[inline(never)]
    fn show_idle(&self) {
        self.counters.running.store(NONE, Ordering::Relaxed);
    }

    /// Tells whether the decision in force had any effects besides the choice.
    #[inline(always)]
    pub const fn has_signals(&self) -> bool {
        self.in_force.has_signals
    }

    /// Takes the effects of the decision in force besides the choice. Afterwards these effects count as told.
    pub fn take_signals(&mut self) -> Signals {
        self.in_force.has_signals = false;
        let signals = self.policy.signals();
        if P::IS_TRUSTED {
            return signals;
        }
        let all = self.every_slot();
        let own = |SlotSet(slots)| SlotSet(slots & all);
        Signals {
            exhausted: own(signals.exhausted),
            replenished: own(signals.replenished),
            window_start: own(signals.window_start),
            period_start: own(signals.period_start),
            ..signals
        }
    }

    /// Leaves of a decision only the parts that the kernel can stand by. A slot that is ready runs, or none
    /// does, and no slot is named that does not exist.
    fn vet(&mut self) {
        let slot = self.in_force.slot;
        if slot.0 >= self.count || !self.slot(slot).activity.is_ready() {
            self.in_force.slot = InForce::NOBODY;
        }
        self.in_force.interested.0 &= self.every_slot();
    }

    /// Returns the slots in use, as a set.
    fn every_slot(&self) -> u32 {
        self.all().fold(0, |all, slot| all | bit(slot.0))
    }

    /// Asks for another schedule from the next frame on. Requires: settled.
    pub fn change_schedule(&mut self, schedule: u8, now: Ticks) -> Result<(), PolicyError> {
        self.policy.change_schedule(schedule, now.0)
    }

    /// Returns the schedule in force.
    pub fn schedule(&self) -> ScheduleStatus {
        self.policy.schedule()
    }
}

#[cfg(test)]
mod tests;
