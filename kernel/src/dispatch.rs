// SPDX-License-Identifier: Apache-2.0
//! The loop of a pCPU.
//!
//! ```text
//! decide   if wanted: take mail, wake what is due, ask the policy, arm the clock
//! run      the chosen vCPU, or one chunk of loading its partition, or wait
//! handle   the exit; most exits want no new decision and go straight back to `run`
//! ```
//!
//! A decision is taken only when something happened that can change it: T8 of the feature list, "no
//! periodic tick". [`Pcpu::decide`] and [`Pcpu::perform`] are the two halves of a round, so that tests drive the very
//! loop of the hypervisor and can stop the world in between.
//!
//! The files below this one each hold one group of methods of [`Pcpu`]: `exit` (what an exit leads to), `call`
//! (hypercalls), `lifecycle` (start, stop, load), `fault` (health events), `gate` (events), `device` (virtual devices, consoles), `host` (calls of a debugger),
//! `network` (interfaces, the switch),
//! `schedule` (windows, schedules), `trace` (the loop of a pCPU that is traced).

mod call;
mod device;
mod exit;
mod fault;
mod gate;
mod host;
mod lifecycle;
mod network;
mod report;
mod schedule;
mod trace;

pub use report::Reports;

use crate::local::{Activity, Local};
use crate::mailbox::{Mailbox, Post, bit, bits};
use crate::shared::Shared;
use crate::system::System;
use crate::trace::Tracer;
use bulkhead_abi::log::Pcpu as Counters;
use bulkhead_arch_api::{
    Arch, Exit, MAX_PCPUS, MAX_VCPUS_PER_PARTITION, PartitionId, PcpuId, Ticks, VcpuId, VcpuSet,
};
use bulkhead_sched::{AnyPolicy, PcpuPolicy, PolicyParameters, Slot};

/// Rounds of one decision before the loop is entered anew; each is caused by mail that came during the one before.
const DECISION_ROUNDS: usize = 4;

/// Whether a partition can have several vCPUs. If not, nothing switches a vCPU on or off but the life of its partition, and no
/// backend says otherwise.
const SEVERAL_VCPUS: bool = MAX_VCPUS_PER_PARTITION > 1;

/// What a decision leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Run this vCPU.
    Run(Slot, VcpuId),
    /// Do one chunk of loading this vCPU's partition.
    Load(Slot, VcpuId),
    /// Write one line of the report that is pending, in this vCPU's time or in nobody's.
    Report(Option<Slot>),
    /// Wait: nobody is ready.
    Idle,
    /// Mail kept coming: decide again.
    Again,
}

/// One pCPU: its machine, its share of the kernel's state, and its loop.
#[derive(Debug)]
pub struct Pcpu<'s, 'i, A: Arch, P = AnyPolicy> {
    pub(crate) machine: A,
    pub(crate) shared: &'s Shared<'i, A::Relax>,
    pub(crate) system: &'s System<'i>,
    pub(crate) id: PcpuId,
    /// Its own.
    pub(crate) mailbox: &'s Mailbox,
    pub(crate) local: Local<P>,
}

