// SPDX-License-Identifier: Apache-2.0
//! A pCPU small enough to be searched: the real policy, the part of the kernel that talks to it, and vCPUs
//! that may do anything at any tick.
//!
//! A state is the policy, the time, the decision in force and the memory of an oracle. From each state the
//! search takes every possible step. A vCPU that runs may block, yield or donate. A vCPU that waits may wake
//! up (once per tick). Donations may return, partitions may be withdrawn, schedules may change, or a tick
//! passes. The kernel's part is as in `kernel::local`: a wake-up of a vCPU that the policy is not interested
//! in changes nothing, and the timer is the decision's end. At each tick the oracle judges which vCPU runs.
//! The oracle knows the policy's documentation but not its code. The search visits every state up to a
//! horizon.

use bulkhead_sched::{
    AnyPolicy, Decision, Policy, PolicyError, ScheduleStatus, Signals, Slot, SlotSet, StopReason, Ticks,
};
use stateright::{Checker, Model, Property};
use std::fmt::Debug;
use std::hash::Hash;

/// Largest number of slots of a model.
pub const SLOTS: usize = 4;

/// The state beside the policy. The harness keeps it, and the oracle sees it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
pub struct World {
    pub now: Ticks,
    /// The slots that have something to do.
    pub ready: u32,
    /// By slot: the slot to which it lends its place.
    pub target: [Option<u8>; SLOTS],
    pub running: Option<u8>,
    /// The slots that are being served for a critical interrupt.
    pub critical: u32,
    pub schedule: ScheduleStatus,
    /// The schedule asked for last.
    pub wish: u8,
}

impl World {
    pub fn is_ready(&self, slot: u8) -> bool {
        self.ready >> slot & 1 == 1
    }

    /// Returns the slot that runs the place of `slot`, or `None` for a cycle.
    pub fn end(&self, slot: u8) -> Option<u8> {
        let mut end = slot;
        for _ in 0..=SLOTS {
            match self.target[usize::from(end)] {
                Some(next) => end = next,
                None => return Some(end),
            }
        }
        None
    }

    /// Tells whether the place of `slot` can be run.
    pub fn is_runnable(&self, slot: u8) -> bool {
        self.end(slot).is_some_and(|end| self.is_ready(end))
    }
}

/// The verdict of an oracle. An error says what went wrong.
pub type Verdict = Result<(), &'static str>;

/// A judge of a policy by its documentation.
pub trait Oracle: Clone + Debug + PartialEq + Eq + Hash + Send + Sync + 'static {
    /// Takes note that a slot becomes ready, of its own or because its donation has returned.
    fn woke(&mut self, _slot: u8, _world: &World) {}
    /// Takes note that a slot is no longer ready.
    fn blocked(&mut self, _slot: u8, _world: &World) {}
    /// Takes note that the policy was asked for a decision.
    fn decided(&mut self, _world: &World, _signals: Signals) -> Verdict {
        Ok(())
    }
    /// Judges the tick from `world.now` on, which `world.running` runs.
    fn tick(&mut self, world: &World) -> Verdict;
    /// Tells whether something worth seeing has happened at least once. See [`check`].
    fn has_seen_all(&self) -> bool {
        true
    }
}

/// The freedom of the vCPUs of a model beside waking up and blocking.
#[derive(Clone, Debug, Default)]
pub struct Freedom {
    pub yields: bool,
    pub donates: bool,
    pub withdraws: bool,
    /// The slots that have critical interrupts.
    pub critical: u32,
    /// Number of schedules to change between.
    pub schedules: u8,
    /// The slots whose timers may be noticed at the next decision only, while no vCPU is interested.
    pub unnoticed: u32,
    /// The slots that never block, nor donate.
    pub always_ready: u32,
}

/// The demands of a search on a policy.
pub trait Searchable: Policy + Clone + Debug + PartialEq + Eq + Hash + Send + Sync + 'static {}

