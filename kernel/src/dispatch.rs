// SPDX-License-Identifier: Apache-2.0
//! The loop of a pCPU.
//!
//! ```text
//! decide   if wanted: take mail, wake what is due, ask the policy, arm the clock
//! run      the chosen vCPU, or one chunk of loading its partition, or wait
//! handle   the exit; most exits want no new decision and go straight back to `run`
//! ```
//!
//! A decision is taken only when something happened that can change the decision. So there is no periodic
//! tick. There is one way to take a decision, for every policy: end the decision in force, take mail, wake
//! the vCPUs that are due, ask the policy, publish the slots that the decision waits for, arm the clock.
//! [`Pcpu::decide`] and [`Pcpu::perform`] are the two halves of a round. Thus tests drive the very loop of
//! the hypervisor and can stop the world between the halves.
//!
//! Each file below this one holds one group of methods of [`Pcpu`]: `basis` (waits whose capability was taken
//! away), `call` (hypercalls), `circle` (waits that would have no end), `device` (virtual devices, consoles),
//! `exit` (handling of exits), `fault` (health events), `find` (capabilities by name), `gate` (events, and
//! the wait for them), `lifecycle` (start, stop, load), `loan` (loans of places), `report` (the log, and work
//! between decisions), `schedule` (windows, schedules), `sleep` (the wait for a time). `short` has the calls
//! that need no decision and no exit.
//!
//! A part of the kernel that a system can leave out (`crate::parts`) has a folder of its own, with its state
//! and a type with its methods. This type borrows the pCPU ([`Pcpu`]). Few of the methods are visible outside
//! the folder: the entry points of the part, for the core.

pub(crate) mod basis;
mod call;
mod circle;
pub(crate) mod device;
mod exit;
mod fault;
mod find;
mod gate;
mod lifecycle;
mod loan;
pub(crate) mod regions;
mod report;
mod schedule;
mod short;
mod sleep;
#[cfg(test)]
mod tests;

use crate::local::{Activity, Local};
use crate::mailbox::{Mailbox, Post, bit, bits};
use crate::parts::{PartOf, each_part};
use crate::policy;
use crate::port::is_handed_over;
use crate::shared::Shared;
use crate::system::System;
use crate::trace::Tracer;
use bulkhead_abi::log::Pcpu as Counters;
use bulkhead_abi::size::IS_SMALL;
use bulkhead_arch_api::{
    Arch, Drivers, Exit, MAX_PCPUS, MAX_VCPUS_PER_PARTITION, PartitionId, PcpuId, Ticks, VcpuId, VcpuSet,
};
use bulkhead_image::layout::PcpuRecord;
use bulkhead_sched::{AnyPolicy, PcpuPolicy, Slot, SlotSet};

/// Rounds of one decision before the loop is entered anew. Mail that came during a round causes the next
/// round.
const DECISION_ROUNDS: usize = 4;

/// The time between the judgements of two watchdogs that end together. A judgement writes a line, so a
/// decision judges one watchdog only.
const WATCHDOG_SPACE_NS: u64 = 50_000;

/// True if a partition can have several vCPUs. If false, only the life of a partition switches its vCPU on or
/// off, and no backend says otherwise.
const SEVERAL_VCPUS: bool = MAX_VCPUS_PER_PARTITION > 1;

/// The next step of the loop: the result of a decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Run this vCPU.
    Run(Slot, VcpuId),
    /// Do one chunk of work in the time of this vCPU: of loading its partition, of a revocation, of looking
    /// why the vCPU was woken, or its upcall.
    Load(Slot, VcpuId),
    /// Hand output on, because the time for that has come.
    Chore,
    /// Wait: no vCPU is ready.
    Idle,
    /// Decide again: mail kept coming.
    Again,
}

/// The identity of a pCPU, and its own parts of the shared state.
#[derive(Clone, Copy)]
pub(crate) struct Seat<'s, 'i> {
    pub id: PcpuId,
    pub system: &'s System<'i>,
    pub record: &'i PcpuRecord,
    pub counters: &'static Counters,
}

