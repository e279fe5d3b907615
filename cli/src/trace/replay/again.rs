// SPDX-License-Identifier: Apache-2.0
//! Decisions that the hypervisor asked for without a reason that the trace shows.
//!
//! A hypervisor asks for a decision whenever something could have changed: at a message of another pCPU, when
//! a partition is loaded, when the log has its turn. The policies of ours decide the same then. A policy of a
//! user's own may move on at each question, and only a decision for another vCPU is in the trace.

use super::{Replay, target};
use crate::build::policies::SystemPolicy;
use bulkhead_sched::{Policy, Slot, StopReason};

/// Questions in a row that are tried.
const QUESTIONS: usize = 2;

impl Replay<'_> {
    /// Asks a policy of the user's own at `now`, and once more. Accepts the decision if it is for `to`, and
    /// goes back otherwise. Returns whether it is.
    pub(super) fn asked_again(&mut self, to: Option<Slot>, now: u64) -> bool {
        if !matches!(self.policy, SystemPolicy::Own(_)) {
            return false;
        }
        let before = self.point();
        for _ in 0..QUESTIONS {
            let decision = self.foresee(now);
            if target(decision) == to {
                self.accept(decision, now);
                self.agreement.again += 1;
                return true;
            }
            if let Some(slot) = target(decision) {
                self.policy.stopped(slot, StopReason::Preempted, 0, now);
            }
        }
        self.go_back(before);
        false
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::{Trace, tests::sample};
    use super::super::{Agreement, Tolerance, compare};
    use bulkhead_abi::PartitionState;
    use bulkhead_abi::trace::{Event, Record, SwitchReason};
    use bulkhead_remote_policy::{Remote, Server, answer};
    use bulkhead_sched::{
        AnyPolicy, Decision, FixedPriorityParameters, OwnPolicy, Policy, PolicyError, Slot, SlotSet,
        StopReason, Ticks, VcpuParameters,
    };
    use std::io::{BufReader, pipe};

    /// A policy that moves on at each question.
    #[derive(Clone, Debug)]
    struct Restless {
        ready: u32,
        turn: u32,
        quantum: Ticks,
    }

    impl OwnPolicy for Restless {
        fn new(_: &[VcpuParameters], quantum: Ticks) -> Result<Self, PolicyError> {
            let (ready, turn) = (0, 0);
            Ok(Self { ready, turn, quantum })
        }
    }

    impl Policy for Restless {
        fn ready(&mut self, slot: Slot, _: Ticks) {
            self.ready |= 1 << slot.0;
        }

        fn withdraw(&mut self, slot: Slot, _: Ticks) {
            self.ready &= !(1 << slot.0);
        }

        fn stopped(&mut self, slot: Slot, why: StopReason, _: Ticks, now: Ticks) {
            if why == StopReason::Blocked {
                self.withdraw(slot, now);
            }
        }

        fn next(&mut self, now: Ticks) -> Decision {
            if self.ready == 0 {
                return Decision::Idle(Ticks::MAX);
            }
            self.turn = (self.turn + 1 + self.ready.rotate_right(self.turn + 1).trailing_zeros()) % 32;
            Decision::Run(Slot(self.turn as u8), now + self.quantum)
        }

        fn ready_slots(&self) -> SlotSet {
            SlotSet(self.ready)
        }

        fn interested(&self) -> SlotSet {
            SlotSet(if self.ready == 0 { u32::MAX } else { 0 })
        }
    }

    /// Returns a trace in which `noise` runs, and the loading of `control` ends in its turn of 100 us. Then
    /// the vCPU with number `then` runs.
    fn loaded(then: u8) -> Trace {
        let mut trace = sample(0);
        let mut add = |time: u64, event| {
            let time = 1000 + time;
            trace.records.push(Record { time, pcpu: 0, event });
        };
        let switch = |from, to| Event::Switch {
            from: Some(from),
            to: Some(to),
            why: SwitchReason::Preempted,
        };
        add(0, Event::Wake { vcpu: 0, late: 0 });
        add(100, switch(1, 0));
        let state = PartitionState::Running;
        add(130, Event::State { partition: 0, state });
        if then == 1 {
            add(130, switch(0, 1));
            add(230, switch(1, 0));
        } else {
            add(200, switch(0, 1));
        }
        trace
    }

    fn own() -> Remote {
        let (asked, to) = pipe().unwrap();
        let (from, answers) = pipe().unwrap();
        std::thread::spawn(move || answer::<Restless>(BufReader::new(asked), answers));
        let server = Server::new(to, BufReader::new(from));
        Remote::new(server, &[VcpuParameters::default(); 2], 100_000).unwrap()
    }

    const TOLERANCE: Tolerance = Tolerance {
        overhead: 5_000,
        turns: false,
    };

    #[test]
    fn a_policy_that_moves_on_at_each_question_may_be_asked_without_a_reason_that_shows() {
        for (then, again) in [(0, 0), (1, 1)] {
            let policy = super::SystemPolicy::Own(own());
            let agreement = compare(&loaded(then), 0, policy, TOLERANCE, Vec::new()).unwrap();
            let expected = Agreement {
                switches: 3 + u64::from(then),
                again,
                ..agreement
            };
            assert_eq!(agreement, expected);
            assert_eq!(agreement.text().contains("asked for once more"), again != 0);
        }
    }

    #[test]
    fn a_vcpu_that_the_policy_would_not_choose_is_a_difference() {
        let mut trace = loaded(1);
        trace
            .records
            .retain(|record| !matches!(record.event, Event::Wake { vcpu: 0, .. }));
        let policy = super::SystemPolicy::Own(own());
        assert!(compare(&trace, 0, policy, TOLERANCE, Vec::new()).is_err());
    }

    #[test]
    fn a_policy_of_ours_needs_a_reason() {
        let vcpus = [VcpuParameters::default(); 2];
        let quantum = 100_000;
        let policy = AnyPolicy::fixed_priority(&vcpus, FixedPriorityParameters { quantum }).unwrap();
        compare(&loaded(0), 0, policy.clone(), TOLERANCE, Vec::new()).unwrap();
        let error = compare(&loaded(1), 0, policy, TOLERANCE, Vec::new()).unwrap_err();
        assert!(error.contains("predicted was that control goes on"), "{error}");
    }
}
