// SPDX-License-Identifier: Apache-2.0
//! Comparison of executed and simulated time: does a pCPU do what the policy's code says?
//!
//! The replay runs the policy, the very code that ran in the hypervisor. The policy is told what the trace
//! says about the outside: which vCPU became ready, which had nothing to do, and when. The policy is charged
//! no overhead at all. From each switch on, the policy predicts the next one: the vCPU and the time. The
//! executed switch must go to the same vCPU and must have a reason. It may come later than predicted by the
//! hypervisor's own overhead only. The same holds for all signals of a decision: budgets, windows, periods,
//! schedules. After each switch the simulated clock is set to the executed one, so overheads do not add up
//! and a deviation is seen where it arises.
//!
//! **Workloads.** If the manifest gives a vCPU a workload, the vCPU's wakes and blocks are predicted too,
//! from the manifest alone (module `workload`).
//!
//! **Turns.** An emulator that counts instructions runs one CPU at a time: virtual time goes by for a CPU
//! that has its turn later. [`Tolerance::turns`] therefore excuses a pCPU for the time in which another one
//! was busy, and for no other. The running vCPU, the order and the reasons are compared all the same.
//!
//! **Loans.** A vCPU that waits for a lock or for the answer to a call may lend its place, and the trace does
//! not say to whom. So if a switch is not as predicted, the replay looks for the loan of a vCPU that waits so
//! with which the policy decides as was executed. If there is none on a pCPU with such a vCPU, the rest of
//! that pCPU is not compared, and the result says so.
//!
//! **More questions.** The protocol does not say how often a policy is asked. If a switch has no reason, a
//! policy of the user's own is asked once more, and the result counts such decisions (module `again`).
//!
//! Times are nanoseconds since boot, as in the manifest.

mod again;
mod loans;

use super::turn_slack::TurnSlack;
use super::workload::Workload;
use super::{Trace, micros};
use crate::build::policies::{Policies, SystemPolicy};
use bulkhead_abi::PartitionState;
use bulkhead_abi::trace::{BlockReason, Event, Record};
use bulkhead_manifest::{System, timing};
use bulkhead_sched::{Decision, Policy, Signals, Slot, SlotSet, StopReason};
use std::collections::BTreeMap;

/// The grain of the board's clock: a time of the manifest is rounded to it, in either direction.
const GRAIN: u64 = 100;
/// Most decisions that change nothing between two records. Each lets time go on, so more are an error.
const QUIET_DECISIONS: usize = 1_000_000;

/// The largest delay of an event against the prediction of the policy alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tolerance {
    /// The nanoseconds that the hypervisor itself may take.
    pub overhead: u64,
    /// True if CPUs run one at a time, as in an emulator that counts instructions.
    pub turns: bool,
}

/// The figures of the comparison.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Agreement {
    /// Switches that were predicted.
    pub switches: u64,
    /// Signals that were predicted.
    pub signals: u64,
    /// The largest delay of an executed switch against its prediction, in nanoseconds. Switches that a
    /// partition's stop or start comes before are not counted.
    pub latest: u64,
    /// vCPUs with a workload of jobs.
    pub workloads: usize,
    /// Jobs that were released and done as the workloads of the manifest say.
    pub jobs: u64,
    /// The longest excused part of a late switch's delay, because it was another pCPU's turn.
    pub excused: u64,
    /// Switches and stays that are as predicted if a vCPU that waits lends its place.
    pub loans: u64,
    /// Switches and stays that are as predicted if a policy of the user's own is asked once more.
    pub again: u64,
    /// The time from which on nothing is compared, because some vCPU may lend its place and no loan explains
    /// what happened.
    pub compared_until: Option<u64>,
}

/// A signal about a vCPU.
type OfVcpu = fn(u8) -> Signal;

/// A signal of a decision, and the vCPU that it is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Signal {
    Exhausted(u8),
    Replenished(u8),
    Window(u8),
    Period(u8),
}