/// One pCPU: its machine, its share of the kernel's state, and its loop. The large parts come last, so that
/// everything else is near the beginning.
#[derive(Debug)]
#[repr(C)]
pub struct Pcpu<'s, 'i, A: Arch, D, P = AnyPolicy> {
    pub(crate) machine: A,
    pub(crate) shared: &'s Shared<'i, A::Relax>,
    pub(crate) system: &'s System<'i>,
    /// The mailbox of this pCPU.
    pub(crate) mailbox: &'s Mailbox,
    /// The calls that need no decision.
    pub(crate) short: short::Short<'s, 'i, A::Relax>,
    pub(crate) id: PcpuId,
    pub(crate) local: Local<P>,
    /// The drivers of the board's own devices.
    pub(crate) drivers: D,
}

impl<'s, 'i, A: Arch, D: Drivers, P: PcpuPolicy> Pcpu<'s, 'i, A, D, P> {
    /// Returns the pCPU with this seat, without vCPUs. The function is inlined, so the several KiB of the
    /// pCPU are made where they stay.
    #[inline(always)]
    pub(crate) fn new(machine: A, drivers: D, shared: &'s Shared<'i, A::Relax>, seat: Seat<'s, 'i>) -> Self {
        let tracer = Tracer::new(machine.trace_ring(), seat.counters, seat.id);
        let kind = policy::kind(seat.record, &seat.system.time);
        Self {
            machine,
            drivers,
            shared,
            system: seat.system,
            id: seat.id,
            mailbox: shared.mailboxes.of(seat.id),
            short: short::Short::new(shared, seat.system, tracer.is_on()),
            local: Local::new(seat.counters, tracer, &kind),
        }
    }

    /// Runs the pCPU for good.
    pub fn run_forever(&mut self) -> ! {
        loop {
            match self.decide() {
                Next::Run(slot, vcpu) => {
                    let mut chosen = Some((slot, vcpu));
                    while let Some((slot, vcpu)) = chosen {
                        chosen = self.run(slot, vcpu);
                    }
                }
                other => self.perform_other(other),
            }
        }
    }

    /// Returns the next step. Takes a new decision only if one is wanted.
    #[inline(always)]
    pub fn decide(&mut self) -> Next {
        if let Some((slot, vcpu)) = self.chosen() {
            return Next::Run(slot, vcpu);
        }
        self.decide_anew()
    }

    /// Returns the vCPU that the decision in force runs, if no new decision is wanted and no other step comes
    /// before.
    #[inline(always)]
    fn chosen(&self) -> Option<(Slot, VcpuId)> {
        if self.local.reschedule {
            return None;
        }
        let slot = self.local.running()?;
        let state = self.local.slot(slot);
        matches!(state.activity, Activity::Ready).then_some((slot, state.vcpu))
    }

    /// Does the step that was decided, and handles its outcome.
    pub fn perform(&mut self, next: Next) {
        match next {
            // `decide` finds again the vCPU that was chosen already.
            Next::Run(slot, vcpu) => _ = self.run(slot, vcpu),
            other => self.perform_other(other),
        }
    }

    /// Runs a vCPU and handles its exit. Returns the vCPU that runs next, if that vCPU is known already.
    #[inline(always)]
    fn run(&mut self, slot: Slot, vcpu: VcpuId) -> Option<(Slot, VcpuId)> {
        match self.networks().run_vcpu(vcpu) {
            // On a shared pCPU this exit leads to most switches.
            Exit::Idle { until } => self.block_and_switch(slot, vcpu, until),
            // Mostly one vCPU calls another one, or answers it.
            Exit::Hypercall(ref call) if is_handed_over(call.operation) && !self.local.tracer.is_on() => {
                self.ports().call_or_hand_over(slot, vcpu, call)
            }
            ref exit => {
                self.handle(slot, vcpu, exit);
                None
            }
        }
    }