impl<P: Policy + Clone + Debug + PartialEq + Eq + Hash + Send + Sync + 'static> Searchable for P {}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct State<P, O> {
    policy: P,
    world: World,
    since: Ticks,
    until: Ticks,
    interested: SlotSet,
    /// The slots that have become ready since the last tick.
    woken: u32,
    /// The slots that have become ready without anybody's notice.
    untold: u32,
    oracle: O,
    verdict: Verdict,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Action {
    Tick,
    Wake(u8),
    /// A wake-up that is noticed at the next decision.
    WakeUnnoticed(u8),
    Critical(u8),
    Stop(StopReason),
    Donate(u8),
    Return(u8),
    Withdraw(u8),
    Change(u8),
}

impl<P: Searchable, O: Oracle> State<P, O> {
    fn settle(&mut self, why: StopReason) {
        if let Some(slot) = self.world.running.take() {
            let now = self.world.now;
            self.policy.stopped(Slot(slot), why, now - self.since, now);
        }
    }

    fn decide(&mut self) {
        let untold = std::mem::take(&mut self.untold);
        for slot in (0..SLOTS as u8).filter(|slot| untold >> slot & 1 == 1) {
            self.policy.ready(Slot(slot), self.world.now);
        }
        match self.policy.next(self.world.now) {
            Decision::Run(slot, until) => {
                self.world.running = Some(slot.0);
                self.until = until;
                if !self.world.is_ready(slot.0) {
                    self.verdict = Err("a slot runs that is not ready");
                }
            }
            Decision::Idle(until) => self.until = until,
        }
        self.since = self.world.now;
        self.interested = self.policy.interested();
        self.world.schedule = self.policy.schedule();
        let signals = self.policy.signals();
        let verdict = self.oracle.decided(&self.world, signals);
        self.note(verdict);
    }

    fn note(&mut self, verdict: Verdict) {
        self.verdict = self.verdict.and(verdict);
    }

    fn redecide(&mut self, why: StopReason) {
        self.settle(why);
        self.decide();
        for _ in 0..2 {
            if self.until <= self.world.now {
                self.settle(StopReason::Preempted);
                self.decide();
            }
        }
        if self.until <= self.world.now {
            self.verdict = Err("decisions without end");
        }
    }

    fn become_ready(&mut self, slot: u8) {
        self.world.ready |= 1 << slot;
        self.woken |= 1 << slot;
        self.oracle.woke(slot, &self.world);
    }

    fn become_blocked(&mut self, slot: u8) {
        self.world.ready &= !(1 << slot);
        self.untold &= !(1 << slot);
        // A critical place is served as critical until no slot can run the place.
        for place in 0..SLOTS as u8 {
            if !self.world.is_runnable(place) {
                self.world.critical &= !(1 << place);
            }
        }
        self.oracle.blocked(slot, &self.world);
    }

    fn tick(&mut self) {
        let verdict = self.oracle.tick(&self.world);
        self.note(verdict);
        self.world.now += 1;
        self.woken = 0;
        if self.until <= self.world.now {
            self.redecide(StopReason::Preempted);
        }
    }

    fn donate(&mut self, from: u8, to: u8) {
        self.settle(StopReason::Preempted);
        let mut after = self.world.clone();
        after.target[usize::from(from)] = Some(to);
        let expected = match after.end(from) {
            Some(_) => Ok(()),
            None => Err(PolicyError::DonationCycle),
        };
        let before = self.policy.clone();
        let answer = self.policy.donate(Slot(from), Slot(to), self.world.now);
        if answer != expected {
            self.verdict = Err("a donation cycle was not recognised, or seen where there is none");
        }
        if answer.is_ok() {
            self.world.target = after.target;
            self.become_blocked(from);
        } else if self.policy != before {
            self.verdict = Err("a refused donation changed something");
        }
        self.redecide(StopReason::Preempted);
    }