impl Agreement {
    /// Returns a line of text about the agreement.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = format!(
            "{} switches and {} signals as predicted, at most {} us late",
            self.switches,
            self.signals,
            micros(self.latest)
        );
        if self.jobs != 0 {
            text.push_str(&format!("; {} jobs as declared", self.jobs));
        }
        if self.loans != 0 {
            text.push_str(&format!(
                "; {} of them by the loan of a place, which the trace does not show",
                self.loans
            ));
        }
        if self.again != 0 {
            text.push_str(&format!(
                "; {} of them by a decision that was asked for once more, which the trace does not show",
                self.again
            ));
        }
        if let Some(until) = self.compared_until {
            text.push_str(&format!(
                "; NOT COMPARED from {} us on: vCPUs that wait for a lock or an answer may lend their places",
                micros(until)
            ));
        }
        if self.excused != 0 {
            text.push_str(&format!(
                "; besides, up to {} us of another CPU's turn",
                micros(self.excused)
            ));
        }
        text
    }
}

/// Compares the actions of all pCPUs with the decisions of `policies`, the policies of `system`.
///
/// # Errors
/// The error is the first difference.
pub fn agree(
    trace: &Trace,
    system: &System,
    policies: &Policies,
    tolerance: Tolerance,
) -> Result<Vec<Agreement>, String> {
    let own = system.partitions().into_iter().map(|partition| partition.name());
    if trace.partitions.iter().ne(own) || usize::from(trace.pcpus) != system.pcpus().len() {
        return Err("the trace is not one of this system".to_owned());
    }
    let pcpus = (0..trace.pcpus).zip(timing::pcpus(system));
    pcpus
        .map(|(number, pcpu)| {
            let policy = policies
                .policy(&pcpu, 0)
                .map_err(|problem| problem.message().to_owned())?;
            let vcpus = pcpu.vcpus.iter();
            let workloads = vcpus.map(|vcpu| {
                let sources = vcpu.sources.iter().map(|(_, source)| *source);
                vcpu.has_workload.then(|| Workload::new(sources))
            });
            let compared = compare(trace, number, policy, tolerance, workloads.collect());
            policies.check().map_err(|problem| problem.message().to_owned())?;
            compared
        })
        .collect()
}

/// Compares the actions of `pcpu` with the decisions of `policy`, and with the workloads of those slots that
/// have one.
///
/// # Errors
/// The error is the first difference.
pub(super) fn compare(
    trace: &Trace,
    pcpu: u8,
    policy: impl Into<SystemPolicy>,
    tolerance: Tolerance,
    workloads: Vec<Option<Workload>>,
) -> Result<Agreement, String> {
    Replay::new(trace, pcpu, policy.into(), tolerance, workloads).run()
}

struct Replay<'a> {
    trace: &'a Trace,
    pcpu: u8,
    /// The vCPU in each slot.
    slots: Vec<u8>,
    policy: SystemPolicy,
    overhead: u64,
    turn_slack: TurnSlack,
    running: Option<Slot>,
    since: u64,
    until: u64,
    interested: SlotSet,
    /// True if the policy has been told that the running vCPU stopped.
    is_settled: bool,
    /// True if the running vCPU has nothing to do.
    is_blocked: bool,
    /// The time of the record before, and the time of the last record that has another time.
    stored: (u64, u64),
    /// The longest time by which the decision in force may be earlier than its record. A trace is in order:
    /// if another event was recorded after the decision and before the switch, the switch carries the time of
    /// that event.
    skew: u64,
    /// The sum of `skew` of the switches after a change of a partition's state, since a budget or a turn last
    /// ended, and the time by which that one ended early. The end of a partition takes a while, so each such
    /// switch moves the end of the budget under way.
    life_cycle_skew: u64,
    /// The longest time by which a budget may run out earlier than predicted. A budget that ran out before,
    /// without a change of the running vCPU, was overdrawn until the decision about it. The trace does not
    /// tell the time of this decision, and some policies take the overdrawn time from a later turn.
    overdrawn: u64,
    /// Since then another vCPU should run.
    due: Option<u64>,
    /// True if a partition has changed its state since then.
    has_life_cycle: bool,
    /// Schedules that came into force, the first one first.
    schedules: Vec<(u64, u8)>,
    predicted: BTreeMap<Signal, Vec<u64>>,
    executed: BTreeMap<Signal, Vec<u64>>,
    /// By slot.
    workloads: Vec<Option<Workload>>,
    /// The slots that wait for a lock or an answer, each with whether it lends its place.
    waiting: Vec<(Slot, bool)>,
    agreement: Agreement,
}

/// A point to which the replay can go back.
type Point = (SystemPolicy, bool, Vec<(u64, u8)>);

