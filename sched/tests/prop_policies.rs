// SPDX-License-Identifier: Apache-2.0
//! What every policy keeps on random lives of a pCPU, with decisions that are carried out late.
//!
//! Who runs is ready. A decision asked for twice is the same. A vCPU whose readiness would change the decision is one
//! that the policy is interested in. However late the hypervisor is, no vCPU gets more than its budget and what it
//! was late by once, and none loses a budget to it. No input, however absurd, makes a policy panic or hang.

use bulkhead_sched::{
    AnyPolicy, Arinc653Parameters, Decision, Domain, DomainsParameters, EdfParameters,
    FixedPriorityParameters, PcpuPolicy, Policy, Schedule, Server, ServerKind, Signals, Slot, SlotSet,
    StopReason, Successor, Ticks, VcpuParameters, Window,
};
use proptest::prelude::*;

const SLOTS: u8 = 6;
const LATEST: Ticks = 3;

#[derive(Clone, Copy, Debug)]
struct Step {
    kind: u8,
    slot: u8,
    /// How long the decision in force goes on, at most to its end.
    ran: Ticks,
    /// How much later its end is carried out.
    late: Ticks,
}

fn steps(count: usize) -> impl Strategy<Value = Vec<Step>> {
    let step = (0..8_u8, 0..SLOTS, 0..12_u64, 0..=LATEST).prop_map(|(kind, slot, ran, late)| Step {
        kind,
        slot,
        ran,
        late,
    });
    prop::collection::vec(step, 0..count)
}

fn vcpus() -> impl Strategy<Value = Vec<VcpuParameters>> {
    let vcpu = (0..4_u8, 0..3_u8, 4..30_u64, any::<bool>(), any::<bool>());
    let vcpu = vcpu.prop_map(
        |(priority, domain, period, has_server, is_sporadic)| VcpuParameters {
            priority,
            domain,
            server: has_server.then_some(Server {
                budget: 1 + period / 7,
                period,
                kind: if is_sporadic {
                    ServerKind::Sporadic
                } else {
                    ServerKind::Deferrable
                },
            }),
            deadline: 0,
        },
    );
    prop::collection::vec(vcpu, usize::from(SLOTS))
}

fn fixed_priority(vcpus: &[VcpuParameters]) -> AnyPolicy {
    AnyPolicy::fixed_priority(vcpus, FixedPriorityParameters { quantum: 5 }).unwrap()
}

fn edf(vcpus: &[VcpuParameters]) -> AnyPolicy {
    let mut vcpus = vcpus.to_vec();
    for server in vcpus.iter_mut().filter_map(|vcpu| vcpu.server.as_mut()) {
        server.kind = ServerKind::ConstantBandwidth;
    }
    AnyPolicy::edf(&vcpus, EdfParameters { quantum: 5 }).unwrap()
}

const WINDOWS: [(u32, Ticks, Ticks); 4] = [
    (0b000_011, 0, 5),
    (0b001_100, 5, 4),
    (0b000_011, 12, 3),
    (0b110_000, 15, 5),
];
const FRAME: Ticks = 21;

fn arinc653(vcpus: &[VcpuParameters]) -> AnyPolicy {
    let windows = WINDOWS.map(|(slots, offset, duration)| Window {
        slots: SlotSet(slots),
        offset,
        duration,
        period_start: offset == 0,
    });
    let parameters = Arinc653Parameters {
        windows: &windows,
        schedules: &[Schedule {
            frame: FRAME,
            first_window: 0,
            window_count: 4,
        }],
        initial: 0,
        start: 0,
        quantum: 2,
    };
    AnyPolicy::arinc653(vcpus, parameters).unwrap()
}

fn domains(vcpus: &[VcpuParameters]) -> AnyPolicy {
    let domains = [3, 7, 4].map(|budget| Domain { budget });
    AnyPolicy::domains(
        vcpus,
        DomainsParameters {
            domains: &domains,
            quantum: 2,
        },
    )
    .unwrap()
}

fn decision_of(next: Successor) -> Decision {
    match next.slot() {
        Successor::NOBODY => Decision::Idle(next.until()),
        slot => Decision::Run(slot, next.until()),
    }
}

