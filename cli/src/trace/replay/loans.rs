// SPDX-License-Identifier: Apache-2.0
//! The loans of places that a trace does not show.

use super::{Replay, target};
use bulkhead_abi::trace::{Event, Record};
use bulkhead_sched::{Policy, Slot};

impl Replay<'_> {
    /// Tells whether a difference at this record may be the loan of a place.
    pub(super) fn may_be_a_loan(&self, record: &Record) -> bool {
        let is_lost = matches!(record.event, Event::Lost { .. });
        !is_lost && (self.agreement.loans != 0 || !self.waiting.is_empty())
    }

    /// Looks for a vCPU that waits, and for a loan of its place to `to`, or for an end of its loan, with
    /// which the policy chooses `to` at `now`. The decision is accepted then. Returns whether there is one.
    pub(super) fn with_loan(&mut self, to: Option<Slot>, now: u64) -> bool {
        let ways = (0..self.waiting.len()).flat_map(|number| [(number, to), (number, None)]);
        for (number, borrower) in ways {
            let (lender, lends) = self.waiting[number];
            if borrower == Some(lender) || (borrower.is_none() && !lends) {
                continue;
            }
            let before = self.point();
            self.change_schedule(now);
            self.settle(now);
            let is_free = !lends || self.policy.retract_donation(lender, now).is_ok();
            let is_lent = borrower.is_none_or(|borrower| self.policy.donate(lender, borrower, now).is_ok());
            let decision = self.policy.next(now);
            if is_free && is_lent && target(decision) == to {
                self.waiting[number].1 = borrower.is_some();
                self.accept(decision, now);
                self.agreement.loans += 1;
                return true;
            }
            self.go_back(before);
        }
        false
    }

    /// Makes a slot ready. If it lent its place, it has the place back.
    pub(super) fn make_ready(&mut self, slot: Slot, now: u64) {
        let waited = self.waiting.iter().position(|(waiting, _)| *waiting == slot);
        let lent = waited.is_some_and(|number| self.waiting.remove(number).1);
        if !lent || self.policy.return_donation(slot, now).is_err() {
            self.policy.ready(slot, now);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::{Trace, TraceVcpu, tests::sample};
    use super::super::{Agreement, Tolerance, compare};
    use bulkhead_abi::trace::{BlockReason, Event, Record, SwitchReason};
    use bulkhead_sched::{AnyPolicy, FixedPriorityParameters, VcpuParameters};

    const USER: Option<u8> = Some(0);
    const OWNER: Option<u8> = Some(1);
    const LOOP: Option<u8> = Some(2);

    /// Returns a trace in which `user` waits for `why`, and `next` runs then. It is the owner of a lock if it
    /// runs in the place of `user`, although `loop` is ready and more important.
    fn waits(why: BlockReason, next: Option<u8>) -> Trace {
        let mut trace = sample(0);
        trace.partitions.push("loop".to_owned());
        trace.vcpus.push(TraceVcpu {
            partition: 2,
            index: 0,
            pcpu: 0,
        });
        let mut add = |time: u64, event| {
            let time = 1000 + time;
            trace.records.push(Record { time, pcpu: 0, event });
        };
        let switch = |from, to| Event::Switch {
            from,
            to,
            why: SwitchReason::Preempted,
        };
        let block = |vcpu, why| Event::Block { vcpu, why };
        add(100, Event::Wake { vcpu: 2, late: 0 });
        add(102, switch(OWNER, LOOP));
        add(200, Event::Wake { vcpu: 0, late: 0 });
        add(202, switch(LOOP, USER));
        add(210, block(0, why));
        add(212, switch(USER, next));
        add(300, Event::Wake { vcpu: 0, late: 0 });
        add(302, switch(next, USER));
        add(320, block(0, BlockReason::Idle));
        add(322, switch(USER, LOOP));
        add(400, block(2, BlockReason::Idle));
        add(402, switch(LOOP, OWNER));
        trace
    }

    fn replay(trace: &Trace) -> Result<Agreement, String> {
        let vcpus = [20, 5, 10].map(|priority| VcpuParameters {
            priority,
            ..VcpuParameters::default()
        });
        let policy = AnyPolicy::fixed_priority(&vcpus, FixedPriorityParameters { quantum: 1_000_000 });
        let tolerance = Tolerance {
            overhead: 5_000,
            turns: false,
        };
        compare(trace, 0, policy.unwrap(), tolerance, Vec::new())
    }

    #[test]
    fn the_owner_of_a_lock_runs_in_the_place_of_the_one_who_waits() {
        for why in [BlockReason::Lock, BlockReason::Reply] {
            let agreement = replay(&waits(why, OWNER)).unwrap();
            let Agreement {
                switches,
                loans,
                compared_until,
                ..
            } = agreement;
            assert_eq!((switches, loans, compared_until), (7, 1, None));
        }
        // Nobody lends here.
        let agreement = replay(&waits(BlockReason::Lock, LOOP)).unwrap();
        assert_eq!((agreement.loans, agreement.compared_until), (0, None));
    }

    #[test]
    fn who_only_sleeps_lends_nothing() {
        let error = replay(&waits(BlockReason::Sleeping, OWNER)).unwrap_err();
        assert!(error.ends_with("switch to noise, predicted was loop"), "{error}");
    }

    #[test]
    fn a_difference_that_no_loan_explains_ends_the_comparison_and_says_so() {
        let agreement = replay(&waits(BlockReason::Lock, None)).unwrap();
        assert_eq!(agreement.compared_until, Some(212_000));
        assert!(agreement.text().contains("NOT COMPARED from 212.000 us on"));
    }
}
