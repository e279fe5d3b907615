// SPDX-License-Identifier: Apache-2.0
//! What belongs to one pCPU alone: its policy and what its vCPUs are doing.
//!
//! Owned by the pCPU's loop; no other pCPU ever sees it, so nothing in here is atomic or locked. This is
//! the only place that talks to the policy, and it keeps the policy's protocol: a slot is reported ready
//! when it gets something to do, and a slot that ran is reported stopped before the next decision.

use bulkhead_arch_api::{PartitionId, Ticks, VcpuId};
use bulkhead_sched::{
    AnyPolicy, Decision, MAX_SLOTS, Outcome, PcpuPolicy, PolicyError, PolicyParameters, ScheduleStatus,
    Signals, Slot, SlotSet, StopReason, Successor,
};

use crate::dispatch::Reports;
use crate::load::Cursor;
use crate::mailbox::{Mailbox, bit, bits};
use crate::network::Intake;
use crate::record::add_ticks;
use crate::trace::Tracer;
use bulkhead_abi::log::{NONE, Pcpu, Vcpu};
use bulkhead_abi::trace::{BlockReason, Event};
use core::sync::atomic::Ordering;

/// An event about a vCPU.
type OfVcpu = fn(u8) -> Event;

/// [`Local::running`] of a pCPU that waits.
const NOBODY: u8 = Successor::NOBODY.0;

/// Counters of a slot that is not in use.
static NOWHERE: Vcpu = Vcpu::new();

/// What a vCPU is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Activity {
    /// Nothing: it is switched off.
    Off,
    /// It runs, or would if it were its turn.
    Ready,
    /// Its partition is being loaded in its time.
    Loading(Cursor),
    /// It is ready, but a report about it comes first, in its time.
    Reporting,
    /// It has ended its partition, or a fault of it has: it must not go on before it is switched off.
    Ending,
    /// It waits for an interrupt, or for its own timer.
    Idle(Ticks),
    /// It waits in a hypercall for events of this partition's gate, at most until the first time; its own timer
    /// interrupts that at the second.
    Waiting(PartitionId, Ticks, Ticks),
    /// It sleeps in a hypercall until the first time; its own timer interrupts that at the second.
    Sleeping(Ticks, Ticks),
}

impl Activity {
    /// Whether the policy has it among the ready.
    #[must_use]
    pub const fn is_ready(self) -> bool {
        matches!(self, Self::Ready | Self::Loading(_) | Self::Reporting)
    }

    /// Why the policy is told that it stops.
    #[inline]
    const fn stop_reason(self) -> StopReason {
        if self.is_ready() {
            StopReason::Preempted
        } else {
            StopReason::Blocked
        }
    }

    /// When it wants to be looked at without anybody waking it.
    #[must_use]
    pub const fn until(self) -> Ticks {
        match self {
            Self::Idle(until) => until,
            Self::Waiting(_, until, own) | Self::Sleeping(until, own) => {
                if own.0 < until.0 {
                    own
                } else {
                    until
                }
            }
            Self::Off | Self::Ready | Self::Loading(_) | Self::Reporting | Self::Ending => Ticks::NEVER,
        }
    }
}

/// One vCPU of this pCPU. Its size is a power of two: where a slot's is costs one instruction.
#[derive(Clone, Copy, Debug)]
#[repr(align(32))]
pub struct SlotState {
    /// Which vCPU.
    pub vcpu: VcpuId,
    /// What it is doing.
    pub activity: Activity,
    /// When its partition's watchdog must be looked at; only for vCPU 0 of a partition.
    pub watchdog: Ticks,
    /// Where its exits and its time are counted.
    pub counters: &'static Vcpu,
}

impl SlotState {
    const UNUSED: Self = Self {
        vcpu: VcpuId(0),
        activity: Activity::Off,
        watchdog: Ticks::NEVER,
        counters: &NOWHERE,
    };
}

/// No slot is in use. On its own, so that they are written where they stay.
#[inline(never)]
const fn unused() -> [SlotState; MAX_SLOTS] {
    [SlotState::UNUSED; MAX_SLOTS]
}

