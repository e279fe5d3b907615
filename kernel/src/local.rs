// SPDX-License-Identifier: Apache-2.0
//! The state of one pCPU alone: its policy and the activities of its vCPUs.
//!
//! The loop of the pCPU owns this state. No other pCPU ever sees the state, so nothing in here is atomic or
//! locked. This is the only place that talks to the policy. It keeps the policy's protocol: a slot is
//! reported ready when it gets something to do, and a slot that ran is reported stopped before the next
//! decision.

use crate::parts::{Part, has};
use bulkhead_arch_api::{GuestPhys, MAX_PCPUS, PartitionId, Ticks, VcpuId};
use bulkhead_sched::{
    AnyPolicy, InForce, MAX_SLOTS, PcpuPolicy, PolicyError, PolicyParameters, ScheduleStatus, Signals, Slot,
    SlotSet, StopReason,
};

use crate::load::Cursor;
use crate::mailbox::{bit, bits};
use crate::network::Intake;
use crate::orders::Orders;
use crate::record::add_ticks;
use crate::time::Timebase;
use crate::trace::Tracer;
use crate::untold::Untold;
use crate::wait::{Pause, Wait};
use bulkhead_abi::atomic::AtomicU64;
use bulkhead_abi::log::{NONE, Pcpu, Vcpu, in_steps};
use bulkhead_abi::trace::{BlockReason, Event};
use core::sync::atomic::Ordering;

/// A function that makes an event about a vCPU.
type OfVcpu = fn(u8) -> Event;

/// The counters of a slot that is not in use.
static NOWHERE: Vcpu = Vcpu::new();

/// The activity of a vCPU. The variants that [`Activity::is_ready`] names come first, and the tag is a byte
/// of its own, because every decision asks for the tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Activity {
    /// The vCPU runs, or would run if it were its turn.
    Ready,
    /// The partition of the vCPU is being loaded in the time of the vCPU.
    Loading(Cursor),
    /// The vCPU revokes, in its time, all that was derived from the capability with this index. If the flag
    /// is true, it also revokes that capability.
    Revoking(u64, bool),
    /// The vCPU, a task, is about to be interrupted by its upcall, in its own time.
    Calling,
    /// The vCPU is blocked in a hypercall and was woken. In its own time the vCPU finds out that there was no
    /// reason to wake it.
    Looking(Pause),
    /// The vCPU does nothing: it is switched off.
    Off,
    /// The vCPU has ended its partition, or its fault has. It must not go on before it is switched off.
    Ending,
    /// The vCPU waits for an interrupt, or for its own timer.
    Idle(Ticks),
    /// The vCPU is blocked in a hypercall.
    Blocked(Pause),
}

impl Activity {
    /// Tells whether the policy has the vCPU among the ready ones.
    #[must_use]
    pub const fn is_ready(self) -> bool {
        matches!(
            self,
            Self::Ready | Self::Loading(_) | Self::Revoking(..) | Self::Calling | Self::Looking(_)
        )
    }

    /// Returns the activity of a vCPU that waits, until a deadline or until the time of its timer.
    #[inline(always)]
    #[must_use]
    pub const fn waiting(wait: Wait, until: Ticks, timer: Ticks) -> Self {
        Self::Blocked(Pause { until, timer, wait })
    }

    /// Returns the wait of a vCPU that is blocked, or that looks why it was woken.
    #[must_use]
    pub const fn pause(self) -> Option<Pause> {
        match self {
            Self::Blocked(pause) | Self::Looking(pause) => Some(pause),
            _ => None,
        }
    }

    /// Returns the reason for which the policy is told that the vCPU stops.
    #[inline]
    const fn stop_reason(self) -> StopReason {
        if self.is_ready() {
            StopReason::Preempted
        } else {
            StopReason::Blocked
        }
    }

    /// Returns the time at which the vCPU wants to be looked at without anybody waking it.
    #[must_use]
    #[cfg_attr(feature = "small-tables", inline(never))]
    pub const fn until(self) -> Ticks {
        match self {
            Self::Idle(until) => until,
            Self::Blocked(pause) => pause.deadline(),
            Self::Off
            | Self::Ready
            | Self::Loading(_)
            | Self::Revoking(..)
            | Self::Calling
            | Self::Looking(_)
            | Self::Ending => Ticks::NEVER,
        }
    }
}

/// Slots whose tasks can have an upcall. A class with small tables has no upcalls.
const UPCALL_SLOTS: usize = if has(Part::Upcalls) { MAX_SLOTS } else { 0 };