    fn end_donation(&mut self, from: u8) {
        self.settle(StopReason::Preempted);
        self.world.target[usize::from(from)] = None;
        if self.policy.return_donation(Slot(from), self.world.now).is_err() {
            self.verdict = Err("a donation was not returned");
        }
        self.become_ready(from);
        self.redecide(StopReason::Preempted);
    }

    fn withdraw(&mut self, slot: u8) {
        self.settle(StopReason::Preempted);
        self.policy.withdraw(Slot(slot), self.world.now);
        self.world.target[usize::from(slot)] = None;
        self.become_blocked(slot);
        for donor in 0..SLOTS as u8 {
            if self.world.target[usize::from(donor)] == Some(slot) {
                self.world.target[usize::from(donor)] = None;
                self.become_ready(donor);
            }
        }
        self.redecide(StopReason::Preempted);
    }

    fn apply(&mut self, action: Action) {
        let now = self.world.now;
        match action {
            Action::Tick => self.tick(),
            Action::Wake(slot) => {
                self.policy.ready(Slot(slot), now);
                self.become_ready(slot);
                if self.interested.0 >> slot & 1 == 1 {
                    self.redecide(StopReason::Preempted);
                }
            }
            Action::WakeUnnoticed(slot) => {
                self.untold |= 1 << slot;
                self.become_ready(slot);
            }
            Action::Critical(slot) => {
                self.policy.critical(Slot(slot), now);
                self.world.critical |= 1 << slot;
                self.become_ready(slot);
                self.redecide(StopReason::Preempted);
            }
            Action::Stop(why) => {
                if let Some(slot) = self.world.running {
                    match why {
                        StopReason::Blocked => self.become_blocked(slot),
                        StopReason::Yielded => self.world.critical &= !(1 << slot),
                        StopReason::Preempted => {}
                    }
                }
                self.redecide(why);
            }
            Action::Donate(to) => {
                if let Some(from) = self.world.running {
                    self.donate(from, to);
                }
            }
            Action::Return(from) => self.end_donation(from),
            Action::Withdraw(slot) => self.withdraw(slot),
            Action::Change(schedule) => {
                if self.policy.change_schedule(schedule, now).is_err() {
                    self.verdict = Err("a schedule is refused");
                }
                self.world.wish = schedule;
                self.world.schedule = self.policy.schedule();
            }
        }
    }
}

/// A pCPU to be searched.
#[derive(Clone, Debug)]
pub struct Pcpu<P, O> {
    pub policy: P,
    pub slots: u8,
    pub freedom: Freedom,
    pub oracle: O,
    pub horizon: Ticks,
}

impl<P: Searchable, O: Oracle> Model for Pcpu<P, O> {
    type State = State<P, O>;
    type Action = Action;

    fn init_states(&self) -> Vec<State<P, O>> {
        let mut state = State {
            policy: self.policy.clone(),
            world: World::default(),
            since: 0,
            until: 0,
            interested: SlotSet(0),
            woken: 0,
            untold: 0,
            oracle: self.oracle.clone(),
            verdict: Ok(()),
        };
        for slot in (0..self.slots).filter(|slot| self.freedom.always_ready >> slot & 1 == 1) {
            state.policy.ready(Slot(slot), 0);
            state.become_ready(slot);
        }
        state.redecide(StopReason::Preempted);
        vec![state]
    }