/// The life of a pCPU.
struct Life {
    policy: AnyPolicy,
    now: Ticks,
    ready: u32,
    decision: Decision,
    /// The policy is `fixed-priority` without budgets.
    is_usual: bool,
    /// By slot: since when it has been on the pCPU, and how long it ran.
    first: [Option<Ticks>; SLOTS as usize],
    ran: [Ticks; SLOTS as usize],
}

impl Life {
    fn new(mut policy: AnyPolicy) -> Self {
        let decision = policy.next(0);
        let nothing = [0; SLOTS as usize];
        Self {
            policy,
            now: 0,
            ready: 0,
            decision,
            is_usual: false,
            first: [None; SLOTS as usize],
            ran: nothing,
        }
    }

    /// The decision goes on for a while, or ends and is carried out late.
    fn pass(&mut self, step: Step, why: StopReason) -> Option<(Slot, Ticks)> {
        let (until, slot) = match self.decision {
            Decision::Run(slot, until) => (until, Some(slot)),
            Decision::Idle(until) => (until, None),
        };
        let ran = if self.now + step.ran < until {
            step.ran
        } else {
            until - self.now + step.late
        };
        self.now += ran;
        if let Some(slot) = slot {
            self.ran[usize::from(slot.0)] += ran;
            self.policy.stopped(slot, why, ran, self.now);
            if why == StopReason::Blocked {
                self.ready &= !(1 << slot.0);
            }
        }
        slot.map(|slot| (slot, ran))
    }

    fn decide(&mut self) {
        let mut other = self.policy.clone();
        self.decision = self.policy.next(self.now);
        let next = other.resumed(self.now);
        if next.is_valid() {
            assert_eq!(decision_of(next), self.decision);
            assert_eq!(next.interested(), self.policy.interested());
            assert_eq!(other, self.policy);
        }
        if let Decision::Run(slot, until) = self.decision {
            assert_eq!(self.ready >> slot.0 & 1, 1, "{slot:?} is not ready");
            assert!(until > self.now, "a decision that is over");
        }
    }

    /// What comes of it if `slot` becomes ready now, or nothing happens.
    fn what_if(&self, slot: Option<u8>) -> Decision {
        let mut other = self.policy.clone();
        if let Some(slot) = slot {
            other.ready(Slot(slot), self.now);
        }
        if let Decision::Run(running, _) = self.decision {
            other.stopped(running, StopReason::Preempted, 0, self.now);
        }
        other.next(self.now)
    }

    fn check_interest(&self) {
        assert_eq!(self.what_if(None), self.decision, "the second answer differs");
        for slot in (0..SLOTS).filter(|slot| self.ready >> slot & 1 == 0) {
            let is_of_interest = self.policy.interested().0 >> slot & 1 == 1;
            let after = self.what_if(Some(slot));
            assert!(
                is_of_interest || after == self.decision,
                "{slot} makes it {after:?}"
            );
        }
    }

    fn live(&mut self, steps: &[Step], always: u32) {
        for slot in (0..SLOTS).filter(|slot| always >> slot & 1 == 1) {
            self.wake(slot);
        }
        for step in steps {
            let may_block = !matches!(self.decision, Decision::Run(slot, _) if always >> slot.0 & 1 == 1);
            let why = match step.kind {
                0 | 1 if may_block => StopReason::Blocked,
                2 => StopReason::Yielded,
                _ => StopReason::Preempted,
            };
            let (before, before_ready) = (self.policy.clone(), self.ready);
            let ended = self.pass(*step, why);
            match step.kind {
                3 if always >> step.slot & 1 == 0 => {
                    self.policy.withdraw(Slot(step.slot), self.now);
                    self.ready &= !(1 << step.slot);
                }
                3..=6 => self.wake(step.slot),
                _ => {}
            }
            self.decide();
            self.check_interest();
            if !(3..=6).contains(&step.kind) {
                let woken = step.slot;
                if before_ready >> woken & 1 == 0 {
                    self.check_rise(before.clone(), Slot(woken), ended);
                }
                if let Some((slot, ran)) = ended {
                    self.check_short_ways(before, slot, why, ran);
                }
            }
        }
    }