impl<'a> Replay<'a> {
    fn new(
        trace: &'a Trace,
        pcpu: u8,
        policy: SystemPolicy,
        tolerance: Tolerance,
        workloads: Vec<Option<Workload>>,
    ) -> Self {
        let numbers = (0_u8..).zip(&trace.vcpus);
        let own = numbers.filter(|(_, vcpu)| vcpu.pcpu == pcpu);
        let schedules = trace.of_pcpu(pcpu).filter_map(|record| match record.event {
            Event::Schedule { schedule } => Some((trace.nanoseconds(record.time), schedule)),
            _ => None,
        });
        Self {
            trace,
            pcpu,
            slots: own.map(|(number, _)| number).collect(),
            policy,
            overhead: tolerance.overhead,
            turn_slack: if tolerance.turns {
                TurnSlack::of_others(trace, pcpu)
            } else {
                TurnSlack::default()
            },
            running: None,
            since: 0,
            until: 0,
            interested: SlotSet(0),
            is_settled: true,
            is_blocked: false,
            stored: (0, 0),
            skew: 0,
            life_cycle_skew: 0,
            overdrawn: 0,
            due: None,
            has_life_cycle: false,
            schedules: schedules.collect(),
            predicted: BTreeMap::new(),
            executed: BTreeMap::new(),
            workloads,
            waiting: Vec::new(),
            agreement: Agreement::default(),
        }
    }

    /// Compares everything. The first difference is an error.
    fn run(mut self) -> Result<Agreement, String> {
        let (trace, pcpu) = (self.trace, self.pcpu);
        let workloads = self.workloads.iter().flatten();
        self.agreement.workloads = workloads.filter(|work| work.has_jobs()).count();
        self.begin();
        for record in trace.of_pcpu(pcpu) {
            let now = trace.nanoseconds(record.time);
            if let Err(what) = self.record(record, now) {
                if self.may_be_a_loan(record) {
                    self.agreement.compared_until = Some(now);
                    return Ok(self.agreement);
                }
                return Err(format!("pCPU {pcpu}, {} us after boot: {what}", micros(now)));
            }
        }
        let last = trace.of_pcpu(pcpu).last();
        let end = last.map_or(0, |record| trace.nanoseconds(record.time));
        self.compare_signals(end)
            .map_err(|what| format!("pCPU {pcpu}: {what}"))?;
        self.agreement.jobs += self.workloads.iter().flatten().map(|work| work.done).sum::<u64>();
        Ok(self.agreement)
    }

    /// Takes the pCPU's first decision, which belongs to its first record: at the same time, or just before.
    fn begin(&mut self) {
        let Some(first) = self.trace.of_pcpu(self.pcpu).next() else {
            return;
        };
        self.until = u64::MAX;
        if !matches!(first.event, Event::Wake { .. }) {
            self.decide(self.trace.nanoseconds(first.time));
        }
    }

    fn record(&mut self, record: &Record, now: u64) -> Result<(), String> {
        self.pass_time(now)?;
        self.check_workloads(now)?;
        let is_later = now > self.stored.0;
        if is_later {
            self.stored = (now, self.stored.0);
        }
        match record.event {
            Event::Switch { to, .. } => {
                let is_life_cycle = self.has_life_cycle;
                self.switched(to, now)?;
                let unknown = if is_later { 0 } else { now - self.stored.1 };
                self.skew = unknown.min(self.overhead);
                if is_life_cycle {
                    self.life_cycle_skew = (self.life_cycle_skew + self.skew).min(self.overhead);
                }
            }
            Event::Wake { vcpu, .. } => {
                let (slot, overhead) = (self.slot(vcpu)?, self.overhead);
                self.of_workload(slot, |work, _| work.woken(now, overhead))?;
                self.woken(slot, now);
            }
            Event::Critical { vcpu } => {
                self.policy.critical(self.slot(vcpu)?, now);
                self.due = None;
                self.try_decide(now);
            }
            Event::Block { vcpu, why } => {
                let (slot, overhead) = (self.slot(vcpu)?, self.overhead);
                if matches!(why, BlockReason::Lock | BlockReason::Reply) {
                    self.waiting.push((slot, false));
                }
                self.of_workload(slot, |work, turn_slack| work.blocked(now, overhead, turn_slack))?;
                if self.running == Some(slot) {
                    self.is_blocked = true;
                    self.due.get_or_insert(now);
                } else {
                    self.policy.withdraw(slot, now);
                }
            }
            Event::Exhausted { vcpu } => self.signalled(Signal::Exhausted(vcpu), now),
            Event::Replenished { vcpu } => self.signalled(Signal::Replenished(vcpu), now),
            Event::WindowStart { vcpu } => self.signalled(Signal::Window(vcpu), now),
            Event::PeriodStart { vcpu } => self.signalled(Signal::Period(vcpu), now),
            Event::Lost { count } => return Err(format!("{count} records are missing")),
            // Stopping, clearing or starting a partition takes its own time, and the trace says so.
            Event::State { partition, state } => {
                self.has_life_cycle |= self.due.is_some();
                self.due = self.due.map(|due| due.max(now));
                if state != PartitionState::Running {
                    self.end_workloads(partition);
                }
            }
            Event::Health { .. } => self.due = self.due.map(|due| due.max(now)),
            _ => {}
        }
        Ok(())
    }