/// The upcall that a task waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Upcall {
    /// The partition whose gate it watches.
    pub gate: PartitionId,
    /// The slot of the capability for that gate.
    pub index: u8,
    /// Its first instruction.
    pub entry: GuestPhys,
    /// The memory for the place where the task was.
    pub frame: GuestPhys,
    /// The time at which it comes without an event.
    pub until: Ticks,
}

/// One vCPU of this pCPU. Its size is a power of two, so that one instruction finds the place of a slot.
#[derive(Clone, Copy, Debug)]
#[repr(align(32))]
pub struct SlotState {
    /// The number of the vCPU.
    pub vcpu: VcpuId,
    /// The activity of the vCPU.
    pub activity: Activity,
    /// The time at which the watchdog of the vCPU's partition must be looked at. Only vCPU 0 of a partition
    /// has one.
    pub watchdog: Ticks,
    /// The counters of the vCPU's exits and of its time.
    pub counters: &'static Vcpu,
}

const _: () = assert!(
    size_of::<SlotState>() == 64,
    "a larger one costs instructions and memory: a slot is found by a shift"
);

impl SlotState {
    const UNUSED: Self = Self {
        vcpu: VcpuId(0),
        activity: Activity::Off,
        watchdog: Ticks::NEVER,
        counters: &NOWHERE,
    };
}

/// Returns slots that are not in use. The function is not inlined, so the slots are written where they stay.
#[inline(never)]
const fn unused() -> [SlotState; MAX_SLOTS] {
    [SlotState::UNUSED; MAX_SLOTS]
}

