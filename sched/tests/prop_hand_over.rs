// SPDX-License-Identifier: Apache-2.0
//! A hand-over without a decision leads to the same slot as a donation and a decision.
//!
//! Two policies see the same random events: wake-ups, waits, calls and replies through chains. One of them is
//! asked for hand-overs, and decides only when a slot wakes up that it named. The other one is told of each
//! donation and decides each time. All slots have priorities of their own and no budgets. Then both must run
//! the same slot after each event. A hand-over that is refused changes nothing.

use bulkhead_sched::{
    AnyPolicy, FixedPriorityParameters, InForce, Policy, Slot, SlotSet, StopReason, Ticks, VcpuParameters,
};

const SLOTS: u8 = 6;
const STEPS: usize = 400;

/// Numbers that are the same each time (splitmix64).
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ mixed >> 31) % bound
    }
}

/// A policy, and the decision that it has in force.
struct Side {
    policy: AnyPolicy,
    in_force: InForce,
    since: Ticks,
}

impl Side {
    fn new(priorities: &[u8]) -> Self {
        let vcpu = |priority: &u8| VcpuParameters {
            priority: *priority,
            ..VcpuParameters::default()
        };
        let vcpus: Vec<_> = priorities.iter().map(vcpu).collect();
        Self {
            policy: AnyPolicy::fixed_priority(&vcpus, FixedPriorityParameters { quantum: 10 }).unwrap(),
            in_force: InForce::NONE,
            since: 0,
        }
    }

    fn stop(&mut self, why: StopReason, now: Ticks) {
        if self.in_force.slot != InForce::NOBODY {
            let ran = now - self.since;
            self.policy.stopped(self.in_force.slot, why, ran, now);
            self.in_force.slot = InForce::NOBODY;
        }
    }

    fn decide(&mut self, now: Ticks) {
        self.policy.decide(now, &mut self.in_force);
        self.since = now;
    }

    fn wake(&mut self, slot: Slot, now: Ticks) {
        self.policy.ready(slot, now);
        if self.in_force.interested.0 & 1 << slot.0 != 0 {
            self.stop(StopReason::Preempted, now);
            self.decide(now);
        }
    }

    fn call(&mut self, from: Slot, to: Slot, now: Ticks) {
        self.stop(StopReason::Blocked, now);
        self.policy.donate(from, to, now).unwrap();
        self.policy.ready(to, now);
        self.decide(now);
    }

    fn reply(&mut self, from: Slot, now: Ticks) {
        self.policy.return_donation(from, now).unwrap();
        self.stop(StopReason::Blocked, now);
        self.decide(now);
    }

    /// Checks that a refusal has changed nothing.
    fn try_hand(
        &mut self,
        hand: impl FnOnce(&mut AnyPolicy, Ticks, &mut InForce) -> bool,
        now: Ticks,
    ) -> bool {
        let (policy, in_force) = (self.policy.clone(), self.in_force);
        let done = hand(&mut self.policy, now - self.since, &mut self.in_force);
        if done {
            self.since = now;
        } else {
            assert!(self.policy == policy && self.in_force == in_force);
        }
        done
    }
}

/// Plays one random life. Returns how many places were handed over, and back.
fn play(seed: u64) -> (usize, usize) {
    let mut numbers = Numbers(seed);
    let mut priorities: Vec<u8> = (1..=SLOTS).collect();
    for place in (1..priorities.len()).rev() {
        priorities.swap(place, numbers.below(place as u64 + 1) as usize);
    }
    let (mut short, mut long) = (Side::new(&priorities), Side::new(&priorities));
    short.decide(0);
    long.decide(0);
    let mut lends_to: Vec<Option<u8>> = vec![None; usize::from(SLOTS)];
    let mut ready = 0_u32;
    let (mut now, mut over, mut back) = (0, 0, 0);
    for step in 0..STEPS {
        now += 1 + numbers.below(5);
        let running = short.in_force.slot;
        let other = Slot(numbers.below(SLOTS.into()) as u8);
        let is_free = ready & 1 << other.0 == 0 && lends_to[usize::from(other.0)].is_none();
        let donor = (0..SLOTS).find(|donor| lends_to[usize::from(*donor)] == Some(running.0));
        match numbers.below(5) {
            0 if is_free => {
                ready |= 1 << other.0;
                short.wake(other, now);
                long.wake(other, now);
            }
            1 if running != InForce::NOBODY && donor.is_none() => {
                ready &= !(1 << running.0);
                for side in [&mut short, &mut long] {
                    side.stop(StopReason::Blocked, now);
                    side.decide(now);
                }
            }
            2 if running != InForce::NOBODY => {
                for side in [&mut short, &mut long] {
                    side.stop(StopReason::Preempted, now);
                    side.decide(now);
                }
            }
            3 if running != InForce::NOBODY && is_free => {
                let slots = (running, other);
                if short.try_hand(|policy, ran, force| policy.hand_over(slots, ran, now, force), now) {
                    over += 1;
                } else {
                    short.call(running, other, now);
                }
                long.call(running, other, now);
                ready = ready & !(1 << running.0) | 1 << other.0;
                lends_to[usize::from(running.0)] = Some(other.0);
            }
            4 if donor.is_some() => {
                let Some(donor) = donor else { continue };
                let slots = (Slot(donor), running);
                if short.try_hand(|policy, ran, force| policy.hand_back(slots, ran, now, force), now) {
                    back += 1;
                } else {
                    short.reply(Slot(donor), now);
                }
                long.reply(Slot(donor), now);
                ready = ready & !(1 << running.0) | 1 << donor;
                lends_to[usize::from(donor)] = None;
            }
            _ => {}
        }
        assert_eq!(
            short.in_force.slot, long.in_force.slot,
            "seed {seed}, step {step}"
        );
        assert_eq!(
            short.policy.ready_slots(),
            SlotSet(ready),
            "seed {seed}, step {step}"
        );
        assert_eq!(
            long.policy.ready_slots(),
            SlotSet(ready),
            "seed {seed}, step {step}"
        );
    }
    (over, back)
}

#[test]
fn a_hand_over_runs_the_slot_that_a_decision_would_run() {
    let (mut over, mut back) = (0, 0);
    for seed in 0..2000 {
        let found = play(seed);
        (over, back) = (over + found.0, back + found.1);
    }
    assert!(over > 10_000 && back > 1_000, "{over} over, {back} back");
}

/// Hands a place over, whose budget the slot that runs in it then uses up.
#[test]
fn the_time_is_that_of_the_place() {
    use bulkhead_sched::{Server, ServerKind};
    let mut vcpus = [VcpuParameters::default(); 3];
    (vcpus[0].priority, vcpus[2].priority) = (9, 5);
    vcpus[0].server = Some(Server {
        kind: ServerKind::Deferrable,
        budget: 100,
        period: 1000,
    });
    let mut policy = AnyPolicy::fixed_priority(&vcpus, FixedPriorityParameters { quantum: 10 }).unwrap();
    let mut in_force = InForce::NONE;
    policy.ready(Slot(0), 0);
    policy.ready(Slot(2), 0);
    policy.decide(0, &mut in_force);
    assert_eq!((in_force.slot, in_force.until), (Slot(0), 100));
    assert!(policy.hand_over((Slot(0), Slot(1)), 30, 30, &mut in_force));
    assert_eq!((in_force.slot, in_force.until), (Slot(1), 100));
    // The budget ends in the middle of the work of slot 1, which is not important itself.
    policy.stopped(Slot(1), StopReason::Preempted, 70, 100);
    policy.decide(100, &mut in_force);
    assert_eq!(in_force.slot, Slot(2));
}
