// SPDX-License-Identifier: Apache-2.0
//! A policy in another program gives the answers of the policy here.

use bulkhead_remote_policy::{Remote, Server, answer};
use bulkhead_sched::{
    Decision, Donating, OwnPolicy, Policy, PolicyError, Slot, SlotSet, StopReason, Ticks, VcpuParameters,
};
use std::io::{BufReader, pipe};
use std::rc::Rc;
use weighted_turns::WeightedTurns;

/// Returns the server of a policy, in a thread of this program.
fn server<P: OwnPolicy>() -> Rc<Server> {
    let (asked, to) = pipe().unwrap();
    let (from, answers) = pipe().unwrap();
    std::thread::spawn(move || answer::<P>(BufReader::new(asked), answers));
    Server::new(to, BufReader::new(from))
}

fn vcpus(priorities: &[u8]) -> Vec<VcpuParameters> {
    let parameters = |priority: &u8| VcpuParameters {
        priority: *priority,
        ..VcpuParameters::default()
    };
    priorities.iter().map(parameters).collect()
}

/// Lets both policies live the same random life, with donations and copies.
#[test]
fn a_remote_policy_is_the_policy() {
    let vcpus = vcpus(&[0, 2, 1]);
    let all = SlotSet(0b111);
    let mut here = Donating::new(WeightedTurns::new(&vcpus, 10).unwrap(), all);
    let mut there = Remote::new(server::<WeightedTurns>(), &vcpus, 10).unwrap();
    let mut state = 7_u64;
    let mut random = move |most: u64| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % most
    };
    let (mut now, mut waiting) = (0, None);
    for _ in 0..2_000 {
        let slot = Slot(random(3) as u8);
        if waiting != Some(slot) {
            here.ready(slot, now);
            there.ready(slot, now);
        }
        let decision = here.next(now);
        assert_eq!(there.next(now), decision);
        assert_eq!(there.interested(), SlotSet(here.interested().0 & all.0));
        let Decision::Run(running, until) = decision else {
            continue;
        };
        let ran = random(until - now + 3);
        let why = [StopReason::Preempted, StopReason::Blocked][random(2) as usize];
        now += ran;
        here.stopped(running, why, ran, now);
        there.stopped(running, why, ran, now);
        if let Some(from) = waiting.filter(|_| random(3) == 0) {
            assert_eq!(here.return_donation(from, now), there.return_donation(from, now));
            waiting = None;
        } else if waiting.is_none() && why == StopReason::Blocked {
            let to = Slot(random(3) as u8);
            let lent = here.donate(running, to, now);
            assert_eq!(there.donate(running, to, now), lent);
            waiting = lent.is_ok().then_some(running);
        }
        assert_eq!(there.ready_slots(), here.ready_slots());
        if random(20) == 0 {
            there = there.clone();
        }
    }
}

/// A policy that chooses a slot that does not exist, and never lets time pass.
#[derive(Clone)]
struct Mad;

impl OwnPolicy for Mad {
    fn new(vcpus: &[VcpuParameters], _quantum: Ticks) -> Result<Self, PolicyError> {
        match vcpus {
            [] => Err(PolicyError::BadParameter),
            _ => Ok(Self),
        }
    }
}

impl Policy for Mad {
    fn ready(&mut self, _slot: Slot, _now: Ticks) {}
    fn stopped(&mut self, _slot: Slot, _why: StopReason, _ran: Ticks, _now: Ticks) {}
    fn withdraw(&mut self, _slot: Slot, _now: Ticks) {}
    fn next(&mut self, now: Ticks) -> Decision {
        assert!(now < 9, "it panics at 9");
        Decision::Run(Slot(200), now)
    }
    fn ready_slots(&self) -> SlotSet {
        SlotSet(u32::MAX)
    }
    fn interested(&self) -> SlotSet {
        SlotSet(u32::MAX)
    }
}

#[test]
fn what_the_kernel_would_not_do_is_not_done() {
    let server = server::<Mad>();
    let refused = Remote::new(Rc::clone(&server), &[], 1);
    assert_eq!(refused.err(), Some(PolicyError::BadParameter));
    let mut policy = Remote::new(Rc::clone(&server), &vcpus(&[1]), 1).unwrap();
    policy.ready(Slot(0), 3);
    assert_eq!(policy.next(3), Decision::Idle(3));
    assert_eq!(policy.interested(), SlotSet(1));
    assert_eq!(server.failure(), None);
    while server.failure().is_none() {
        policy.next(3);
    }
    let failure = server.failure().unwrap();
    assert!(failure.contains("never lets time pass"), "{failure}");
}

#[test]
fn a_program_that_ends_is_noticed() {
    let server = server::<Mad>();
    let mut policy = Remote::new(Rc::clone(&server), &vcpus(&[1]), 1).unwrap();
    assert_eq!(policy.next(9), Decision::Idle(Ticks::MAX));
    assert_eq!(server.failure().as_deref(), Some("it ended"));
}