    fn of_workload(
        &mut self,
        slot: Slot,
        change: impl FnOnce(&mut Workload, &TurnSlack) -> Result<(), String>,
    ) -> Result<(), String> {
        let work = self.workloads.get_mut(usize::from(slot.0));
        let work = work.and_then(Option::as_mut);
        let result = work.map_or(Ok(()), |work| change(work, &self.turn_slack));
        result.map_err(|what| format!("{}: {what}", self.name(Some(slot))))
    }

    /// Ends the workloads of a partition, which does no more of what it declares: it is loaded, stops, or has
    /// stopped.
    fn end_workloads(&mut self, partition: u8) {
        let trace = self.trace;
        for (work, vcpu) in self.workloads.iter_mut().zip(&self.slots) {
            let vcpu = trace.vcpus.get(usize::from(*vcpu));
            if let Some(ended) = work
                && vcpu.is_some_and(|vcpu| vcpu.partition == partition)
            {
                self.agreement.jobs += ended.done;
                *work = None;
            }
        }
    }

    /// Checks that each vCPU has woken up that should have, by the workloads of the manifest.
    fn check_workloads(&mut self, now: u64) -> Result<(), String> {
        for (slot, work) in (0..).map(Slot).zip(&mut self.workloads) {
            if let Some(work) = work
                && let Err(what) = work.check(now, self.overhead, &self.turn_slack)
            {
                return Err(format!("{}: {what}", self.name(Some(slot))));
            }
        }
        Ok(())
    }

    /// Takes the decisions that the clock alone causes, up to `now`. A decision that changes the running vCPU
    /// waits for the executed switch.
    fn pass_time(&mut self, now: u64) -> Result<(), String> {
        for _ in 0..QUIET_DECISIONS {
            if let Some(due) = self.due
                && self.turn_slack.lateness(due, now) > self.overhead
            {
                let running = self.running;
                if !self.is_blocked && (self.asked_again(running, due) || self.with_loan(running, due)) {
                    continue;
                }
                return Err(format!(
                    "{} runs since {} us, predicted was another",
                    self.name(self.running),
                    micros(due)
                ));
            }
            if self.due.is_some() || self.until > now {
                return Ok(());
            }
            self.try_decide(self.until);
        }
        Err("the policy's decisions do not let time go on".to_owned())
    }

    /// Takes a decision at `now`, if it does not change which vCPU runs. Otherwise the executed switch will
    /// tell the time of the decision.
    fn try_decide(&mut self, now: u64) {
        let before = self.point();
        let decision = self.foresee(now);
        if target(decision) == self.running && !self.is_blocked {
            if self.accept(decision, now).exhausted != SlotSet(0) {
                self.overdrawn = self.overhead;
            }
        } else {
            self.go_back(before);
            self.due = Some(self.due.map_or(now, |due| due.min(now)));
        }
    }

    /// Takes the decision at `now`.
    fn decide(&mut self, now: u64) {
        let decision = self.foresee(now);
        self.accept(decision, now);
    }

    /// Returns the decision of the policy at `now`, which is not accepted yet.
    fn foresee(&mut self, now: u64) -> Decision {
        self.change_schedule(now);
        self.settle(now);
        self.policy.next(now)
    }

    fn point(&self) -> Point {
        (self.policy.clone(), self.is_settled, self.schedules.clone())
    }

    fn go_back(&mut self, point: Point) {
        (self.policy, self.is_settled, self.schedules) = point;
    }

