// SPDX-License-Identifier: Apache-2.0
//! Mail that arrives while a decision is made. Only a policy can post at that moment here: the mock board
//! does one thing at a time.

use crate::mailbox::Mailbox;
use crate::support::{Bench, call, caller, periodic, tables, task, vm};
use bulkhead_abi::hypercall::ORDER_SPACE_NS;
use bulkhead_abi::{ObjectKind, Operation, Rights};
use bulkhead_arch_api::{PcpuId, Reply, VcpuId};
use bulkhead_arch_sim::{Action, Outcome, What};
use bulkhead_sched::{
    AnyPolicy, Decision, PcpuPolicy, Policy, PolicyError, PolicyParameters, Signals, Slot, SlotSet,
    StopReason, Ticks, VcpuParameters,
};
use std::cell::Cell;

/// The slot of the critical vCPU. The next constant is the slot of the vCPU that others wake without end.
const CRITICAL: Slot = Slot(0);
const FLOODED: Slot = Slot(1);
const PERIOD: u64 = 5_000;
const END: u64 = 300_000;
/// The number of posts after which the flood ends. So a kernel that gives in to the flood fails the test,
/// instead of never ending it.
const FLOOD: u32 = 10_000;

std::thread_local! {
    static MAILBOX: Cell<Option<&'static Mailbox>> = const { Cell::new(None) };
    static DECISIONS: Cell<u32> = const { Cell::new(0) };
    static READIED: Cell<u32> = const { Cell::new(0) };
}

/// The policy of the manifest. Another pCPU posts mail during its decisions.
#[derive(Debug)]
struct Flooded(AnyPolicy);

impl Policy for Flooded {
    fn ready(&mut self, slot: Slot, now: Ticks) {
        READIED.set(READIED.get() + 1);
        self.0.ready(slot, now);
    }

    fn stopped(&mut self, slot: Slot, why: StopReason, ran: Ticks, now: Ticks) {
        self.0.stopped(slot, why, ran, now);
    }

    fn withdraw(&mut self, slot: Slot, now: Ticks) {
        self.0.withdraw(slot, now);
    }

    fn next(&mut self, now: Ticks) -> Decision {
        let decision = self.0.next(now);
        if let (Decision::Run(CRITICAL, _), Some(mailbox)) = (decision, MAILBOX.get()) {
            let number = DECISIONS.get() + 1;
            DECISIONS.set(number);
            if number < FLOOD {
                // This decision is not published yet. The answer tells of the wishes of the decision before.
                let _wanted = mailbox.post_wake(FLOODED);
            }
        }
        decision
    }

    fn ready_slots(&self) -> SlotSet {
        self.0.ready_slots()
    }

    fn interested(&self) -> SlotSet {
        self.0.interested()
    }

    fn signals(&mut self) -> Signals {
        self.0.signals()
    }
}

impl PcpuPolicy for Flooded {
    fn nobody() -> Self {
        Self(AnyPolicy::nobody())
    }

    fn install(
        &mut self,
        vcpus: &[VcpuParameters],
        parameters: &PolicyParameters<'_>,
    ) -> Result<(), PolicyError> {
        self.0 = AnyPolicy::blank(parameters);
        self.0.install(vcpus, parameters)
    }
}

#[test]
fn mail_for_less_important_vcpus_does_not_delay_a_decision_and_is_not_lost() {
    let parts = [vm("critical", &[(0, 10)]), vm("flooded", &[(0, 0)])];
    let mut bench = Bench::<Flooded>::with_policies(1, tables(1, &parts).build().unwrap());
    bench.program(0, |_| periodic(PERIOD, Action::Mark));
    // The vCPU leaves a mark each time that it is woken.
    bench.program(1, |_| {
        let mut is_woken = false;
        move |_: Outcome, now| {
            is_woken = !is_woken;
            if is_woken { Action::Idle } else { Action::Mark(now) }
        }
    });
    bench.run(PERIOD);
    MAILBOX.set(Some(bench.shared().mailboxes.of(PcpuId(0))));
    bench.run(END);
    let (late, woken) = (bench.marks(0), bench.marks(1));
    let releases = (END / PERIOD) as u32;
    assert!(late.len() as u32 >= releases - 2, "{late:?}");
    assert!(late.iter().all(|late| *late < 500), "{late:?}");
    assert!(DECISIONS.get() <= 4 * releases, "{} decisions", DECISIONS.get());
    assert!(woken.len() as u32 >= releases - 2, "woken {} times", woken.len());
}

