// SPDX-License-Identifier: Apache-2.0
//! `fixed-priority` against a reference model made of plain lists, on random and on all short sequences.

use bulkhead_sched::{
    Decision, FixedPriority, FixedPriorityParameters, Policy, Slot, SlotSet, StopReason, Ticks,
    VcpuParameters,
};
use proptest::prelude::*;

const QUANTUM: Ticks = 10;

/// One step of a pCPU's life.
#[derive(Clone, Copy, Debug)]
enum Step {
    Ready(u8),
    Withdraw(u8),
    /// The running slot stops after this many ticks (bounded by the decision).
    Stop(StopReason, Ticks),
}

/// The policy according to its documentation, with lists instead of bitmaps.
struct Model {
    priorities: Vec<u8>,
    ready: Vec<bool>,
    /// Per level: the slot that has the turn, and the rest of the turn.
    turns: Vec<(usize, Ticks)>,
}

impl Model {
    fn new(priorities: &[u8]) -> Self {
        Self {
            priorities: priorities.to_vec(),
            ready: vec![false; priorities.len()],
            turns: vec![(0, QUANTUM); 32],
        }
    }

    fn equals(&self, level: u8) -> Vec<usize> {
        (0..self.ready.len())
            .filter(|slot| self.ready[*slot] && self.priorities[*slot] == level)
            .collect()
    }

    fn pass_turn(&mut self, level: u8) {
        let holder = self.turns[usize::from(level)].0;
        let equals = self.equals(level);
        let next = equals.iter().find(|slot| **slot > holder).or(equals.first());
        self.turns[usize::from(level)] = (next.copied().unwrap_or(holder), QUANTUM);
    }

    fn next(&mut self, now: Ticks) -> Decision {
        let Some(level) = (0..self.ready.len())
            .filter(|slot| self.ready[*slot])
            .map(|slot| self.priorities[slot])
            .max()
        else {
            return Decision::Idle(Ticks::MAX);
        };
        if !self.equals(level).contains(&self.turns[usize::from(level)].0) {
            self.pass_turn(level);
        }
        let (slot, left) = self.turns[usize::from(level)];
        let until = if self.equals(level).len() > 1 {
            now + left
        } else {
            Ticks::MAX
        };
        Decision::Run(Slot(slot as u8), until)
    }

    fn stopped(&mut self, slot: usize, why: StopReason, ran: Ticks, was_shared: bool) {
        let level = self.priorities[slot];
        if was_shared {
            let left = &mut self.turns[usize::from(level)].1;
            *left = left.saturating_sub(ran);
        }
        if self.turns[usize::from(level)].1 == 0 || why == StopReason::Yielded {
            self.pass_turn(level);
        }
        if why == StopReason::Blocked {
            self.ready[slot] = false;
        }
    }
}

fn new_policy(priorities: &[u8]) -> FixedPriority {
    let vcpus: Vec<_> = priorities
        .iter()
        .map(|priority| VcpuParameters {
            priority: *priority,
            ..VcpuParameters::default()
        })
        .collect();
    FixedPriority::new(&vcpus, FixedPriorityParameters { quantum: QUANTUM }).unwrap()
}

/// Asserts that `interested` names exactly the slots whose readiness changes the decision.
fn check_interest(policy: &FixedPriority, decision: Decision, slots: usize, now: Ticks) {
    for slot in 0..slots {
        let mut other = policy.clone();
        other.ready(Slot(slot as u8), now);
        if let Decision::Run(running, _) = decision {
            other.stopped(running, StopReason::Preempted, 0, now);
        }
        let changes = other.next(now) != decision;
        let SlotSet(interested) = policy.interested();
        assert_eq!(interested >> slot & 1 == 1, changes, "slot {slot} of {policy:?}");
    }
}

fn run(priorities: &[u8], steps: &[Step]) {
    let mut policy = new_policy(priorities);
    let mut model = Model::new(priorities);
    let mut now = 0;
    let mut decision = policy.next(now);
    assert_eq!(decision, model.next(now));
    for step in steps {
        // A decision is settled before any event that may change the decision. The kernel does the same.
        let (why, wanted) = match *step {
            Step::Stop(why, ran) => (why, ran),
            Step::Ready(_) | Step::Withdraw(_) => (StopReason::Preempted, 1),
        };
        if let Decision::Run(slot, until) = decision {
            let ran = wanted.min(until - now);
            now += ran;
            policy.stopped(slot, why, ran, now);
            model.stopped(usize::from(slot.0), why, ran, until != Ticks::MAX);
        }
        match *step {
            Step::Ready(slot) if usize::from(slot) < priorities.len() => {
                policy.ready(Slot(slot), now);
                model.ready[usize::from(slot)] = true;
            }
            Step::Withdraw(slot) if usize::from(slot) < priorities.len() => {
                policy.withdraw(Slot(slot), now);
                model.ready[usize::from(slot)] = false;
            }
            _ => {}
        }
        decision = policy.next(now);
        assert_eq!(decision, model.next(now), "after {step:?}");
        check_interest(&policy, decision, priorities.len(), now);
    }
}

fn any_step() -> impl Strategy<Value = Step> {
    let why = prop_oneof![
        Just(StopReason::Preempted),
        Just(StopReason::Blocked),
        Just(StopReason::Yielded)
    ];
    prop_oneof![
        3 => (0..12_u8).prop_map(Step::Ready),
        1 => (0..12_u8).prop_map(Step::Withdraw),
        4 => (why, 0..15_u64).prop_map(|(why, ran)| Step::Stop(why, ran)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, rng_seed: proptest::test_runner::RngSeed::Fixed(1), ..ProptestConfig::default() })]

    #[test]
    fn behaves_like_the_model(
        priorities in prop::collection::vec(prop_oneof![0..4_u8, Just(31)], 1..12),
        steps in prop::collection::vec(any_step(), 0..60),
    ) {
        run(&priorities, &steps);
    }

    /// Checks that equals share fairly. Over any stretch in which a level has the pCPU and its members stay
    /// ready, no member gets more than one quantum ahead of another.
    #[test]
    fn equals_share_fairly(equals in 2..8_usize, turns in 1..50_usize) {
        let mut policy = new_policy(&vec![4; equals]);
        let mut ran = vec![0; equals];
        (0..equals).for_each(|slot| policy.ready(Slot(slot as u8), 0));
        let mut now = 0;
        for _ in 0..turns {
            let Decision::Run(slot, until) = policy.next(now) else { panic!("all are ready") };
            ran[usize::from(slot.0)] += until - now;
            policy.stopped(slot, StopReason::Preempted, until - now, until);
            now = until;
        }
        let (least, most) = (ran.iter().min().unwrap(), ran.iter().max().unwrap());
        prop_assert!(most - least <= QUANTUM);
    }
}

/// Checks every sequence of five steps of three slots, for every order of their priorities.
#[test]
fn all_short_sequences_behave_like_the_model() {
    let steps: Vec<Step> = (0..3)
        .flat_map(|slot| [Step::Ready(slot), Step::Withdraw(slot)])
        .chain([
            Step::Stop(StopReason::Preempted, QUANTUM),
            Step::Stop(StopReason::Blocked, 3),
            Step::Stop(StopReason::Yielded, 3),
        ])
        .collect();
    let count = steps.len();
    for priorities in [[1, 1, 1], [1, 1, 2], [1, 2, 2], [1, 2, 3]] {
        for number in 0..count.pow(5) {
            let sequence: Vec<Step> = (0..5)
                .map(|place| steps[number / count.pow(place) % count])
                .collect();
            run(&priorities, &sequence);
        }
    }
}