/// The lines and output that are due, as far as they are handled before anything runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Chore {
    /// Nothing.
    None,
    /// Nothing this time, because another slot came first.
    PutOff,
    /// One step, if no other slot comes first.
    Due,
    /// One step, which was put off once.
    Owed,
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
    /// A time before which no slot's own time comes.
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
    /// The time at which output that this pCPU's partitions left unsent is to be handed on. `NEVER` if there
    /// is none.
    drain_due: Ticks,
    /// The line or output that is to be handed on before anything runs.
    pub(crate) chore: Chore,
    /// True if a line has just been written that the transmitter has not been given.
    pub(crate) has_line: bool,
    /// True if more output waits and the transmitter took all of the last call's.
    pub(crate) may_pump: bool,
    /// The slot that pays for more steps of output, because its own exit has left output.
    pub(crate) payer: Option<Slot>,
    /// The number of steps that the slot still pays for.
    pub(crate) paid_steps: u8,
    /// The place for the records of this pCPU.
    pub tracer: Tracer,
    slots: [SlotState; MAX_SLOTS],
    /// The slots whose tasks wait for an upcall.
    watching: u32,
    /// The upcalls that tasks wait for.
    upcalls: [Option<Upcall>; UPCALL_SLOTS],
    /// The slots whose vCPUs may wait at a port, or have a call.
    engaged: u32,
    /// The slots that lend their places.
    lent: u32,
    /// By slot that lends: the slot that it lends to.
    borrowers: [Slot; MAX_SLOTS],
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
            watching: 0,
            upcalls: [None; UPCALL_SLOTS],
            engaged: 0,
            lent: 0,
            borrowers: [Slot(0); MAX_SLOTS],
            count: 0,
            since: Ticks::NEVER,
            in_force: InForce::NONE,
            due: Ticks(0),
            other_due: Ticks::NEVER,
            limit: Ticks::NEVER,
            reschedule: true,
            armed: Ticks::NEVER,
            drain_due: Ticks::NEVER,
            chore: Chore::None,
            has_line: false,
            may_pump: false,
            payer: None,
            paid_steps: 0,
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
        if self.watching == 0 {
            return self.in_force.interested;
        }
        let own = self.running().map_or(0, |slot| bit(slot.0) & self.watching);
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
        self.wait_until(slot, activity, activity.until());
    }

    /// Does [`Local::wait`] with an activity that ends at the time `until` ([`Activity::until`]).
    #[inline(always)]
    fn wait_until(&mut self, slot: Slot, activity: Activity, until: Ticks) {
        self.slot_mut(slot).activity = activity;
        if until != Ticks::NEVER {
            self.due = self.due.min(until);
        }
    }

    /// Makes the running slot wait for an interrupt, or until a time.
    #[inline(always)]
    pub fn idle(&mut self, slot: Slot, until: Ticks) {
        self.wait_until(slot, Activity::Idle(until), until);
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
        let state = self.slot_mut(slot);
        state.activity = Activity::Off;
        state.watchdog = Ticks::NEVER;
    }

    /// Marks a slot whose vCPU is about to wait at a port, or to call.
    pub const fn engage(&mut self, slot: Slot) {
        self.engaged |= bit(slot.0);
    }

    /// Tells whether a slot may have something to leave at ports. Returns true once.
    pub const fn disengage(&mut self, slot: Slot) -> bool {
        let was = self.engaged & bit(slot.0) != 0;
        self.engaged &= !bit(slot.0);
        was
    }

    /// Tells whether any slot may have something to leave at ports. A slot that lends has.
    #[inline]
    pub const fn is_any_engaged(&self) -> bool {
        self.engaged != 0
    }

    /// Tells whether a slot lends its place.
    #[inline]
    pub const fn is_lending(&self, slot: Slot) -> bool {
        self.lent & bit(slot.0) != 0
    }

    /// Tells whether a slot may run the place of another one: its vCPU is on, or loads its partition.
    pub fn can_borrow(&self, slot: Slot) -> bool {
        match self.slot(slot).activity {
            Activity::Ready
            | Activity::Revoking(..)
            | Activity::Calling
            | Activity::Looking(_)
            | Activity::Idle(_)
            | Activity::Loading(_)
            | Activity::Blocked(_) => true,
            Activity::Off | Activity::Ending => false,
        }
    }

    /// Lends the place of `from` to `to`. Ends the decision in force if `from` runs. A decision is wanted
    /// then.
    ///
    /// # Errors
    /// [`PolicyError`]: there is no loan.
    pub fn lend(&mut self, from: Slot, to: Slot, now: Ticks) -> Result<(), PolicyError> {
        // A loan that is refused leaves the decision in force. A vCPU that goes on to wait blocks in it.
        self.policy.check_donation(from, to)?;
        if self.running() == Some(from) {
            self.settle(now);
        }
        self.reschedule = true;
        self.policy.donate(from, to, now.0)?;
        self.lent |= bit(from.0);
        if let Some(borrower) = self.borrowers.get_mut(usize::from(from.0)) {
            *borrower = to;
        }
        Ok(())
    }

    /// Lends the place of `from`, which waits, to `to` from now on, whomever it was lent to before.
    pub fn lend_on(&mut self, from: Slot, to: Slot, now: Ticks) {
        if self.is_lending(from) {
            if self.borrower(from) == Some(to) {
                return;
            }
            self.take_back(from, now);
        }
        // Without a loan, `to` runs in its own place.
        let _without = self.lend(from, to, now);
    }

    /// Ends the loan of `from`, which waits on, if there is one.
    pub fn lend_no_more(&mut self, from: Slot, now: Ticks) {
        if self.is_lending(from) {
            self.take_back(from, now);
        }
    }

    /// Lets `to`, which is blocked, run in the place of `from`, which runs and blocks, without a decision.
    /// The caller sees to what both do then. Returns false if a decision is needed. Then nothing has
    /// changed.
    #[inline]
    pub fn hand_over(&mut self, from: Slot, to: Slot, now: Ticks) -> bool {
        let ran = now.since(self.since).0;
        // A decision that must be checked is taken the usual way.
        if !P::IS_TRUSTED || !self.policy.hand_over((from, to), ran, now.0, &mut self.in_force) {
            return false;
        }
        self.lent |= bit(from.0);
        if let Some(borrower) = self.borrowers.get_mut(usize::from(from.0)) {
            *borrower = to;
        }
        self.pass_on(from, to, now);
        true
    }

    /// Lets `from` run in its place again, which it lent to `to`. `to` runs, and blocks. The rest is as for
    /// [`Local::hand_over`].
    #[inline]
    pub fn hand_back(&mut self, from: Slot, to: Slot, now: Ticks) -> bool {
        let ran = now.since(self.since).0;
        if !P::IS_TRUSTED || !self.policy.hand_back((from, to), ran, now.0, &mut self.in_force) {
            return false;
        }
        self.lent &= !bit(from.0);
        self.pass_on(to, from, now);
        true
    }

    /// Counts the time of `from`, after which `to` runs.
    #[inline]
    fn pass_on(&mut self, from: Slot, to: Slot, now: Ticks) {
        let counters = self.slot(from).counters;
        self.spend(&counters.ran, now);
        let vcpu = self.slot(to).vcpu;
        self.counters.running.store(u32::from(vcpu.0), Ordering::Relaxed);
    }

    /// Tells whether a slot waits for an upcall.
    #[inline]
    pub const fn is_watching(&self, slot: Slot) -> bool {
        self.watching & bit(slot.0) != 0
    }

    fn borrower(&self, from: Slot) -> Option<Slot> {
        self.borrowers.get(usize::from(from.0)).copied()
    }

    /// Ends the loan of a slot that lends, if there is one. The policy then has the slot among the ready
    /// ones. A decision is wanted.
    pub fn end_loan(&mut self, from: Slot, now: Ticks) {
        // The policy has the loan: nothing else ends it.
        let _ended = self.policy.return_donation(from, now.0);
        self.lent &= !bit(from.0);
        self.reschedule = true;
    }

    /// Ends all loans of and to a slot that is being switched off. The slots that lent to it wait on without
    /// a loan. Bounded by the slots in use.
    pub fn end_loans(&mut self, slot: Slot, now: Ticks) {
        for from in bits(self.lent).map(Slot) {
            if from == slot || self.borrower(from) == Some(slot) {
                self.take_back(from, now);
            }
        }
    }

    /// Ends the loan of a slot that waits on. Ends the decision in force: it may run the slot's place.
    fn take_back(&mut self, from: Slot, now: Ticks) {
        if self.running().is_some() {
            self.settle(now);
        }
        // The policy has the loan. Those who lend to `from` still do.
        let _ended = self.policy.retract_donation(from, now.0);
        self.lent &= !bit(from.0);
        self.reschedule = true;
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
        let own = bits(concerned).map(|slot| self.own_time(Slot(slot)).min(self.slot(Slot(slot)).watchdog));
        let is_armed = self.armed <= own.fold(self.end(), Ord::min);
        let is_planned = self.has_output() || matches!(self.chore, Chore::Due | Chore::Owed);
        self.reschedule || is_armed && (is_planned || !self.has_line)
    }

    /// Returns the part of [`Local::deadline`] that belongs to the slots. Bounded by the slots in use.
    #[inline(never)]
    fn earliest_of_slots(&mut self) -> Ticks {
        let (mut due, mut deadline) = (Ticks::NEVER, Ticks::NEVER);
        let SlotSet(concerned) = self.concerned();
        for slot in self.all() {
            let state = self.slot(slot);
            let until = self.own_time(slot);
            due = due.min(until.min(state.watchdog));
            if self.in_force.interested.0 & bit(slot.0) != 0 || self.running() == Some(slot) {
                deadline = deadline.min(until);
            }
            // The watchdog of any other slot waits: it must not interrupt a more important vCPU again and
            // again.
            if concerned & bit(slot.0) != 0 {
                deadline = deadline.min(state.watchdog);
            }
        }
        self.due = due;
        deadline
    }

    /// Returns the time at which a slot has something to do without anybody waking it: the end of its wait,
    /// or of a task that computes, its upcall.
    pub fn own_time(&self, slot: Slot) -> Ticks {
        let activity = self.slot(slot).activity;
        match self.upcall(slot) {
            Some(upcall) if matches!(activity, Activity::Ready) => upcall.until,
            _ => activity.until(),
        }
    }

    /// Returns the upcall that a slot waits for.
    pub fn upcall(&self, slot: Slot) -> Option<Upcall> {
        self.upcalls.get(usize::from(slot.0)).copied().flatten()
    }

    /// Sets the upcall that a slot waits for. Returns the earlier one.
    pub fn set_upcall(&mut self, slot: Slot, upcall: Option<Upcall>) -> Option<Upcall> {
        if let Some(upcall) = upcall {
            self.due = self.due.min(upcall.until);
            self.watching |= bit(slot.0);
        } else {
            self.watching &= !bit(slot.0);
        }
        let place = self.upcalls.get_mut(usize::from(slot.0))?;
        core::mem::replace(place, upcall)
    }

    /// Sets the time at which to look at the watchdog of the partition whose first vCPU is in `slot`.
    pub fn set_watchdog(&mut self, slot: Slot, at: Ticks) {
        self.slot_mut(slot).watchdog = at;
        self.due = self.due.min(at);
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
        self.other_due = self.drain_due.min(self.limit).min(self.intake.due).min(ordered);
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
        self.drain_due = self.drain_due.min(at);
        self.other_due = self.other_due.min(at);
    }

    /// Tells whether output left unsent is to be handed on at some time.
    pub fn has_output(&self) -> bool {
        self.drain_due != Ticks::NEVER
    }

    /// Tells whether output left unsent is to be handed on now. Returns true once.
    pub fn take_output(&mut self, now: Ticks) -> bool {
        let is_due = self.drain_due <= now;
        if is_due {
            self.drain_due = Ticks::NEVER;
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

    /// Tells whether some slot's own time, or the time of something else, has come.
    #[inline(always)]
    pub fn is_due(&self, now: Ticks) -> bool {
        self.due.min(self.other_due) <= now
    }
}

#[cfg(test)]
mod tests;
