// SPDX-License-Identifier: Apache-2.0
//! One pCPU in simulated time.

use super::source::Chance;
use super::{Event, Observer, Source, SourceState};
use crate::analysis::{Overheads, TaskScheduler};
use crate::{Decision, MAX_SLOTS, Policy, Slot, SlotSet, StopReason, Ticks};

/// The activity of a slot.
#[derive(Clone, Copy, Debug)]
struct SlotState {
    scheduler: TaskScheduler,
    /// The policy has it among the ready.
    ready: bool,
    ran: Ticks,
}

/// One pCPU with its policy and sources.
#[derive(Debug)]
pub struct Simulator<'a, P> {
    policy: P,
    sources: &'a [Source],
    states: &'a mut [SourceState],
    slots: [SlotState; MAX_SLOTS],
    overheads: Overheads,
    chance: Chance,
    now: Ticks,
    running: Option<Slot>,
    /// The slot that was on the pCPU last: to run it again takes no switch.
    loaded: Option<Slot>,
    since: Ticks,
    until: Ticks,
    interested: SlotSet,
    /// A decision is wanted.
    reschedule: bool,
    /// The work of the hypervisor that is left before anybody runs.
    busy: Ticks,
    /// The time up to now in which no vCPU ran.
    idle: Ticks,
}

impl<'a, P: Policy> Simulator<'a, P> {
    /// Returns a pCPU at time 0. `states` has one state for each source, and the contents of a state do not
    /// matter. `seed` is the seed of random choices.
    pub fn new(
        policy: P,
        sources: &'a [Source],
        states: &'a mut [SourceState],
        overheads: Overheads,
        seed: u64,
    ) -> Self {
        for (state, source) in states.iter_mut().zip(sources) {
            state.start(source);
        }
        let slot = SlotState {
            scheduler: TaskScheduler::FixedPriority,
            ready: false,
            ran: 0,
        };
        Self {
            policy,
            sources,
            states,
            slots: [slot; MAX_SLOTS],
            overheads,
            chance: Chance::new(seed),
            now: 0,
            running: None,
            loaded: None,
            since: 0,
            until: 0,
            interested: SlotSet(0),
            reschedule: true,
            busy: 0,
            idle: 0,
        }
    }

    /// Sets how `slot` chooses among its jobs. Without this call, it chooses by priority.
    pub fn set_scheduler(&mut self, slot: Slot, scheduler: TaskScheduler) {
        if let Some(state) = self.slots.get_mut(usize::from(slot.0)) {
            state.scheduler = scheduler;
        }
    }

    /// Returns how long `slot` has been running, up to the last decision.
    #[must_use]
    pub fn ran(&self, slot: Slot) -> Ticks {
        self.slots.get(usize::from(slot.0)).map_or(0, |state| state.ran)
    }

    /// Returns how long no vCPU has been running.
    #[must_use]
    pub const fn idle(&self) -> Ticks {
        self.idle
    }

    /// Returns the statistics of the jobs of each source.
    #[must_use]
    pub const fn states(&self) -> &[SourceState] {
        self.states
    }

    /// Returns the policy, to change its schedule.
    pub const fn policy(&mut self) -> &mut P {
        &mut self.policy
    }

    /// Goes on until `end`, with at most `steps` steps; whether it got there.
    pub fn run(&mut self, end: Ticks, steps: u64, observer: &mut impl Observer) -> bool {
        for _ in 0..steps {
            self.arrivals(observer);
            if self.reschedule {
                self.decide(observer);
            }
            if self.now >= end {
                self.settle(StopReason::Preempted);
                self.reschedule = true;
                self.look_for_late_jobs(observer);
                return true;
            }
            self.advance(end, observer);
        }
        false
    }

    /// Time goes by until something happens.
    fn advance(&mut self, end: Ticks, observer: &mut impl Observer) {
        if self.busy > 0 {
            self.now = self.now.saturating_add(self.busy);
            self.busy = 0;
            // The end of the turn is looked at here, too: a vCPU whose own timer keeps the hypervisor busy
            // must not get round it.
            self.end_decision(end);
            return;
        }
        let job = self.running.and_then(|slot| self.job_of(slot));
        let mut next = end.min(self.until.max(self.now)).min(self.next_arrival());
        if let Some(state) = job.and_then(|job| self.states.get(job)) {
            next = next.min(self.now.saturating_add(state.left));
        }
        let passed = next.saturating_sub(self.now);
        self.now = next;
        if let Some(job) = job {
            self.work(job, passed, observer);
        }
        self.end_decision(end);
    }

    /// Notices that the decision in force has come to its end.
    fn end_decision(&mut self, end: Ticks) {
        if self.now >= self.until && self.now < end {
            self.reschedule = true;
            self.busy = self.busy.saturating_add(self.overheads.interrupt);
        }
    }