    /// Lets the running vCPU wait for an interrupt, or until the time `until`, and chooses another vCPU.
    /// Returns `None` if `decide` has to find the next step. Requires: no new decision is wanted.
    #[inline(always)]
    fn block_and_switch(&mut self, slot: Slot, vcpu: VcpuId, until: Ticks) -> Option<(Slot, VcpuId)> {
        // Where size counts, `decide` holds the only copy of the way.
        if IS_SMALL {
            self.handle_idle(slot, vcpu, until);
            return None;
        }
        if self.local.tracer.is_on() {
            return self.block_and_switch_traced(slot, vcpu, until);
        }
        self.block_and_go_on::<false>(slot, vcpu, until)
    }

    /// Does [`Pcpu::block_and_switch`] on a pCPU that is traced. The function is a second copy of the way, so
    /// that the first one asks only once whether anything is traced.
    #[inline(never)]
    fn block_and_switch_traced(&mut self, slot: Slot, vcpu: VcpuId, until: Ticks) -> Option<(Slot, VcpuId)> {
        self.block_and_go_on::<true>(slot, vcpu, until)
    }

    /// Does [`Pcpu::block_and_switch`]. The time is read once, for the decision and for all records of it.
    #[inline(always)]
    fn block_and_go_on<const TRACED: bool>(
        &mut self,
        slot: Slot,
        vcpu: VcpuId,
        until: Ticks,
    ) -> Option<(Slot, VcpuId)> {
        self.idle(slot, until);
        let now = self.machine.now();
        if TRACED {
            self.local.tracer.idle(now, vcpu);
        }
        let from = vcpu;
        let (next, has_signals) = self.local.switch(slot, now);
        let Some((slot, vcpu)) = next else {
            return self.switch_to_idle();
        };
        let mailbox = self.mailbox;
        if self.publish(mailbox, has_signals) || !mailbox.is_empty() {
            self.local.reschedule = true;
            return None;
        }
        if TRACED {
            self.local.tracer.pass_on(now, from, slot, vcpu);
        }
        if !self.admit_and_arm(now) {
            return None;
        }
        matches!(self.local.slot(slot).activity, Activity::Ready).then_some((slot, vcpu))
    }

    /// Makes devices and clock ready for the decision in force. Returns false if a slot's own time has come,
    /// and wants a decision.
    #[inline(always)]
    pub(crate) fn admit_and_arm(&mut self, now: Ticks) -> bool {
        self.admit();
        if self.local.has_time_before_end() {
            return self.arm_before_end(now);
        }
        self.arm_at(self.local.end());
        true
    }

    /// Ends [`Pcpu::block_and_switch`] if no vCPU is ready.
    #[inline(never)]
    fn switch_to_idle(&mut self) -> Option<(Slot, VcpuId)> {
        let is_changed = self.publish(self.mailbox, self.local.has_signals());
        self.local.reschedule = is_changed || !self.mailbox.is_empty();
        if self.local.tracer.is_on() && !self.local.reschedule {
            self.local.trace_decision(self.local.began());
        }
        None
    }

    /// Does a step other than running a vCPU.
    #[inline(never)]
    fn perform_other(&mut self, next: Next) {
        match next {
            Next::Run(..) => {}
            Next::Load(slot, vcpu) => {
                self.load_chunk(slot, vcpu);
                self.trace_block(slot, vcpu);
            }
            Next::Chore => self.do_chore(),
            Next::Idle => {
                let exit = self.machine.wait();
                if self.local.tracer.is_on() {
                    self.trace_exit(None, &exit);
                }
                match exit {
                    Exit::Signal => self.local.reschedule = true,
                    Exit::Deadline => self.time_has_come(),
                    _ => self.handle_common(&exit),
                }
            }
            Next::Again => self.look(),
        }
    }

    /// Returns the step that the decision in force leads to.
    #[inline(always)]
    fn next_step(&self) -> Next {
        if self.local.output.is_step_due() {
            return Next::Chore;
        }
        let Some(slot) = self.local.running() else {
            // The output of all partitions may use up the time that none of them wants.
            return if self.local.output.may_pump {
                Next::Chore
            } else {
                Next::Idle
            };
        };
        let state = self.local.slot(slot);
        match state.activity {
            Activity::Loading(_) | Activity::Revoking(..) | Activity::Calling | Activity::Looking(_) => {
                Next::Load(slot, state.vcpu)
            }
            _ => Next::Run(slot, state.vcpu),
        }
    }