    /// What the policy was before the decision that just ended comes to the same state and answer by each shorter way.
    fn check_short_ways(&self, before: AnyPolicy, slot: Slot, why: StopReason, ran: Ticks) {
        let mut expected = self.policy.clone();
        let signals = expected.signals();
        let mut other = before.clone();
        let outcome = other.follow(slot, why, ran, self.now);
        assert_eq!(outcome.decision, self.decision);
        assert_eq!(outcome.interested, self.policy.interested());
        assert_eq!(outcome.signals.unwrap_or_default(), signals);
        assert_eq!(other, expected);
        let mut shortest = before;
        let next = match why {
            StopReason::Blocked => shortest.blocked(slot, ran, self.now),
            StopReason::Preempted => shortest.preempted(slot, ran, self.now),
            StopReason::Yielded => return,
        };
        if next.is_valid() {
            assert_eq!(decision_of(next), self.decision);
            assert_eq!(next.interested(), self.policy.interested());
            assert_eq!(signals, Signals::default());
            assert_eq!(shortest, expected);
        } else {
            assert!(!self.is_usual, "the usual policy has a short way");
            assert_eq!(shortest.follow(slot, why, ran, self.now), outcome);
        }
    }

    /// A device asks for `slot` at the end of the decision that `before` took: one call does what four would.
    fn check_rise(&self, mut before: AnyPolicy, slot: Slot, ended: Option<(Slot, Ticks)>) {
        let (running, ran) = ended.unzip();
        let mut general = before.clone();
        general.wake(slot, self.now);
        general.critical(slot, self.now);
        let outcome = match running {
            Some(running) => general.follow(running, StopReason::Preempted, ran.unwrap_or(0), self.now),
            None => general.decide(self.now),
        };
        let unchanged = before.clone();
        match before.woken_at_once(slot, running, ran.unwrap_or(0), self.now) {
            Some((decision, interested)) => {
                assert_eq!((decision, interested), (outcome.decision, outcome.interested));
                assert_eq!(outcome.signals.unwrap_or_default(), Signals::default());
                assert_eq!(before, general);
            }
            None => {
                assert!(!self.is_usual, "the usual policy has a short way");
                assert_eq!(before, unchanged);
            }
        }
    }

