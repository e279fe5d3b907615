// SPDX-License-Identifier: Apache-2.0
//! A policy of one's own is tested like any function, and runs on the virtual clock of the simulator.
//! `kernel/tests/own_policy.rs` runs it under the kernel.

use bulkhead_sched::analysis::{Overheads, Task};
use bulkhead_sched::simulate::{Pattern, Simulator, Source, SourceState};
use bulkhead_sched::{
    Decision, Donating, OwnPolicy, Policy, Slot, SlotSet, StopReason, Ticks, VcpuParameters,
};
use weighted_turns::WeightedTurns;

fn vcpus(weights: &[u8]) -> Vec<VcpuParameters> {
    let parameters = |weight: &u8| VcpuParameters {
        priority: weight - 1,
        ..VcpuParameters::default()
    };
    weights.iter().map(parameters).collect()
}

/// Returns the slots that run and their times, for a while in which no slot blocks.
fn turns(policy: &mut impl Policy, count: usize) -> Vec<(u8, Ticks)> {
    let mut now = 0;
    let mut turns = Vec::new();
    for _ in 0..count {
        let Decision::Run(slot, until) = policy.next(now) else {
            panic!("idle at {now}")
        };
        turns.push((slot.0, until - now));
        policy.stopped(slot, StopReason::Preempted, until - now, until);
        now = until;
    }
    turns
}

// ANCHOR: tests
#[test]
fn everybody_has_turns_of_its_weight() {
    let mut policy = WeightedTurns::new(&vcpus(&[1, 3, 2]), 10).unwrap();
    (0..3).for_each(|slot| policy.ready(Slot(slot), 0));
    assert_eq!(turns(&mut policy, 4), [(1, 30), (2, 20), (0, 10), (1, 30)]);
}

#[test]
fn who_blocks_loses_the_rest_of_its_turn() {
    let mut policy = WeightedTurns::new(&vcpus(&[1, 3]), 10).unwrap();
    assert_eq!(policy.next(0), Decision::Idle(Ticks::MAX));
    assert_eq!(policy.interested(), SlotSet(u32::MAX));
    policy.ready(Slot(1), 5);
    policy.ready(Slot(0), 5);
    assert_eq!(policy.next(5), Decision::Run(Slot(1), 35));
    assert_eq!(policy.interested(), SlotSet(0));
    policy.stopped(Slot(1), StopReason::Blocked, 5, 10);
    assert_eq!(policy.next(10), Decision::Run(Slot(0), 20));
}

#[test]
fn donation_comes_with_a_layer() {
    let mut policy = Donating::new(
        WeightedTurns::new(&vcpus(&[1, 3, 1]), 10).unwrap(),
        SlotSet(0b111),
    );
    policy.ready(Slot(0), 0);
    policy.ready(Slot(1), 0);
    assert_eq!(policy.donate(Slot(1), Slot(0), 0), Ok(()));
    // Slot 0 runs in its own turn and in the turn of slot 1, which waits for it.
    assert_eq!(turns(&mut policy, 3), [(0, 30), (0, 10), (0, 30)]);
    assert_eq!(policy.return_donation(Slot(1), 70), Ok(()));
    assert_eq!(policy.next(70), Decision::Run(Slot(0), 80));
}
// ANCHOR_END: tests

/// Runs the policy on a virtual clock, with jobs and with the time that the hypervisor takes.
#[test]
fn it_runs_in_the_simulator() {
    let source = |slot, pattern, period, wcet| Source::new(Slot(slot), Task::new(period, wcet), pattern);
    let sources = [
        // The turn of 10 pays for the switch to the slot, too.
        source(0, Pattern::Periodic, 200, 9),
        source(1, Pattern::AlwaysReady, 1, 1),
        source(2, Pattern::AlwaysReady, 1, 1),
    ];
    let mut states = [SourceState::default(); 3];
    let policy = WeightedTurns::new(&vcpus(&[1, 3, 2]), 10).unwrap();
    let overheads = Overheads {
        switch: 1,
        ..Overheads::default()
    };
    let mut simulator = Simulator::new(policy, &sources, &mut states, overheads, 1);
    assert!(simulator.run(60_000, 100_000, &mut ()));
    // Two thirds of the rest go to the slot with the larger weight.
    let ran = [0, 1, 2].map(|slot| simulator.ran(Slot(slot)));
    assert_eq!(ran.iter().sum::<Ticks>(), 60_000);
    assert!(
        ran[1] * 2 > ran[2] * 3 - 200 && ran[1] * 2 < ran[2] * 3 + 200,
        "{ran:?}"
    );
    // A job waits for no more than the others' turns.
    let statistics = states[0].statistics;
    assert!(
        statistics.completed >= 299 && statistics.missed == 0,
        "{statistics:?}"
    );
    assert!(statistics.longest <= 30 + 20 + 10, "{statistics:?}");
}