    /// Credits the oldest job of source `number` with `passed` ticks.
    fn work(&mut self, number: usize, passed: Ticks, observer: &mut impl Observer) {
        let (Some(source), Some(state)) = (self.sources.get(number), self.states.get_mut(number)) else {
            return;
        };
        if passed != 0 {
            observer.event(self.now, Event::Worked(number, passed));
        }
        state.left = state.left.saturating_sub(passed);
        if state.left == 0 {
            self.now = self.now.saturating_add(source.call);
            if state.is_newly_late(source, self.now) {
                observer.event(self.now, Event::Missed(number));
            }
            let response = state.complete(source, self.now, &mut self.chance);
            observer.event(self.now, Event::Completed(number, response));
        }
    }

    /// Returns the time at which the next job is released that anybody notices.
    fn next_arrival(&self) -> Ticks {
        let sources = self.sources.iter().zip(self.states.iter());
        let noticed = sources.filter(|(source, _)| self.is_noticed(source));
        noticed.map(|(_, state)| state.next).min().unwrap_or(Ticks::MAX)
    }

    /// Tells whether a release of this source is noticed at once.
    fn is_noticed(&self, source: &Source) -> bool {
        source.is_interrupt || self.running == Some(source.slot) || self.interested.0 & bit(source.slot) != 0
    }

    /// Everything released up to now that is noticed.
    fn arrivals(&mut self, observer: &mut impl Observer) {
        for number in 0..self.sources.len() {
            let Some(source) = self.sources.get(number).copied() else {
                return;
            };
            if self.is_noticed(&source) {
                let before = self.states.get(number).map_or(0, |state| state.next);
                if before <= self.now {
                    self.busy = self.busy.saturating_add(self.overheads.interrupt);
                    self.release(number, &source, observer);
                    if source.is_interrupt {
                        self.wake(&source, observer);
                    } else if self.running != Some(source.slot) {
                        self.reschedule = true;
                    }
                }
            }
        }
        let is_done = self.running.is_some_and(|slot| !self.has_work(slot));
        self.reschedule |= is_done;
    }

    /// Releases the jobs of source `number` up to now.
    fn release(&mut self, number: usize, source: &Source, observer: &mut impl Observer) {
        let Some(state) = self.states.get_mut(number) else {
            return;
        };
        // Each round takes the next release at least one tick on.
        while state.next <= self.now {
            for _ in 0..SourceState::batch(source) {
                let event = if state.release(source, &mut self.chance) {
                    Event::Released(number)
                } else {
                    Event::Dropped(number)
                };
                observer.event(state.next, event);
            }
            state.advance(source, &mut self.chance);
        }
    }

    /// Tells the policy that the slot of `source` has something to do.
    fn wake(&mut self, source: &Source, observer: &mut impl Observer) {
        let slot = source.slot;
        let Some(state) = self.slots.get_mut(usize::from(slot.0)) else {
            return;
        };
        if !state.ready {
            state.ready = true;
            observer.event(self.now, Event::Woken(slot));
            self.policy.ready(slot, self.now);
            self.reschedule |= self.interested.0 & bit(slot) != 0;
        }
        if source.is_critical {
            observer.event(self.now, Event::Critical(slot));
            self.policy.critical(slot, self.now);
            self.reschedule = true;
        }
    }

    /// Makes the loop's decision: settle, wake what is due, ask the policy.
    fn decide(&mut self, observer: &mut impl Observer) {
        let from = self.running;
        let is_done = from.is_some_and(|slot| !self.has_work(slot));
        let why = if is_done {
            StopReason::Blocked
        } else {
            StopReason::Preempted
        };
        self.settle(why);
        if let (Some(slot), true) = (from, is_done) {
            if let Some(state) = self.slots.get_mut(usize::from(slot.0)) {
                state.ready = false;
            }
            observer.event(self.now, Event::Blocked(slot));
        }
        for number in 0..self.sources.len() {
            let Some(source) = self.sources.get(number).copied() else {
                break;
            };
            self.release(number, &source, observer);
            let is_ready = self
                .slots
                .get(usize::from(source.slot.0))
                .is_some_and(|state| state.ready);
            if !is_ready && self.has_work(source.slot) {
                self.wake(&source, observer);
            }
        }
        self.look_for_late_jobs(observer);
        self.pick(from, why, observer);
    }

    /// Ends the decision in force.
    fn settle(&mut self, why: StopReason) {
        let ran = self.now.saturating_sub(self.since);
        self.since = self.now;
        let Some(slot) = self.running.take() else {
            self.idle = self.idle.saturating_add(ran);
            return;
        };
        if let Some(state) = self.slots.get_mut(usize::from(slot.0)) {
            state.ran = state.ran.saturating_add(ran);
        }
        self.policy.stopped(slot, why, ran, self.now);
    }

