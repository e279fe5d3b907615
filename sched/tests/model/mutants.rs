// SPDX-License-Identifier: Apache-2.0
//! The checker against policies that are wrong. Each real policy has one fault put between it and the kernel.
//!
//! A proof is worth as much as its oracle. A fault that no oracle finds is a hole in the proof. The faults
//! are those that policies have had in the course of their life, or that are easily made.

use crate::model::{Freedom, Oracle, Pcpu, complaint};
use crate::{arinc653, domains, edf, fixed_priority};
use bulkhead_sched::{
    AnyPolicy, Decision, Policy, PolicyError, ScheduleStatus, Server, ServerKind, Signals, Slot, SlotSet,
    StopReason, Ticks, Window,
};

/// The fault of a policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Fault {
    /// There is no fault. This shows that the search finds the other faults and nothing else.
    None,
    /// A wake-up at an odd time is lost.
    LostWakeUp,
    /// No slot is interesting: a wake-up does not preempt.
    Deaf,
    /// A decision stands a tick too long.
    Late,
    /// A vCPU that blocks is taken to be preempted.
    Sleepwalker,
    /// Each stretch of running is charged a tick less.
    Generous,
    /// Each stretch of running is charged a tick more.
    Stingy,
    /// A wish for another schedule is forgotten.
    Stubborn,
    /// A critical interrupt is like any other.
    Calm,
    /// A donation that would close a cycle is accepted, without doing anything.
    Blind,
    /// A donation that comes back does not make its slot ready.
    Forgetful,
    /// A slot that is withdrawn stays ready.
    Undead,
}

/// A policy with a fault.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Mutant {
    policy: AnyPolicy,
    fault: Fault,
}

impl Policy for Mutant {
    fn ready(&mut self, slot: Slot, now: Ticks) {
        if self.fault != Fault::LostWakeUp || now.is_multiple_of(2) {
            self.policy.ready(slot, now);
        }
    }

    fn stopped(&mut self, slot: Slot, why: StopReason, ran: Ticks, now: Ticks) {
        let (why, ran) = match self.fault {
            Fault::Sleepwalker => (StopReason::Preempted, ran),
            Fault::Generous => (why, ran.saturating_sub(1)),
            Fault::Stingy => (why, ran + 1),
            _ => (why, ran),
        };
        self.policy.stopped(slot, why, ran, now);
    }

    fn withdraw(&mut self, slot: Slot, now: Ticks) {
        if self.fault != Fault::Undead {
            self.policy.withdraw(slot, now);
        }
    }

    fn next(&mut self, now: Ticks) -> Decision {
        match (self.policy.next(now), self.fault) {
            (Decision::Run(slot, until), Fault::Late) => Decision::Run(slot, until.saturating_add(1)),
            (decision, _) => decision,
        }
    }

    fn ready_slots(&self) -> SlotSet {
        self.policy.ready_slots()
    }

    fn interested(&self) -> SlotSet {
        match self.fault {
            Fault::Deaf => SlotSet(0),
            _ => self.policy.interested(),
        }
    }

    fn signals(&mut self) -> Signals {
        self.policy.signals()
    }

    fn critical(&mut self, slot: Slot, now: Ticks) {
        match self.fault {
            Fault::Calm => self.policy.ready(slot, now),
            _ => self.policy.critical(slot, now),
        }
    }

    fn donate(&mut self, from: Slot, to: Slot, now: Ticks) -> Result<(), PolicyError> {
        match (self.policy.donate(from, to, now), self.fault) {
            (Err(_), Fault::Blind) => Ok(()),
            (answer, _) => answer,
        }
    }

    fn return_donation(&mut self, from: Slot, now: Ticks) -> Result<(), PolicyError> {
        self.policy.return_donation(from, now)?;
        if self.fault == Fault::Forgetful {
            self.policy.withdraw(from, now);
        }
        Ok(())
    }

    fn change_schedule(&mut self, schedule: u8, now: Ticks) -> Result<(), PolicyError> {
        match self.fault {
            Fault::Stubborn => Ok(()),
            _ => self.policy.change_schedule(schedule, now),
        }
    }

    fn schedule(&self) -> ScheduleStatus {
        self.policy.schedule()
    }
}

/// Asserts that each of `faults` is found in a policy in which no fault is found without it.
fn all_are_found<O: Oracle>(pcpu: &Pcpu<AnyPolicy, O>, faults: &[Fault]) {
    let search = |fault| complaint(pcpu.clone().with(|policy| Mutant { policy, fault }));
    assert_eq!(search(Fault::None), None);
    for fault in faults {
        let complaint = search(*fault);
        assert!(complaint.is_some(), "{fault:?} is not found");
    }
}

#[test]
fn faults_of_fixed_priority_are_found() {
    let server = |kind, budget, period| Some(Server { budget, period, kind });
    let vcpus = [
        (9, server(ServerKind::Deferrable, 2, 4)),
        (5, server(ServerKind::Sporadic, 1, 3)),
        (1, None),
    ];
    let freedom = Freedom {
        withdraws: true,
        always_ready: 0b100,
        ..Freedom::default()
    };
    let pcpu = fixed_priority::model(&vcpus, freedom, 6);
    let faults = [
        Fault::LostWakeUp,
        Fault::Deaf,
        Fault::Late,
        Fault::Sleepwalker,
        Fault::Generous,
        Fault::Stingy,
        Fault::Undead,
    ];
    all_are_found(&pcpu, &faults);
}

#[test]
fn faults_of_edf_are_found() {
    let servers = [Some((1, 2, 2)), Some((2, 4, 4)), None];
    let pcpu = edf::model(&servers, Freedom::default(), 7);
    let faults = [
        Fault::LostWakeUp,
        Fault::Late,
        Fault::Sleepwalker,
        Fault::Generous,
        Fault::Stingy,
    ];
    all_are_found(&pcpu, &faults);
}

#[test]
fn faults_of_arinc653_are_found() {
    let window = |slots, offset| Window {
        slots: SlotSet(slots),
        offset,
        duration: 2,
        period_start: true,
    };
    let tables = [
        (4, vec![window(0b01, 0), window(0b10, 2)]),
        (5, vec![window(0b10, 0), window(0b01, 3)]),
    ];
    let freedom = Freedom {
        schedules: 2,
        ..Freedom::default()
    };
    let pcpu = arinc653::model(&[3, 3], &tables, freedom, 7);
    let faults = [
        Fault::LostWakeUp,
        Fault::Deaf,
        Fault::Late,
        Fault::Sleepwalker,
        Fault::Stubborn,
    ];
    all_are_found(&pcpu, &faults);
}

#[test]
fn faults_of_domains_are_found() {
    let freedom = Freedom {
        critical: 0b100,
        withdraws: true,
        ..Freedom::default()
    };
    let pcpu = domains::model(&[(0, 5), (1, 3), (2, 7)], &[1, 2, 2], freedom, 6);
    let faults = [
        Fault::LostWakeUp,
        Fault::Deaf,
        Fault::Late,
        Fault::Sleepwalker,
        Fault::Generous,
        Fault::Stingy,
        Fault::Calm,
        Fault::Undead,
    ];
    all_are_found(&pcpu, &faults);
}

#[test]
fn faults_of_donation_are_found() {
    let vcpus = [(3, None), (2, None), (1, None)];
    let freedom = Freedom {
        donates: true,
        ..Freedom::default()
    };
    let pcpu = fixed_priority::model(&vcpus, freedom, 3);
    all_are_found(&pcpu, &[Fault::Blind, Fault::Forgetful, Fault::LostWakeUp]);
}