    fn settle(&mut self, now: u64) {
        if let (Some(slot), false) = (self.running, self.is_settled) {
            let why = if self.is_blocked {
                StopReason::Blocked
            } else {
                StopReason::Preempted
            };
            self.policy
                .stopped(slot, why, now.saturating_sub(self.since), now);
        }
        self.is_settled = true;
    }

    fn accept(&mut self, decision: Decision, now: u64) -> Signals {
        self.running = target(decision);
        let (Decision::Run(_, until) | Decision::Idle(until)) = decision;
        self.until = until;
        self.since = now;
        self.is_settled = false;
        self.is_blocked = false;
        self.due = None;
        self.has_life_cycle = false;
        self.interested = self.policy.interested();
        for (slot, work) in (0..).zip(&mut self.workloads) {
            if let Some(work) = work {
                work.notice(self.interested.0 >> slot & 1 != 0, now);
                work.runs(self.running == Some(Slot(slot)), now, &self.turn_slack);
            }
        }
        let signals = self.policy.signals();
        self.predict(signals, now);
        signals
    }

    /// Tells the policy of a change of schedule that was asked for before and came into force about now.
    fn change_schedule(&mut self, now: u64) {
        if let Some((time, schedule)) = self.schedules.first().copied()
            && time <= now.saturating_add(self.overhead)
        {
            self.schedules.remove(0);
            // A schedule that does not exist leads to a difference that shows.
            let _known = self.policy.change_schedule(schedule, now);
        }
    }

    fn woken(&mut self, slot: Slot, now: u64) {
        if self.running == Some(slot) && self.is_blocked {
            // The vCPU was stopped before it was woken, and may well go on.
            self.settle(now);
            self.is_blocked = false;
        }
        self.make_ready(slot, now);
        let is_asked = self.interested.0 >> slot.0 & 1 != 0;
        if self.is_settled || is_asked || self.due.is_some() {
            self.due = None;
            self.try_decide(now);
        }
    }

    fn switched(&mut self, to: Option<u8>, now: u64) -> Result<(), String> {
        let to = to.map(|vcpu| self.slot(vcpu)).transpose()?;
        let early = GRAIN + self.skew.max(self.overdrawn).max(self.life_cycle_skew);
        let at_end = Some(self.until).filter(|until| *until <= now.saturating_add(early));
        let Some(due) = self.due.or(at_end) else {
            if self.asked_again(to, now) || self.with_loan(to, now) {
                self.agreement.switches += 1;
                return Ok(());
            }
            return Err(format!(
                "switch to {}, predicted was that {} goes on{}",
                self.name(to),
                self.name(self.running),
                match self.until {
                    u64::MAX => String::new(),
                    until => format!(" until {} us", micros(until)),
                }
            ));
        };
        let late = self.turn_slack.lateness(due, now);
        let has_life_cycle = self.has_life_cycle;
        let (before, at) = (self.point(), now.max(due));
        let decision = self.foresee(at);
        if target(decision) == to {
            self.accept(decision, at);
        } else {
            self.go_back(before);
            if !self.asked_again(to, at) && !self.with_loan(to, at) {
                return Err(format!(
                    "switch to {}, predicted was {}",
                    self.name(to),
                    self.name(target(decision))
                ));
            }
        }
        self.agreement.switches += 1;
        if let Some(end) = at_end {
            // From here on the executed times are as early as this end was.
            self.life_cycle_skew = end.saturating_sub(now);
        }
        if !has_life_cycle {
            self.agreement.latest = self.agreement.latest.max(late);
        }
        let excused = now.saturating_sub(due).saturating_sub(late);
        self.agreement.excused = self.agreement.excused.max(excused);
        Ok(())
    }

    fn predict(&mut self, signals: Signals, now: u64) {
        let sets: [(SlotSet, OfVcpu); 4] = [
            (signals.exhausted, Signal::Exhausted),
            (signals.replenished, Signal::Replenished),
            (signals.window_start, Signal::Window),
            (signals.period_start, Signal::Period),
        ];
        for (set, signal) in sets {
            for (slot, vcpu) in self.slots.iter().enumerate() {
                if set.0 >> slot & 1 != 0 {
                    self.predicted.entry(signal(*vcpu)).or_default().push(now);
                }
            }
        }
    }

    fn signalled(&mut self, signal: Signal, now: u64) {
        self.executed.entry(signal).or_default().push(now);
    }