    fn pick(&mut self, from: Option<Slot>, why: StopReason, observer: &mut impl Observer) {
        self.reschedule = false;
        let (running, until) = match self.policy.next(self.now) {
            Decision::Run(slot, until) => (Some(slot), until),
            Decision::Idle(until) => (None, until),
        };
        self.running = running;
        self.until = until;
        self.interested = self.policy.interested();
        self.busy = self.busy.saturating_add(self.overheads.decision);
        if running.is_some() && running != self.loaded {
            self.busy = self.busy.saturating_add(self.overheads.switch);
            self.loaded = running;
        }
        self.tell(observer);
        if running != from {
            let to = running;
            observer.event(self.now, Event::Switched { from, to, why });
        }
    }

    /// Passes on what the decision brought about.
    fn tell(&mut self, observer: &mut impl Observer) {
        let signals = self.policy.signals();
        let mut each = |set: SlotSet, event: fn(Slot) -> Event| {
            for slot in (0..u32::BITS as u8)
                .map(Slot)
                .filter(|slot| set.0 & bit(*slot) != 0)
            {
                observer.event(self.now, event(slot));
            }
        };
        each(signals.exhausted, Event::Exhausted);
        each(signals.replenished, Event::Replenished);
        // One of the partition's stands for all.
        each(lowest(signals.window_start), Event::WindowStarted);
        each(lowest(signals.period_start), Event::PeriodStarted);
        if signals.schedule_changed {
            let schedule = self.policy.schedule().current;
            observer.event(self.now, Event::ScheduleChanged(schedule));
        }
    }

    /// Tells whether `slot` has a job.
    fn has_work(&self, slot: Slot) -> bool {
        let mut sources = self.sources.iter().zip(self.states.iter());
        sources.any(|(source, state)| source.slot == slot && (state.is_pending() || state.endless))
    }

    /// Returns the job that `slot` runs: the choice of the partition's own scheduler. Work without end comes
    /// last.
    fn job_of(&self, slot: Slot) -> Option<usize> {
        let scheduler = self.slots.get(usize::from(slot.0))?.scheduler;
        let sources = self.sources.iter().zip(self.states.iter()).enumerate();
        let pending = sources.filter(|(_, (source, state))| source.slot == slot && state.is_pending());
        let rank = |source: &Source, state: &SourceState| match scheduler {
            TaskScheduler::FixedPriority => Ticks::from(u8::MAX.saturating_sub(source.task.priority)),
            TaskScheduler::EarliestDeadline => state.deadline(source),
        };
        pending
            .min_by_key(|(_, (source, state))| rank(source, state))
            .map(|(number, _)| number)
    }

    fn look_for_late_jobs(&mut self, observer: &mut impl Observer) {
        for (number, (source, state)) in self.sources.iter().zip(self.states.iter_mut()).enumerate() {
            if state.is_newly_late(source, self.now) {
                observer.event(self.now, Event::Missed(number));
            }
        }
    }
}

/// Returns the set of only the first slot of a set.
const fn lowest(set: SlotSet) -> SlotSet {
    SlotSet(set.0 & set.0.wrapping_neg())
}