    fn actions(&self, state: &State<P, O>, actions: &mut Vec<Action>) {
        let world = &state.world;
        if world.now >= self.horizon || state.verdict.is_err() {
            return;
        }
        actions.push(Action::Tick);
        for slot in 0..self.slots {
            let lends = world.target[usize::from(slot)].is_some();
            let can_wake = state.woken >> slot & 1 == 0;
            if lends && can_wake {
                actions.push(Action::Return(slot));
            } else if !lends && !world.is_ready(slot) && can_wake {
                actions.push(Action::Wake(slot));
                if self.freedom.unnoticed & !state.interested.0 & 1 << slot != 0 {
                    actions.push(Action::WakeUnnoticed(slot));
                }
            }
            if !lends && can_wake && self.freedom.critical & !world.critical & 1 << slot != 0 {
                actions.push(Action::Critical(slot));
            }
            if self.freedom.withdraws && world.running != Some(slot) && (lends || world.is_ready(slot)) {
                actions.push(Action::Withdraw(slot));
            }
            let may_donate = |running: u8| self.freedom.always_ready >> running & 1 == 0;
            if self.freedom.donates && world.running.is_some_and(may_donate) {
                actions.push(Action::Donate(slot));
            }
        }
        if let Some(running) = world.running
            && self.freedom.always_ready >> running & 1 == 0
        {
            actions.push(Action::Stop(StopReason::Blocked));
        }
        if self.freedom.yields && world.running.is_some() {
            actions.push(Action::Stop(StopReason::Yielded));
        }
        let others = (0..self.freedom.schedules).filter(|schedule| *schedule != world.wish);
        actions.extend(others.map(Action::Change));
    }

    fn next_state(&self, state: &State<P, O>, action: Action) -> Option<State<P, O>> {
        let mut next = state.clone();
        next.apply(action);
        Some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always("the oracle agrees", |_, state: &State<P, O>| {
                state.verdict.is_ok()
            }),
            Property::sometimes("the search is not vacuous", |_, state: &State<P, O>| {
                state.oracle.has_seen_all()
            }),
        ]
    }
}

/// Returns how many ticks further than usual to search: two in the long tests. That takes minutes.
fn more_ticks() -> Ticks {
    let long = std::env::var_os("BULKHEAD_LONG_TESTS").map_or(0, |_| 2);
    let ticks = std::env::var("BULKHEAD_MODEL_TICKS");
    ticks.map_or(long, |ticks| ticks.parse().expect("a number of ticks"))
}

/// Visits every state up to the horizon, or up to one that is `BULKHEAD_MODEL_TICKS` later. Fails with a way
/// to a state that the oracle refuses. With `BULKHEAD_MODEL_SHORTEST` set, that way is the shortest.
pub fn check<P: Searchable, O: Oracle>(name: &str, mut pcpu: Pcpu<P, O>) {
    pcpu.horizon += more_ticks();
    if std::env::var_os("BULKHEAD_MODEL_SHORTEST").is_some() {
        // The search goes level by level. So the first violation found is the shortest, at the price of
        // memory.
        report(name, &pcpu.clone().checker().threads(2).spawn_bfs().join());
    }
    let checker = pcpu.checker().threads(2).spawn_dfs().join();
    println!("{name}: {} states", checker.unique_state_count());
    report(name, &checker);
    checker.assert_properties();
}

/// Returns the complaint of a model's oracle about a policy that is not as it should be. Returns `None` if
/// the oracle finds nothing.
pub fn complaint<P: Searchable, O: Oracle>(pcpu: Pcpu<P, O>) -> Option<&'static str> {
    let checker = pcpu.checker().spawn_dfs().join();
    let path = checker.discovery("the oracle agrees")?;
    path.last_state().verdict.err()
}

impl<O> Pcpu<AnyPolicy, O> {
    /// Returns the same pCPU with another policy.
    pub fn with<P>(self, change: impl FnOnce(AnyPolicy) -> P) -> Pcpu<P, O> {
        Pcpu {
            policy: change(self.policy),
            slots: self.slots,
            freedom: self.freedom,
            oracle: self.oracle,
            horizon: self.horizon,
        }
    }
}

/// Fails with the way to a state that the oracle refuses, if one was found.
fn report<P: Searchable, O: Oracle>(name: &str, checker: &impl Checker<Pcpu<P, O>>) {
    if let Some(path) = checker.discovery("the oracle agrees") {
        let last = path.last_state().clone();
        let actions = path.into_actions();
        panic!(
            "{name}: {:?} after {actions:?}\n{:?} {:?}",
            last.verdict, last.world, last.oracle
        );
    }
}