    /// Takes an interrupt, if one waits.
    pub(crate) fn look(&mut self) {
        if let Some(exit) = self.machine.poll() {
            self.handle_common(&exit);
        }
    }

    /// Tells whether `pcpu` is this pCPU. Where there is only one pCPU, nothing is ever sent to another one.
    #[inline]
    pub(crate) fn is_here(&self, pcpu: PcpuId) -> bool {
        MAX_PCPUS == 1 || pcpu == self.id
    }

    /// Returns the backend of this pCPU.
    pub const fn machine(&mut self) -> &mut A {
        &mut self.machine
    }

    /// Returns the pCPU's own state, for reading.
    pub const fn local(&self) -> &Local<P> {
        &self.local
    }

    /// Tells the partitions about the effects of the decision in force, and publishes the slots that the
    /// decision waits for. Returns whether one of the effects changes the decision.
    #[inline(always)]
    pub(crate) fn publish(&mut self, mailbox: &Mailbox, has_signals: bool) -> bool {
        let is_changed = has_signals && self.tell();
        mailbox.publish(self.local.interested());
        is_changed
    }

    /// Takes decisions until one stands. A decision stands if none of its effects changes it, and if no mail
    /// that concerns it came meanwhile. If no decision stands, a decision is still wanted. The module
    /// [`crate::mailbox`] explains the order of the steps.
    #[inline(always)]
    fn decide_anew(&mut self) -> Next {
        if self.local.reschedule {
            let before = self.local.running();
            let mut now = Ticks(0);
            for _ in 0..DECISION_ROUNDS {
                now = self.machine.now();
                self.local.settle(now);
                let has_more = !self.mailbox.is_empty() && self.take_mail(now);
                if self.local.is_due(now) {
                    self.wake_due(now);
                }
                self.local.pick(now);
                let is_changed = self.publish(self.mailbox, self.local.has_signals());
                let mailbox = self.mailbox;
                let is_pressing = || !mailbox.is_empty() && mailbox.is_pressing(self.local.concerned());
                if !is_changed && !is_pressing() {
                    break;
                }
                self.local.reschedule = true;
                if has_more {
                    break;
                }
            }
            // A vCPU that was chosen just now comes first: nothing below is as important.
            if self.local.is_due(now) {
                if self.local.running() == before {
                    self.judge_watchdogs(now);
                }
                if self.local.take_output(now) {
                    self.plan_chore(before);
                }
            }
            if self.local.tracer.is_on() {
                self.trace_decision(now);
            }
            if self.local.reschedule {
                return Next::Again;
            }
        }
        self.admit();
        self.arm();
        self.next_step()
    }

    /// Lets only some devices interrupt the vCPU that runs: devices of vCPUs whose readiness would change the
    /// decision, and devices with a critical line. The devices of all other partitions have to wait for the
    /// next decision.
    #[inline(always)]
    fn admit(&mut self) {
        if !A::CAPS.masks_lines {
            return;
        }
        let mut vcpus = self.system.critical_vcpus();
        for slot in bits(self.local.concerned().0).map(Slot) {
            vcpus.insert_all(VcpuSet::of(self.local.slot(slot).vcpu));
        }
        self.machine.admit(vcpus);
    }

    /// Arms the clock for the decision in force.
    #[inline(always)]
    fn arm(&mut self) {
        let deadline = self.local.deadline();
        self.arm_at(deadline);
    }

    /// Arms the clock, unless the clock is armed with this deadline already.
    #[inline(always)]
    fn arm_at(&mut self, deadline: Ticks) {
        if self.local.armed != deadline {
            self.set_clock(deadline);
        }
    }