    /// Compares the executed signals with the predicted ones, one by one in both directions. A signal that is
    /// predicted for the last moments may not have been recorded any more. A signal is recorded before the
    /// switch with which it is predicted, so a switch of the last moments may be missing as well.
    fn compare_signals(&mut self, end: u64) -> Result<(), String> {
        let mut kinds: Vec<Signal> = self
            .predicted
            .keys()
            .chain(self.executed.keys())
            .copied()
            .collect();
        kinds.dedup();
        for kind in kinds {
            let nothing = Vec::new();
            let predicted = self.predicted.get(&kind).unwrap_or(&nothing);
            let executed = self.executed.get(&kind).unwrap_or(&nothing);
            for (number, time) in executed.iter().enumerate() {
                let fits = predicted
                    .get(number)
                    .map_or(end == *time, |predicted| self.is_about(*predicted, *time));
                if !fits {
                    return Err(format!(
                        "{kind:?} number {number} at {} us, predicted was {:?} ns",
                        micros(*time),
                        predicted.get(number)
                    ));
                }
            }
            let missing = predicted.iter().skip(executed.len());
            if let Some(time) = missing
                .copied()
                .find(|time| self.turn_slack.lateness(*time, end) > self.overhead)
            {
                return Err(format!(
                    "{kind:?} predicted for {} us did not happen",
                    micros(time)
                ));
            }
            self.agreement.signals += executed.len() as u64;
        }
        Ok(())
    }

    fn is_about(&self, predicted: u64, executed: u64) -> bool {
        let apart = if executed >= predicted {
            self.turn_slack.lateness(predicted, executed)
        } else {
            predicted - executed
        };
        apart <= self.overhead + GRAIN
    }

    fn slot(&self, vcpu: u8) -> Result<Slot, String> {
        let slot = self.slots.iter().position(|own| *own == vcpu);
        let slot = slot.ok_or_else(|| format!("vCPU {vcpu} belongs to another pCPU"))?;
        Ok(Slot(slot as u8))
    }

    fn name(&self, slot: Option<Slot>) -> String {
        let vcpu = slot.and_then(|slot| self.slots.get(usize::from(slot.0)));
        vcpu.map_or("nobody".to_owned(), |vcpu| self.trace.vcpu_name(*vcpu))
    }
}

const fn target(decision: Decision) -> Option<Slot> {
    match decision {
        Decision::Run(slot, _) => Some(slot),
        Decision::Idle(_) => None,
    }
}

/// The agreement of each pCPU in words, or the first difference.
pub type Comparison = Result<Vec<String>, String>;

#[cfg(test)]
mod tests {
    use super::super::TraceVcpu;
    use super::super::tests::sample;
    use super::*;
    use bulkhead_abi::trace::SwitchReason;
    use bulkhead_sched::{AnyPolicy, Domain, DomainsParameters, FixedPriorityParameters, VcpuParameters};

    fn fixed_priority(priorities: [u8; 2], quantum: u64) -> AnyPolicy {
        let vcpus = priorities.map(|priority| VcpuParameters {
            priority,
            ..VcpuParameters::default()
        });
        AnyPolicy::fixed_priority(&vcpus, FixedPriorityParameters { quantum }).unwrap()
    }

    fn compare(
        trace: &Trace,
        pcpu: u8,
        policy: AnyPolicy,
        tolerance: Tolerance,
    ) -> Result<Agreement, String> {
        super::compare(trace, pcpu, policy, tolerance, Vec::new())
    }

    const fn within(overhead: u64) -> Tolerance {
        Tolerance {
            overhead,
            turns: false,
        }
    }

    #[test]
    fn what_the_policy_says_agrees_and_the_lag_is_measured() {
        let trace = sample(50);
        let agreement = compare(&trace, 0, fixed_priority([9, 1], 1_000_000), within(5_000)).unwrap();
        let expected = Agreement {
            switches: 101,
            signals: 0,
            latest: 2_000,
            workloads: 0,
            jobs: 0,
            excused: 0,
            loans: 0,
            again: 0,
            compared_until: None,
        };
        assert_eq!(agreement, expected);
    }

    #[test]
    fn a_lag_above_the_overhead_is_a_difference() {
        let error = compare(&sample(5), 0, fixed_priority([9, 1], 1_000_000), within(1_000)).unwrap_err();
        assert!(
            error.contains("noise runs since 100.000 us, predicted was another"),
            "{error}"
        );
    }