/// State of one pCPU. In this order: what every decision touches comes first, the large tables last.
#[derive(Debug)]
#[repr(C)]
pub struct Local<P = AnyPolicy> {
    counters: &'static Pcpu,
    count: u8,
    /// The slot that the decision in force runs, or [`NOBODY`].
    running: u8,
    since: Ticks,
    until: Ticks,
    interested: SlotSet,
    /// No slot's own time comes before this.
    due: Ticks,
    /// When something else is due: the end of the system's time, on the boot pCPU, or output left behind.
    other_due: Ticks,
    /// When the system's time ends, if that is this pCPU's to see to.
    limit: Ticks,
    /// A decision is wanted before anything runs.
    pub reschedule: bool,
    /// The deadline the clock is armed with, `NEVER` if it is not, 0 if it has fired.
    pub armed: Ticks,
    /// When output that this pCPU's partitions left behind is to be handed on, `NEVER` if there is none.
    drain_due: Ticks,
    /// Where its records go.
    pub tracer: Tracer,
    slots: [SlotState; MAX_SLOTS],
    policy: P,
    /// What the log is still to be told.
    pub reports: Reports,
    /// What frames from outside may take.
    intake: Intake,
}

impl<P: PcpuPolicy> Local<P> {
    /// A pCPU without vCPUs, which will have a policy of this kind; it wants a decision.
    #[inline(always)]
    pub fn new(counters: &'static Pcpu, tracer: Tracer, kind: &PolicyParameters<'_>) -> Self {
        Self {
            counters,
            slots: unused(),
            count: 0,
            running: NOBODY,
            since: Ticks::NEVER,
            until: Ticks::NEVER,
            interested: SlotSet(0),
            due: Ticks(0),
            other_due: Ticks::NEVER,
            limit: Ticks::NEVER,
            reschedule: true,
            armed: Ticks::NEVER,
            drain_due: Ticks::NEVER,
            reports: Reports::new(),
            intake: Intake::UNLIMITED,
            tracer,
            policy: P::blank(kind),
        }
    }

    /// One more vCPU, which is off, and where it is counted. Those of a pCPU come in the order of their slots.
    pub fn add(&mut self, vcpu: VcpuId, counters: &'static Vcpu) {
        if let Some(slot) = self.slots.get_mut(usize::from(self.count)) {
            slot.vcpu = vcpu;
            slot.counters = counters;
            self.count = self.count.saturating_add(1);
        }
    }

    /// The policy, to be made that of this pCPU.
    pub(crate) const fn policy_mut(&mut self) -> &mut P {
        &mut self.policy
    }

    /// All slots in use.
    pub fn all(&self) -> impl Iterator<Item = Slot> + use<P> {
        (0..self.count).map(Slot)
    }

    /// State of a slot.
    #[inline]
    #[expect(clippy::indexing_slicing, reason = "a masked index is below MAX_SLOTS")]
    pub fn slot(&self, slot: Slot) -> &SlotState {
        &self.slots[usize::from(slot.0) & (MAX_SLOTS - 1)]
    }

    /// State of a slot, to change.
    #[inline]
    #[expect(clippy::indexing_slicing, reason = "a masked index is below MAX_SLOTS")]
    pub fn slot_mut(&mut self, slot: Slot) -> &mut SlotState {
        &mut self.slots[usize::from(slot.0) & (MAX_SLOTS - 1)]
    }

    /// The slot that the decision in force runs.
    #[inline]
    pub const fn running(&self) -> Option<Slot> {
        if self.running == NOBODY {
            None
        } else {
            Some(Slot(self.running))
        }
    }

    /// The slots whose readiness would change the decision in force.
    pub const fn interested(&self) -> SlotSet {
        self.interested
    }

    /// `slot` has something to do.
    pub fn make_ready(&mut self, slot: Slot, now: Ticks) {
        if self.tracer.is_on() {
            self.trace_wake(slot, now);
        }
        self.slot_mut(slot).activity = Activity::Ready;
        self.policy.wake(slot, now.0);
        if self.interested.0 & bit(slot.0) != 0 {
            self.reschedule = true;
        }
    }

    /// The partition of `slot` is to be loaded in its time.
    pub fn make_loading(&mut self, slot: Slot, cursor: Cursor, now: Ticks) {
        self.make_ready(slot, now);
        self.slot_mut(slot).activity = Activity::Loading(cursor);
    }

    /// A critical interrupt came for `slot`. What it has to do was made ready before; loading its partition is not that.
    pub fn urge(&mut self, slot: Slot, now: Ticks) {
        if matches!(self.slot(slot).activity, Activity::Ready | Activity::Reporting) {
            let vcpu = self.slot(slot).vcpu.0;
            self.tracer.record(now, Event::Critical { vcpu });
            self.policy.critical(slot, now.0);
            self.reschedule = true;
        }
    }