/// Returns the bit of a slot; slots are below 32.
const fn bit(slot: Slot) -> u32 {
    1_u32.rotate_left(slot.0 as u32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::{Orders, Output, Task};
    use crate::simulate::Pattern;
    use crate::{AnyPolicy, FixedPriorityParameters, VcpuParameters};

    /// The last events, the oldest first.
    struct Log([Option<(Ticks, Event)>; 12], usize);

    impl Observer for Log {
        fn event(&mut self, now: Ticks, event: Event) {
            if let Some(place) = self.0.get_mut(self.1) {
                *place = Some((now, event));
            }
            self.1 += 1;
        }
    }

    const fn source(slot: u8, period: Ticks, wcet: Ticks, pattern: Pattern) -> Source {
        Source::new(Slot(slot), Task::new(period, wcet), pattern)
    }

    /// Slot 1 is above slot 0.
    fn policy() -> AnyPolicy {
        let vcpu = |priority| VcpuParameters {
            priority,
            ..VcpuParameters::default()
        };
        AnyPolicy::fixed_priority(&[vcpu(1), vcpu(2)], FixedPriorityParameters { quantum: 10 }).unwrap()
    }

    const SOURCES: [Source; 2] = [
        source(0, 1, 1, Pattern::AlwaysReady),
        source(1, 20, 5, Pattern::Periodic),
    ];

    #[test]
    fn a_job_runs_from_its_release_and_the_rest_is_the_others() {
        let mut states = [SourceState::default(); 2];
        let mut simulator = Simulator::new(policy(), &SOURCES, &mut states, Overheads::default(), 1);
        let mut log = Log([None; 12], 0);
        assert!(simulator.run(100, 1000, &mut log));
        assert_eq!(
            (simulator.ran(Slot(0)), simulator.ran(Slot(1)), simulator.idle()),
            (75, 25, 0)
        );
        let why = StopReason::Blocked;
        let expected = [
            (0, Event::Woken(Slot(0))),
            (0, Event::Released(1)),
            (0, Event::Woken(Slot(1))),
        ];
        assert_eq!(log.0[..3], expected.map(Some));
        let (from, to) = (Some(Slot(1)), Some(Slot(0)));
        let back = Some((5, Event::Switched { from, to, why }));
        assert!(log.0.contains(&back) && log.0.contains(&Some((5, Event::Completed(1, 5)))));
        let statistics = states[1].statistics;
        assert_eq!(
            (statistics.completed, statistics.longest, statistics.missed),
            (5, 5, 0)
        );
    }

    #[test]
    fn the_hypervisor_takes_its_time() {
        let overheads = Overheads {
            switch: 2,
            interrupt: 1,
            decision: 1,
            longest: 0,
            orders: Orders::NONE,
            output: Output::NONE,
        };
        let mut states = [SourceState::default(); 2];
        let mut simulator = Simulator::new(policy(), &SOURCES, &mut states, overheads, 1);
        assert!(simulator.run(100, 1000, &mut ()));
        // Interrupt, decision, switch, then the job; the first is released while no vCPU runs.
        assert_eq!(states[1].statistics.longest, 1 + 1 + 2 + 5);
    }

    #[test]
    fn a_job_that_is_late_is_counted_once() {
        let sources = [source(1, 20, 30, Pattern::Periodic)];
        let mut states = [SourceState::default(); 1];
        let mut simulator = Simulator::new(policy(), &sources, &mut states, Overheads::default(), 1);
        assert!(simulator.run(119, 1000, &mut ()));
        // Complete at 30, 60, 90; the fourth, due at 80, and the fifth, due at 100, are not.
        let statistics = states[0].statistics;
        assert_eq!((statistics.completed, statistics.longest), (3, 50));
        assert_eq!(statistics.missed, 4);
    }

    #[test]
    fn a_long_call_keeps_the_more_important_waiting() {
        let call = Source {
            call: 7,
            ..source(0, 100, 10, Pattern::Periodic)
        };
        let urgent = Source {
            first: 12,
            ..source(1, 100, 5, Pattern::Periodic)
        };
        let mut states = [SourceState::default(); 2];
        let sources = [call, urgent];
        let mut simulator = Simulator::new(policy(), &sources, &mut states, Overheads::default(), 1);
        assert!(simulator.run(100, 1000, &mut ()));
        // The call goes on from 10 to 17.
        assert_eq!(simulator.ran(Slot(0)), 17);
        assert_eq!(states.map(|state| state.statistics.longest), [17, 5 + 5]);
    }

    #[test]
    fn a_line_that_waits_for_an_answer_comes_a_while_after_it() {
        let sources = [source(1, 20, 5, Pattern::Answered)];
        let mut states = [SourceState::default(); 1];
        let mut simulator = Simulator::new(policy(), &sources, &mut states, Overheads::default(), 1);
        assert!(simulator.run(100, 1000, &mut ()));
        // At 0, 25, 50, 75.
        assert_eq!(states[0].statistics.completed, 4);
    }

    #[test]
    fn chance_repeats_itself() {
        let run = |seed| {
            let sources = [
                source(1, 20, 9, Pattern::Sporadic(30)),
                source(0, 50, 9, Pattern::Burst(3)),
            ]
            .map(|source| Source {
                shortest: 1,
                ..source
            });
            let mut states = [SourceState::default(); 2];
            let mut simulator = Simulator::new(policy(), &sources, &mut states, Overheads::default(), seed);
            assert!(simulator.run(10_000, 100_000, &mut ()));
            states.map(|state| state.statistics)
        };
        assert_eq!(run(7), run(7));
        assert_ne!(run(7), run(8));
    }

    #[test]
    fn a_policy_that_lets_no_time_pass_ends_the_simulation() {
        struct Stuck;
        impl Policy for Stuck {
            fn ready(&mut self, _: Slot, _: Ticks) {}
            fn stopped(&mut self, _: Slot, _: StopReason, _: Ticks, _: Ticks) {}
            fn withdraw(&mut self, _: Slot, _: Ticks) {}
            fn next(&mut self, now: Ticks) -> Decision {
                Decision::Idle(now)
            }
            fn ready_slots(&self) -> SlotSet {
                SlotSet(0)
            }
            fn interested(&self) -> SlotSet {
                SlotSet(0)
            }
        }
        let mut states = [SourceState::default(); 2];
        let mut simulator = Simulator::new(Stuck, &SOURCES, &mut states, Overheads::default(), 1);
        assert!(!simulator.run(10, 1000, &mut ()));
    }
}