    #[test]
    fn another_policy_does_not_agree() {
        let error = compare(&sample(5), 0, fixed_priority([1, 9], 1_000_000), within(5_000)).unwrap_err();
        assert_eq!(
            error,
            "pCPU 0, 102.000 us after boot: switch to control, predicted was that noise goes on"
        );
        let error = compare(&sample(5), 0, fixed_priority([5, 5], 4_000), within(5_000)).unwrap_err();
        assert!(
            error.ends_with("switch to control, predicted was that noise goes on until 104.000 us"),
            "{error}"
        );
    }

    #[test]
    fn every_single_change_of_a_switch_is_seen() {
        let trace = sample(5);
        for (number, record) in trace.records.iter().enumerate() {
            let Event::Switch { from, to, why } = record.event else {
                continue;
            };
            let mut other = trace.clone();
            let to = if to == Some(0) { Some(1) } else { Some(0) };
            other.records[number].event = Event::Switch { from, to, why };
            assert!(
                compare(&other, 0, fixed_priority([9, 1], 1_000_000), within(5_000)).is_err(),
                "{number}"
            );
            let mut shorter = trace.clone();
            shorter.records.remove(number);
            let is_last = number + 1 == trace.records.len();
            let result = compare(&shorter, 0, fixed_priority([9, 1], 1_000_000), within(5_000));
            assert!(result.is_err() || is_last, "{number}");
        }
    }

    /// Returns a trace under policy `domains`. `noise` computes in its turns of 10 ms. `control` wakes up
    /// twice in one of them, runs for 100 us, and ends. An end takes `ending` us, and the decision after it
    /// is taken at the start of that time. So the turn ends earlier than the records say. The next turn is
    /// the turn of `sleeper`, which is never ready.
    fn with_two_ends(ending: u64) -> Trace {
        let mut trace = sample(0);
        trace.partitions.push("sleeper".to_owned());
        trace.vcpus.push(TraceVcpu {
            partition: 2,
            index: 0,
            pcpu: 0,
        });
        let mut add = |time, event| {
            let time = 1000 + time;
            trace.records.push(Record { time, pcpu: 0, event });
        };
        let switch = |from, to, why| Event::Switch { from, to, why };
        let state = |state| Event::State { partition: 0, state };
        let why = BlockReason::Ending;
        for start in [4_000, 6_000] {
            let (end, ended) = (start + 100, start + 100 + ending);
            add(start, Event::Wake { vcpu: 0, late: 0 });
            add(start, switch(Some(1), Some(0), SwitchReason::Preempted));
            add(end, state(PartitionState::Stopping));
            add(end, Event::Block { vcpu: 0, why });
            add(ended, state(PartitionState::Stopped));
            add(ended, switch(Some(0), Some(1), SwitchReason::Blocked));
        }
        add(10_200, Event::Exhausted { vcpu: 1 });
        add(10_200, switch(Some(1), None, SwitchReason::Preempted));
        trace
    }

    fn domains() -> AnyPolicy {
        let vcpus = [(9, 0), (1, 1), (1, 2)].map(|(priority, domain)| VcpuParameters {
            priority,
            domain,
            ..VcpuParameters::default()
        });
        let domains = [2_000_000, 10_000_000, 2_000_000].map(|budget| Domain { budget });
        let parameters = DomainsParameters {
            domains: &domains,
            quantum: 1_000_000,
        };
        AnyPolicy::domains(&vcpus, parameters).unwrap()
    }

    #[test]
    fn the_end_of_a_partition_moves_the_end_of_the_turn_under_way() {
        for ending in [0, 3] {
            compare(&with_two_ends(ending), 0, domains(), within(8_000)).unwrap();
        }
        assert!(compare(&with_two_ends(30), 0, domains(), within(8_000)).is_err());
    }

    #[test]
    fn each_beginning_of_a_trace_that_agrees_agrees() {
        let whole = with_two_ends(3);
        for length in 1..=whole.records.len() {
            let mut trace = whole.clone();
            trace.records.truncate(length);
            let result = compare(&trace, 0, domains(), within(8_000));
            assert!(result.is_ok(), "{length}: {result:?}");
        }
    }

    #[test]
    fn a_gap_ends_the_comparison() {
        let mut trace = sample(3);
        trace.records[4].event = Event::Lost { count: 7 };
        let error = compare(&trace, 0, fixed_priority([9, 1], 1_000_000), within(5_000)).unwrap_err();
        assert!(error.ends_with("7 records are missing"), "{error}");
    }
}