impl<'s, 'i, A: Arch, P: PcpuPolicy> Pcpu<'s, 'i, A, P> {
    /// A pCPU without vCPUs.
    #[inline(always)]
    pub(crate) fn new(
        machine: A,
        shared: &'s Shared<'i, A::Relax>,
        system: &'s System<'i>,
        (id, counters): (PcpuId, &'static Counters),
        (tracer, kind): (Tracer, &PolicyParameters<'_>),
    ) -> Self {
        Self {
            machine,
            shared,
            system,
            id,
            mailbox: shared.mailboxes.of(id),
            local: Local::new(counters, tracer, kind),
        }
    }

    /// Runs the pCPU for good.
    pub fn run_forever(&mut self) -> ! {
        // Two loops, so that what is not traced costs nothing.
        if self.local.tracer.is_on() {
            loop {
                let next = self.decide();
                self.execute_traced(next);
            }
        }
        loop {
            let mut chosen = self.choose().or_else(|| self.attend());
            while let Some(slot) = chosen {
                chosen = self.run(slot);
            }
        }
    }

    /// Runs a slot, up to what its exit leads to; who runs next, if that is known already.
    #[inline(always)]
    fn run(&mut self, slot: Slot) -> Option<Slot> {
        let vcpu = self.local.slot(slot).vcpu;
        let exit = self.run_vcpu(vcpu);
        // That it has nothing to do comes first: on a shared pCPU that is what leads to most switches.
        if let Exit::Idle { until } = exit {
            return self.pass(slot, vcpu, until);
        }
        // Where lines are masked, one that interrupts nearly always changes who runs.
        if let (true, Exit::Device(vcpus, _)) = (A::CAPS.masks_lines, &exit)
            && self.rise(*vcpus)
        {
            self.count(slot, |counters| &counters.interrupts);
            return self.choose();
        }
        self.handle_other(slot, vcpu, &exit);
        None
    }

    /// Who runs, if the decision in force says so. The loop of a pCPU that is not traced.
    #[inline(always)]
    fn choose(&self) -> Option<Slot> {
        let slot = self.local.running().filter(|_| !self.local.reschedule)?;
        (self.local.slot(slot).activity == Activity::Ready).then_some(slot)
    }

    /// What remains: any other decision, and what is not running a vCPU.
    #[inline(never)]
    fn attend(&mut self) -> Option<Slot> {
        loop {
            match self.decide_fully() {
                Next::Run(slot, _) => return Some(slot),
                Next::Idle => {
                    if let Some(slot) = self.wait() {
                        return Some(slot);
                    }
                }
                next => {
                    self.execute(next);
                    return None;
                }
            }
        }
    }

    /// Nobody is ready. Mostly it is mail that ends it; who runs then, if that is clear at once.
    #[inline(always)]
    fn wait(&mut self) -> Option<Slot> {
        let exit = self.machine.wait();
        match exit {
            Exit::Signal => {
                self.local.reschedule = true;
                return self.start_at_once();
            }
            Exit::Device(vcpus, _) if A::CAPS.masks_lines && self.rise(vcpus) => return self.choose(),
            _ => {}
        }
        self.handle_common(&exit);
        None
    }

    /// This pCPU waited and was signalled. If all that has come is that vCPUs are to be switched on, they are, and if the policy has a short
    /// way the decision is taken: what `decide_anew` would do, each step once. `None`: what is left to do, `reschedule` says.
    #[inline(always)]
    fn start_at_once(&mut self) -> Option<Slot> {
        if !SEVERAL_VCPUS {
            return None;
        }
        let slots = self.mailbox.take_starts();
        if slots == 0 {
            return None;
        }
        let now = self.machine.now();
        self.start_here(slots, now);
        if !self.local.resume(now) {
            return None;
        }
        self.mailbox.publish(self.local.interested());
        if !self.mailbox.is_empty() {
            self.local.reschedule = true;
            return None;
        }
        self.follow_up();
        // Before, nobody was ready: whoever is has just been started.
        self.local.running()
    }

    /// `execute`, traced if the pCPU is.
    pub fn perform(&mut self, next: Next) {
        if self.local.tracer.is_on() {
            self.execute_traced(next);
        } else {
            self.execute(next);
        }
    }

    /// What comes next; a new decision only if one is wanted.
    pub fn decide(&mut self) -> Next {
        if !self.local.tracer.is_on()
            && let Some(slot) = self.choose()
        {
            return Next::Run(slot, self.local.slot(slot).vcpu);
        }
        self.decide_fully()
    }

    #[inline(never)]
    fn decide_fully(&mut self) -> Next {
        if self.local.reschedule {
            if !self.decide_quietly() {
                self.decide_anew();
            }
            if self.local.reschedule {
                return Next::Again;
            }
        }
        self.follow_up();
        self.next_step()
    }

    /// Whom the decision in force lets interrupt it, and when it ends.
    #[inline(never)]
    pub(crate) fn follow_up(&mut self) {
        self.admit();
        self.arm();
    }

    /// What the decision in force leads to.
    #[inline(always)]
    fn next_step(&self) -> Next {
        let Some(slot) = self.local.running() else {
            return if self.local.reports.is_empty() {
                Next::Idle
            } else {
                Next::Report(None)
            };
        };
        let state = self.local.slot(slot);
        match state.activity {
            Activity::Loading(_) if self.local.reports.has_told_states() => Next::Load(slot, state.vcpu),
            Activity::Loading(_) | Activity::Reporting => Next::Report(Some(slot)),
            _ => Next::Run(slot, state.vcpu),
        }
    }

    /// Does what was decided and handles what comes of it.
    #[inline]
    fn execute(&mut self, next: Next) {
        match next {
            // Who was chosen already is also found by `choose`.
            Next::Run(slot, _) => _ = self.run(slot),
            Next::Load(slot, vcpu) => self.load_chunk(slot, vcpu),
            Next::Report(slot) => self.report_in_turn(slot),
            Next::Idle => _ = self.wait(),
            Next::Again => {}
        }
    }

    /// Takes an interrupt, if one waits.
    pub(super) fn look(&mut self) {
        if let Some(exit) = self.machine.poll() {
            self.handle_common(&exit);
        }
    }

    /// Whether `pcpu` is this one; where there is only one, nothing is ever sent to another.
    #[inline]
    fn is_here(&self, pcpu: PcpuId) -> bool {
        MAX_PCPUS == 1 || pcpu == self.id
    }

    /// The backend of this pCPU.
    pub const fn machine(&mut self) -> &mut A {
        &mut self.machine
    }

    /// The pCPU's own state, to look at.
    pub const fn local(&self) -> &Local<P> {
        &self.local
    }

    /// A decision because of the vCPU that ran, and nothing else. False: it does not stand, or was not taken.
    #[inline]
    fn decide_quietly(&mut self) -> bool {
        let Some(slot) = self.local.running() else {
            return false;
        };
        let now = self.machine.now();
        if !self.mailbox.is_empty() || self.local.is_due(now) {
            return false;
        }
        if let Some(signals) = self.local.follow(slot, now) {
            self.tell(signals);
        }
        self.mailbox.publish(self.local.interested());
        // Mail has come, or somebody who was told: the next decision replaces this one.
        if self.local.reschedule || !self.mailbox.is_empty() {
            self.local.reschedule = true;
            return false;
        }
        if self.local.tracer.is_on() {
            self.trace_decision(now);
        }
        true
    }

    /// Takes decisions until no mail came while the last one was made. What the order of the steps is good
    /// for: [`crate::mailbox`].
    #[inline(always)]
    fn decide_anew(&mut self) {
        let mut now = Ticks(0);
        for _ in 0..DECISION_ROUNDS {
            now = self.machine.now();
            self.local.settle(now);
            if !self.mailbox.is_empty() {
                self.take_mail(now);
            }
            if self.local.is_due(now) {
                self.wake_due(now);
            }
            if let Some(signals) = self.local.pick(now) {
                self.tell(signals);
            }
            self.mailbox.publish(self.local.interested());
            // A window that starts may have woken somebody whom this decision did not know of.
            if self.mailbox.is_empty() && !self.local.reschedule {
                break;
            }
            self.local.reschedule = true;
        }
        if self.local.tracer.is_on() {
            self.trace_decision(now);
        }
    }

    /// Devices of partitions that are of no interest until the next decision need not interrupt this one's vCPU. Those with a
    /// critical line always are.
    #[inline]
    fn admit(&mut self) {
        if !A::CAPS.masks_lines {
            return;
        }
        let mut vcpus = self.system.critical_vcpus();
        let slots = self.local.interested().0 | self.local.running().map_or(0, |slot| bit(slot.0));
        for slot in bits(slots).map(Slot) {
            vcpus.insert_all(VcpuSet::of(self.local.slot(slot).vcpu));
        }
        self.machine.admit(vcpus);
    }

    /// Arms the clock for the decision in force, if that changes anything.
    fn arm(&mut self) {
        let deadline = self.local.deadline();
        if self.local.armed != deadline {
            self.set_clock(deadline);
        }
    }

    #[inline(never)]
    fn set_clock(&mut self, deadline: Ticks) {
        self.local.armed = deadline;
        if deadline == Ticks::NEVER {
            self.machine.disarm();
        } else {
            self.machine.arm(deadline);
        }
    }

    /// Everything the others have asked for. Bounded by partitions and slots.
    #[inline(always)]
    fn take_mail(&mut self, now: Ticks) {
        let post = self.mailbox.take();
        if post.halt || post.stop | post.load != 0 {
            self.take_orders(&post, now);
        }
        if SEVERAL_VCPUS && post.start != 0 {
            self.start_here(post.start, now);
        }
        for slot in bits(post.wake) {
            self.look_at(Slot(slot));
        }
        for slot in bits(post.critical) {
            self.local.urge(Slot(slot), now);
        }
        if post.schedule {
            self.schedule_wanted(now);
        }
    }

    /// What of the mail is about whole partitions, or all.
    #[inline(never)]
    fn take_orders(&mut self, post: &Post, now: Ticks) {
        if post.halt {
            self.machine.stop();
        }
        for partition in bits(post.stop) {
            self.stop_here(PartitionId(partition), now);
        }
        for partition in bits(post.load) {
            self.load_here(PartitionId(partition), now);
        }
    }

    /// Everything whose time has come. Bounded by the slots in use.
    #[inline(never)]
    fn wake_due(&mut self, now: Ticks) {
        if self.id == PcpuId(0) && self.system.time_limit <= now {
            self.time_is_up();
        }
        if self.local.take_output(now) {
            self.report_in_time();
            self.pump();
        }
        if A::HAS_NETWORK && self.local.take_intake(now) {
            self.listen_again();
        }
        for slot in self.local.all() {
            if self.local.slot(slot).watchdog <= now {
                self.watchdog_due(slot, now);
            }
            if self.local.slot(slot).activity.until() <= now {
                self.timer_due(slot, now);
            }
        }
    }
}