#[test]
fn a_blocked_vcpu_that_is_woken_for_nothing_looks_in_its_own_time() {
    const GATE: u64 = 1;
    const RAISES: u32 = 20;
    let waiter = vm("waiter", &[(0, 10), (0, 9)]).cap(GATE as u32, ObjectKind::EventGate, 0, Rights::READ);
    let raiser = task("raiser", 1, 5).cap(GATE as u32, ObjectKind::EventGate, 0, Rights::WRITE);
    let parts = [waiter, vm("computes", &[(0, 0)]), raiser];
    let mut bench = Bench::<Flooded>::with_policies(2, tables(2, &parts).build().unwrap());
    // Both wait for the same events: one of them finds some, and the other one finds nothing.
    bench.program(0, |_| {
        let mut step = 0;
        move |_: Outcome, _| {
            step += 1;
            match step {
                1 => Action::CpuOn(1, 0, 0),
                _ => call(Operation::EventWait, &[GATE, 0]),
            }
        }
    });
    bench.program(1, |_| {
        move |outcome: Outcome, _| match outcome {
            Outcome::Replied(Reply::Hypercall(result)) => {
                Action::Mark(result.map_or(u64::MAX, |events| events[0]))
            }
            _ => call(Operation::EventWait, &[GATE, 0]),
        }
    });
    bench.program(2, |_| |_: Outcome, _| Action::Compute(100));
    bench.program(3, |_| {
        let rounds =
            (0..RAISES).flat_map(|_| [Action::Compute(1_000), call(Operation::EventSignal, &[GATE, 1])]);
        caller(rounds.collect())
    });
    bench.run(END);
    // Each time both are made ready: also the vCPU that finds nothing, and its budget pays.
    assert!(READIED.get() >= 2 * RAISES, "made ready {} times", READIED.get());
    assert!(
        bench.marks(1).iter().all(|events| *events == 1),
        "{:?}",
        bench.marks(1)
    );
}

#[test]
fn restarts_that_another_pcpu_orders_without_end_take_a_bounded_share() {
    const VICTIM: u64 = 1;
    const LONG: u64 = 20 * ORDER_SPACE_NS;
    let attacker = task("attacker", 1, 5).cap(VICTIM as u32, ObjectKind::Partition, 1, Rights::CONTROL);
    let parts = [vm("critical", &[(0, 10)]), vm("victim", &[(0, 5)]), attacker];
    let mut bench = Bench::<AnyPolicy>::with_policies(2, tables(2, &parts).build().unwrap());
    bench.program(0, |_| |_: Outcome, _| Action::Compute(1_000));
    bench.program(1, |_| |_: Outcome, _| Action::Compute(1_000));
    bench.program(2, |_| {
        let mut turn = 0_u32;
        move |_: Outcome, _| {
            turn += 1;
            match turn % 3 {
                0 => Action::Compute(100),
                1 => call(Operation::PartitionStop, &[VICTIM]),
                _ => call(Operation::PartitionStart, &[VICTIM, 0]),
            }
        }
    });
    bench.run(LONG);
    let stopped = bench
        .records(|what| matches!(what, What::Detach(VcpuId(1))))
        .len() as u64;
    assert!(stopped > 1, "stopped {stopped} times");
    assert!(stopped <= LONG / ORDER_SPACE_NS + 2, "stopped {stopped} times");
}