    fn wake(&mut self, slot: u8) {
        let mut other = self.policy.clone();
        other.wake(Slot(slot), self.now);
        self.policy.ready(Slot(slot), self.now);
        assert_eq!(other, self.policy);
        self.ready |= 1 << slot;
        self.first[usize::from(slot)].get_or_insert(self.now);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, rng_seed: proptest::test_runner::RngSeed::Fixed(1), ..ProptestConfig::default() })]

    #[test]
    fn budgets_are_not_exceeded_by_more_than_lateness(vcpus in vcpus(), steps in steps(150)) {
        for policy in [fixed_priority(&vcpus), edf(&vcpus)] {
            let mut life = Life::new(policy);
            life.live(&steps, 0);
            for (slot, vcpu) in vcpus.iter().enumerate() {
                let (Some(server), Some(first)) = (vcpu.server, life.first[slot]) else { continue };
                // At most a budget per period, one at once, and what the last decision was late by.
                let most = server.budget * (life.now - first + server.period) + LATEST * server.period;
                prop_assert!(life.ran[slot] * server.period <= most, "slot {} ran {} of {:?}", slot, life.ran[slot], server);
            }
        }
    }

    /// Each decision is also taken by the shorter ways, whose answers and states are compared.
    #[test]
    fn the_usual_policy_has_a_short_way_and_all_ways_agree(vcpus in vcpus(), steps in steps(200)) {
        let mut usual = vcpus.clone();
        usual.iter_mut().for_each(|vcpu| vcpu.server = None);
        let mut life = Life::new(fixed_priority(&usual));
        life.is_usual = true;
        life.live(&steps, 0);
        for policy in [fixed_priority(&vcpus), edf(&vcpus), arinc653(&vcpus), domains(&vcpus)] {
            Life::new(policy).live(&steps, 0);
        }
    }

    /// The most important one is always ready: lateness may move its budget, never take it away.
    #[test]
    fn no_budget_is_lost_to_lateness(
        period in 10..30_u64,
        is_sporadic in any::<bool>(),
        steps in steps(300),
    ) {
        let kind = if is_sporadic { ServerKind::Sporadic } else { ServerKind::Deferrable };
        let server = Server { budget: 1 + period / 7, period, kind };
        let mut vcpus = vec![VcpuParameters::default(); usize::from(SLOTS)];
        vcpus[0] = VcpuParameters { priority: 9, server: Some(server), ..VcpuParameters::default() };
        for policy in [fixed_priority(&vcpus), edf(&vcpus)] {
            let mut life = Life::new(policy);
            life.live(&steps, 1);
            let periods = life.now / period;
            prop_assert!(life.ran[0] >= server.budget * periods.saturating_sub(1), "{} of {periods} periods", life.ran[0]);
        }
    }

    #[test]
    fn windows_do_not_drift(vcpus in vcpus(), steps in steps(150)) {
        let mut life = Life::new(arinc653(&vcpus));
        for step in &steps {
            life.live(std::slice::from_ref(step), 0);
            let at = life.now % FRAME;
            let open = WINDOWS.iter().find(|(_, offset, duration)| (*offset..offset + duration).contains(&at));
            match (life.decision, open) {
                (Decision::Run(slot, until), Some((slots, offset, duration))) => {
                    prop_assert_eq!(slots >> slot.0 & 1, 1);
                    prop_assert!(until <= life.now - at + offset + duration);
                }
                (Decision::Run(..), None) => prop_assert!(false, "one runs outside all windows"),
                (Decision::Idle(until), Some((slots, ..))) => {
                    prop_assert_eq!(slots & life.ready, 0);
                    prop_assert!(until > life.now);
                }
                (Decision::Idle(until), None) => prop_assert!(until - life.now <= FRAME - at),
            }
        }
    }

    /// A domain whose vCPU always wants to run has its share, whatever the others do and however late decisions are.
    #[test]
    fn domains_keep_their_shares(vcpus in vcpus(), steps in steps(300)) {
        let mut vcpus = vcpus;
        vcpus.iter_mut().for_each(|vcpu| vcpu.domain %= 2);
        vcpus[0] = VcpuParameters { domain: 2, ..VcpuParameters::default() };
        let mut life = Life::new(domains(&vcpus));
        life.live(&steps, 1);
        // A cycle is at most the sum of the budgets, and as much later as each of them was overrun before it was paid back.
        let cycles = life.now / (3 + 7 + 4 + 3 * LATEST);
        prop_assert!(life.ran[0] >= 4 * cycles.saturating_sub(2), "{} in {cycles} cycles", life.ran[0]);
    }

    #[test]
    fn nothing_makes_a_policy_panic_or_hang(
        vcpus in vcpus(),
        calls in prop::collection::vec((0..10_u8, any::<u8>(), any::<u8>(), prop_oneof![0..50_u64, any::<u64>(), Just(u64::MAX)]), 0..80),
    ) {
        for mut policy in [fixed_priority(&vcpus), edf(&vcpus), arinc653(&vcpus), domains(&vcpus)] {
            let mut now: Ticks = 0;
            for (kind, slot, other, time) in &calls {
                let slot = if other & 1 == 0 { Slot(slot % SLOTS) } else { Slot(*slot) };
                match kind {
                    0 | 1 => policy.ready(slot, now),
                    2 => policy.withdraw(slot, now),
                    3 => policy.stopped(slot, StopReason::Blocked, *time, now),
                    4 => policy.stopped(slot, StopReason::Yielded, *time, now),
                    5 => policy.critical(slot, now),
                    6 => drop(policy.donate(slot, Slot(other % SLOTS), now)),
                    7 => drop(policy.return_donation(slot, now)),
                    8 => drop(policy.change_schedule(*other, now)),
                    _ => {
                        now = now.saturating_add(*time);
                        if let Decision::Run(slot, _) = policy.next(now) {
                            policy.stopped(slot, StopReason::Preempted, *time, now);
                        }
                        policy.signals();
                    }
                }
            }
        }
    }
}