    /// The running slot has nothing to do before it is made ready again.
    #[inline]
    pub fn block(&mut self, slot: Slot, activity: Activity) {
        self.slot_mut(slot).activity = activity;
        self.due = self.due.min(activity.until());
        self.reschedule = true;
    }

    /// `slot` is switched off. Requires: no slot is running ([`Local::settle`]).
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
        let state = self.slot_mut(slot);
        state.activity = Activity::Off;
        state.watchdog = Ticks::NEVER;
    }

    #[inline(never)]
    fn trace_wake(&self, slot: Slot, now: Ticks) {
        let state = self.slot(slot);
        if !state.activity.is_ready() {
            self.tracer.record(now, Event::Wake { vcpu: state.vcpu.0 });
        }
    }

    /// What the decision brought about besides the choice.
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

    /// The decision that was taken at `now` stands.
    #[inline]
    pub fn trace_decision(&mut self, now: Ticks) {
        let to = self.running().map(|slot| (slot, self.slot(slot).vcpu));
        let before = self.tracer.shown();
        if before != to {
            let is_ready = before.is_some_and(|(slot, _)| self.slot(slot).activity.is_ready());
            self.tracer.switch(now, to, is_ready);
        }
    }

    /// Ends the decision in force.
    #[inline]
    pub fn settle(&mut self, now: Ticks) {
        let ran = now.since(self.since);
        // Whoever reads the counters adds what has passed since then; the board may go off between these two stores, and
        // a moment counted by neither is better than one counted twice.
        self.counters.since.store(now.0, Ordering::Relaxed);
        if let Some(slot) = self.running() {
            self.running = NOBODY;
            let why = self.slot(slot).activity.stop_reason();
            add_ticks(&self.slot(slot).counters.ran, ran);
            self.policy.stopped(slot, why, ran.0, now.0);
        } else {
            add_ticks(&self.counters.idle, ran);
        }
    }

    /// Takes the next decision; what it brought about besides. Requires: settled.
    #[inline]
    pub fn pick(&mut self, now: Ticks) -> Option<Signals> {
        if P::IS_TRUSTED {
            let next = self.policy.resumed(now.0);
            if next.is_valid() {
                self.adopt(next.slot(), next.until(), next.interested(), now);
                return None;
            }
        }
        let outcome = self.policy.decide(now.0);
        let outcome = self.vetted(outcome);
        self.adopt_outcome(&outcome, now);
        outcome.signals.filter(|signals| *signals != Signals::default())
    }

    /// [`Local::settle`] and [`Local::pick`] in one step. Requires: `slot` is running.
    pub fn follow(&mut self, slot: Slot, now: Ticks) -> Option<Signals> {
        let (ran, state) = (now.since(self.since), self.slot(slot));
        let (why, counters) = (state.activity.stop_reason(), state.counters);
        let next = match why {
            _ if !P::IS_TRUSTED => Successor::NONE,
            StopReason::Preempted => self.policy.preempted(slot, ran.0, now.0),
            _ => self.policy.blocked(slot, ran.0, now.0),
        };
        if next.is_valid() {
            self.adopt(next.slot(), next.until(), next.interested(), now);
            add_ticks(&counters.ran, ran);
            return None;
        }
        let outcome = self.policy.follow(slot, why, ran.0, now.0);
        let outcome = self.vetted(outcome);
        self.adopt_outcome(&outcome, now);
        add_ticks(&counters.ran, ran);
        outcome.signals.filter(|signals| *signals != Signals::default())
    }

    /// The running slot waits for an interrupt, or until then.
    #[inline(always)]
    pub fn idle(&mut self, slot: Slot, until: Ticks) {
        self.block(slot, Activity::Idle(until));
    }

    /// [`Local::idle`], and the usual decision: nobody writes, the clock stays as it is, and another slot goes on at once. Who that is, and then the decision stands. `None`: whatever is left to do, [`Local::reschedule`] and the
    /// clock say. Requires: no new decision is wanted. What `idle`, `follow` and `adopt` would do one after the other, in one step and with each fact stored once.
    #[inline(always)]
    pub fn pass(
        &mut self,
        slot: Slot,
        until: Ticks,
        mailbox: &Mailbox,
        now: impl FnOnce() -> Ticks,
    ) -> Option<Slot> {
        self.slot_mut(slot).activity = Activity::Idle(until);
        if !P::IS_TRUSTED || self.due.0 & until.0 != Ticks::NEVER.0 {
            self.due = self.due.min(until);
            self.reschedule = true;
            return None;
        }
        // Whatever else is due interrupts whoever runs, for which the clock is armed or is about to be.
        let now = now();
        let ran = now.since(self.since);
        let Some((decision, interested)) = self.policy.blocked_at_once(slot, ran.0, now.0) else {
            self.reschedule = true;
            return None;
        };
        add_ticks(&self.slot(slot).counters.ran, ran);
        self.since = now;
        self.interested = interested;
        let counters = self.counters;
        // As in `settle`: a moment that nobody counts is better than one counted twice.
        counters.since.store(now.0, Ordering::Relaxed);
        let (next, until) = match decision {
            Decision::Run(next, until) => (next, Ticks(until)),
            Decision::Idle(until) => {
                self.pass_to_nobody(Ticks(until), mailbox);
                return None;
            }
        };
        (self.running, self.until) = (next.0, until);
        let state = self.slot(next);
        let is_ready = state.activity == Activity::Ready;
        counters.running.store(u32::from(state.vcpu.0), Ordering::Relaxed);
        mailbox.publish(interested);
        if !mailbox.is_empty() {
            self.reschedule = true;
            return None;
        }
        (is_ready && self.armed == self.other_due.min(until)).then_some(next)
    }

    /// A device asks for `slot`, which waits for that, and the usual decision follows. False, and nothing has been done, if it is not so:
    /// somebody has written, something is due, or the policy has more to say. What `make_ready`, `follow` or `settle`, and
    /// `adopt` would do one after the other.
    #[inline(always)]
    pub fn rise(&mut self, slot: Slot, mailbox: &Mailbox, now: Ticks) -> bool {
        let is_usual = P::IS_TRUSTED
            && !self.reschedule
            && matches!(self.slot(slot).activity, Activity::Idle(_))
            && mailbox.is_empty()
            && !self.is_due(now);
        if !is_usual {
            return false;
        }
        let (running, ran) = (self.running(), now.since(self.since));
        let Some((decision, interested)) = self.policy.woken_at_once(slot, running, ran.0, now.0) else {
            return false;
        };
        self.slot_mut(slot).activity = Activity::Ready;
        let ran_by = match running {
            Some(running) => &self.slot(running).counters.ran,
            None => &self.counters.idle,
        };
        add_ticks(ran_by, ran);
        let (next, until) = match decision {
            Decision::Run(next, until) => (next, until),
            Decision::Idle(until) => (Successor::NOBODY, until),
        };
        self.adopt(next, until, interested, now);
        mailbox.publish(interested);
        self.reschedule = !mailbox.is_empty();
        true
    }

    /// The end of [`Local::pass`] if nobody is ready.
    #[inline(never)]
    fn pass_to_nobody(&mut self, until: Ticks, mailbox: &Mailbox) {
        (self.running, self.until) = (NOBODY, until);
        self.counters.running.store(NONE, Ordering::Relaxed);
        mailbox.publish(self.interested);
        self.reschedule = !mailbox.is_empty();
    }

    /// Nobody ran, and mail that was taken may have made somebody ready: [`Local::settle`] and [`Local::pick`] by the short way.
    /// False: nothing was done. Requires: nobody is running.
    #[inline(always)]
    pub fn resume(&mut self, now: Ticks) -> bool {
        if !P::IS_TRUSTED || self.is_due(now) {
            return false;
        }
        let next = self.policy.resumed(now.0);
        if next.is_valid() {
            let idled = now.since(self.since);
            self.adopt(next.slot(), next.until(), next.interested(), now);
            add_ticks(&self.counters.idle, idled);
        }
        next.is_valid()
    }

    fn adopt_outcome(&mut self, outcome: &Outcome, now: Ticks) {
        let (slot, until) = match outcome.decision {
            Decision::Run(slot, until) => (slot, until),
            Decision::Idle(until) => (Successor::NOBODY, until),
        };
        self.adopt(slot, until, outcome.interested, now);
    }

    /// What of a decision the kernel can stand by: nobody runs who is not ready, and only slots in use are spoken of.
    #[inline(always)]
    fn vetted(&self, outcome: Outcome) -> Outcome {
        if P::IS_TRUSTED {
            return outcome;
        }
        let exists = |SlotSet(slots): SlotSet| {
            let all = self.all().fold(0, |all, slot| all | bit(slot.0));
            SlotSet(slots & all)
        };
        let decision = match outcome.decision {
            Decision::Run(slot, until) if slot.0 >= self.count || !self.slot(slot).activity.is_ready() => {
                Decision::Idle(until)
            }
            stands => stands,
        };
        let signals = outcome.signals.map(|signals| Signals {
            exhausted: exists(signals.exhausted),
            replenished: exists(signals.replenished),
            window_start: exists(signals.window_start),
            period_start: exists(signals.period_start),
            ..signals
        });
        Outcome {
            decision,
            interested: exists(outcome.interested),
            signals,
        }
    }

    /// This decision is in force from now on.
    fn adopt(&mut self, slot: Slot, until: u64, interested: SlotSet, now: Ticks) {
        self.reschedule = false;
        self.since = now;
        self.interested = interested;
        self.until = Ticks(until);
        self.running = slot.0;
        let running = match slot {
            Successor::NOBODY => NONE,
            slot => u32::from(self.slot(slot).vcpu.0),
        };
        let counters = self.counters;
        counters.running.store(running, Ordering::Relaxed);
        counters.since.store(now.0, Ordering::Relaxed);
    }

    /// Another schedule from the next frame on. Requires: settled.
    pub fn change_schedule(&mut self, schedule: u8, now: Ticks) -> Result<(), PolicyError> {
        self.policy.change_schedule(schedule, now.0)
    }

    /// The schedule in force.
    pub fn schedule(&self) -> ScheduleStatus {
        self.policy.schedule()
    }

    /// When the decision in force must be looked at again: its own end, or the timers of slots that would
    /// change it, or a watchdog, or what is due besides. Bounded by the slots in use.
    #[inline]
    pub fn deadline(&mut self) -> Ticks {
        let mut deadline = self.until.min(self.other_due);
        if self.due == Ticks::NEVER {
            return deadline;
        }
        let mut due = Ticks::NEVER;
        for slot in self.all() {
            let state = self.slot(slot);
            let until = state.activity.until();
            due = due.min(until.min(state.watchdog));
            if self.interested.0 & bit(slot.0) != 0 {
                deadline = deadline.min(until);
            }
            deadline = deadline.min(state.watchdog);
        }
        self.due = due;
        deadline
    }

    /// The watchdog of the partition whose first vCPU is in `slot` is to be looked at then.
    pub fn set_watchdog(&mut self, slot: Slot, at: Ticks) {
        self.slot_mut(slot).watchdog = at;
        self.due = self.due.min(at);
    }

    /// This pCPU sees to the end of the system's time.
    pub fn end_at(&mut self, limit: Ticks) {
        self.limit = limit;
        self.find_other_due();
    }

    fn find_other_due(&mut self) {
        self.other_due = self.drain_due.min(self.limit).min(self.intake.due);
    }

    /// This pCPU takes the frames from outside, with so much time in each period.
    pub(crate) const fn limit_intake(&mut self, intake: Intake) {
        self.intake = intake;
    }

    /// A frame from outside was taken from `began` to `ended`. False: no other one before [`Local::take_intake`] says so.
    pub(crate) fn charge_intake(&mut self, began: Ticks, ended: Ticks) -> bool {
        let has_more = self.intake.charge(began, ended);
        if !has_more {
            self.find_other_due();
            self.reschedule = true;
        }
        has_more
    }

    /// Whether frames from outside are to be taken again, which they were not.
    pub(crate) fn take_intake(&mut self, now: Ticks) -> bool {
        let is_due = self.intake.due <= now;
        if is_due {
            self.intake.due = Ticks::NEVER;
            self.find_other_due();
        }
        is_due
    }

    /// Output left behind is to be handed on then, or earlier if that is wanted already.
    pub fn drain_by(&mut self, at: Ticks) {
        self.drain_due = self.drain_due.min(at);
        self.other_due = self.other_due.min(at);
    }

    /// Whether output left behind is to be handed on at some time.
    pub fn has_output(&self) -> bool {
        self.drain_due != Ticks::NEVER
    }

    /// Whether output left behind is to be handed on; then it is no longer.
    pub fn take_output(&mut self, now: Ticks) -> bool {
        let is_due = self.drain_due <= now;
        if is_due {
            self.drain_due = Ticks::NEVER;
            self.find_other_due();
        }
        is_due
    }

    /// Whether some slot's own time, or that of something else, has come.
    #[inline]
    pub fn is_due(&self, now: Ticks) -> bool {
        self.due.min(self.other_due) <= now
    }
}

#[cfg(test)]
mod tests;
