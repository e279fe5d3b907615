// SPDX-License-Identifier: Apache-2.0
//! Properties of every policy on random lives of a pCPU, with decisions that are carried out late.
//!
//! A vCPU that runs is ready. A decision asked for twice is the same. A vCPU whose readiness would change the
//! decision is one that the policy is interested in. However late the hypervisor is, no vCPU gets more than
//! its budget and the lateness of one decision, and none loses a budget to lateness. No input, however
//! absurd, makes a policy panic or hang.

use bulkhead_sched::{
    AnyPolicy, Arinc653Parameters, Decision, Domain, DomainsParameters, EdfParameters,
    FixedPriorityParameters, InForce, Policy, Schedule, Server, ServerKind, Signals, Slot, SlotSet,
    StopReason, Ticks, VcpuParameters, Window,
};
use proptest::prelude::*;

const SLOTS: u8 = 6;
const LATEST: Ticks = 3;

#[derive(Clone, Copy, Debug)]
struct Step {
    kind: u8,
    slot: u8,
    /// The time for which the decision in force goes on, at most to its end.
    ran: Ticks,
    /// The lateness with which the end of the decision is carried out.
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

/// The life of a pCPU.
struct Life {
    policy: AnyPolicy,
    now: Ticks,
    ready: u32,
    decision: Decision,
    /// By slot: the time since which it has been on the pCPU, and how long it ran.
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
            first: [None; SLOTS as usize],
            ran: nothing,
        }
    }

    /// Lets the decision go on for a while, or end and be carried out late.
    fn pass(&mut self, step: Step, why: StopReason) {
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
    }

    fn decide(&mut self) {
        let mut other = self.policy.clone();
        self.decision = self.policy.next(self.now);
        let mut in_force = InForce::NONE;
        other.decide(self.now, &mut in_force);
        assert_eq!(in_force.decision(), self.decision);
        assert_eq!(in_force.interested, self.policy.interested());
        assert_eq!(other, self.policy);
        assert_eq!(in_force.has_signals, other.signals() != Signals::default());
        if let Decision::Run(slot, until) = self.decision {
            assert_eq!(self.ready >> slot.0 & 1, 1, "{slot:?} is not ready");
            assert!(until > self.now, "a decision that is over");
        }
    }

    /// Returns the decision that follows if `slot` becomes ready now, or if nothing happens.
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
            self.pass(*step, why);
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
        }
    }

    fn wake(&mut self, slot: u8) {
        self.policy.ready(Slot(slot), self.now);
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
                // The most is a budget per period, one at once, and the lateness of the last decision.
                let most = server.budget * (life.now - first + server.period) + LATEST * server.period;
                prop_assert!(life.ran[slot] * server.period <= most, "slot {} ran {} of {:?}", slot, life.ran[slot], server);
            }
        }
    }

    /// Puts each decision in force in the way of the kernel, too.
    #[test]
    fn a_decision_in_force_is_the_one_that_the_policy_takes(vcpus in vcpus(), steps in steps(200)) {
        let mut usual = vcpus.clone();
        usual.iter_mut().for_each(|vcpu| vcpu.server = None);
        let mut life = Life::new(fixed_priority(&usual));
        life.live(&steps, 0);
        for policy in [fixed_priority(&vcpus), edf(&vcpus), arinc653(&vcpus), domains(&vcpus)] {
            Life::new(policy).live(&steps, 0);
        }
    }

    /// Keeps the most important vCPU always ready. Lateness may move its budget, but never takes it away.
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

    /// Checks that a domain whose vCPU always wants to run has its share. The behaviour of the others does
    /// not matter, and neither does the lateness of decisions.
    #[test]
    fn domains_keep_their_shares(vcpus in vcpus(), steps in steps(300)) {
        let mut vcpus = vcpus;
        vcpus.iter_mut().for_each(|vcpu| vcpu.domain %= 2);
        vcpus[0] = VcpuParameters { domain: 2, ..VcpuParameters::default() };
        let mut life = Life::new(domains(&vcpus));
        life.live(&steps, 1);
        // A cycle is at most the sum of the budgets. A cycle is longer by the overrun of each budget before
        // it was paid back.
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