    /// Arms the clock for a decision during which a slot's own time comes. Returns false, and wants a
    /// decision, if that time has come already.
    #[inline(never)]
    fn arm_before_end(&mut self, now: Ticks) -> bool {
        self.local.reschedule = self.local.is_due(now);
        self.arm();
        !self.local.reschedule
    }

    #[inline(never)]
    fn set_clock(&mut self, deadline: Ticks) {
        self.local.armed = deadline;
        self.local.note_clock();
        if deadline == Ticks::NEVER {
            self.machine.disarm();
        } else {
            self.machine.arm(deadline);
        }
    }

    /// Takes all mail from the others, but at most one order about a partition. Returns whether there are
    /// more orders. Bounded by the slots.
    #[inline(always)]
    fn take_mail(&mut self, now: Ticks) -> bool {
        // Mostly there are only starts. Then nothing else has to be looked for.
        let starts = self.mailbox.take_starts();
        if starts != 0 {
            for slot in bits(starts).map(Slot) {
                self.start_one(slot, now);
            }
            return false;
        }
        self.take_all_mail(now)
    }

    #[inline(never)]
    fn take_all_mail(&mut self, now: Ticks) -> bool {
        let post = self.mailbox.take();
        let has_more = (post.halt || post.stop | post.load != 0) && self.take_order(&post, now);
        if post.start != 0 {
            for slot in bits(post.start).map(Slot) {
                self.start_one(slot, now);
            }
        }
        for slot in bits(post.wake) {
            self.look_at(Slot(slot));
        }
        for slot in bits(post.review) {
            self.review_slot(Slot(slot));
        }
        for slot in bits(post.critical) {
            self.local.urge(Slot(slot), now);
        }
        if post.schedule {
            self.schedule_wanted(now);
        }
        has_more
    }

    /// Carries out one order about a partition, or about all partitions, and puts the other orders back. So
    /// the pCPU looks at interrupts before the next order. Returns whether there are other orders.
    #[inline(never)]
    fn take_order(&mut self, post: &Post, now: Ticks) -> bool {
        if post.halt {
            self.machine.stop();
        }
        let (mut stop, mut load) = (post.stop, post.load);
        if let Some(partition) = bits(stop).next() {
            stop &= !bit(partition);
            if self
                .local
                .admits_stop(PartitionId(partition), now, &self.system.time)
            {
                self.stop_here(PartitionId(partition), now);
            }
        } else if let Some(partition) = bits(load).next() {
            load &= !bit(partition);
            self.load_here(PartitionId(partition), now);
        }
        self.mailbox.put_back(stop, load);
        // Those that were put back, and the load that a stop was the first half of.
        self.mailbox.has_orders()
    }

    /// Wakes and handles everything that is due. Bounded by the slots that are due.
    #[inline(never)]
    fn wake_due(&mut self, now: Ticks) {
        if self.local.is_other_due(now) {
            if self.id == PcpuId(0) && self.system.time_limit <= now {
                self.time_is_up();
            }
            each_part!(self, part => part.work(now));
            if let Some(partition) = self.local.take_stop(now, &self.system.time) {
                self.stop_here(partition, now);
            }
        }
        for slot in bits(self.local.take_due(now)).map(Slot) {
            if self.local.own_time(slot) <= now {
                self.timer_due(slot, now);
            }
            if self.local.slot(slot).watchdog != Ticks::NEVER {
                self.local.note(slot);
            }
        }
    }

    /// Judges a watchdog that has ended, if the decision in force concerns its slot. A judgement that leads
    /// to more than a line wants a new decision ([`Pcpu::notify`]). Bounded by the slots in use.
    #[inline(never)]
    fn judge_watchdogs(&mut self, now: Ticks) {
        let SlotSet(concerned) = self.local.concerned();
        let mut judged = false;
        for slot in bits(concerned).map(Slot) {
            if self.local.slot(slot).watchdog > now {
                continue;
            }
            if judged {
                self.local
                    .set_watchdog(slot, now.plus(self.system.time.duration(WATCHDOG_SPACE_NS)));
            } else {
                judged = self.faults().watchdog_due(slot, now);
            }
        }
    }
}
