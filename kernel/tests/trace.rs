// SPDX-License-Identifier: Apache-2.0
//! The records of a traced pCPU: the same records on the mock as on a board.

use crate::support::{Bench, periodic, vm};
use bulkhead_abi::PartitionState;
use bulkhead_abi::trace::{BlockReason, Entry, Event, ExitCause, Record, SwitchReason};
use bulkhead_arch_sim::{Action, What, script};
use std::collections::BTreeMap;
use std::sync::atomic::Ordering;

/// Returns rings of this many records for the pCPUs of a board.
fn rings(pcpus: usize, records: usize) -> Vec<&'static [Entry]> {
    let ring = |_| -> &'static [Entry] {
        let entries: Vec<Entry> = (0..records).map(|_| Entry::new()).collect();
        entries.leak()
    };
    (0..pcpus).map(ring).collect()
}

/// Returns the records of a pCPU, oldest first, and the number of records there ever were.
fn records(bench: &Bench, pcpu: usize) -> (Vec<Record>, u64) {
    let world = bench.look();
    let stored = world.log_area.pcpus[pcpu].traced.load(Ordering::Relaxed);
    let ring = world.trace[pcpu];
    let first = stored.saturating_sub(ring.len() as u64);
    let record = |at: u64| Record::decode(ring[at as usize % ring.len()].load()).unwrap();
    ((first..stored).map(record).collect(), stored)
}

fn two_on_one(ring: usize) -> Bench {
    let mut bench = Bench::new(1, &[vm("control", &[(0, 20)]), vm("busy", &[(0, 1)])]);
    bench.world().trace = rings(1, ring);
    bench.program(0, |_| periodic(100_000, |_| Action::Compute(500)));
    bench.program(1, |_| |_, _| Action::Compute(1_000_000));
    bench.run(2_500_000);
    bench
}

#[test]
fn each_switch_of_the_machine_is_in_the_trace_and_says_why() {
    let bench = two_on_one(1 << 12);
    let (records, stored) = records(&bench, 0);
    assert_eq!(records.len() as u64, stored);
    let mut switched = Vec::new();
    let mut running = None;
    for record in &records {
        if let Event::Switch { from, to, why } = record.event {
            assert_eq!(from, running, "a switch leaves the one that ran");
            let expected = match from {
                None => SwitchReason::Idle,
                Some(0) => SwitchReason::Blocked,
                Some(_) => SwitchReason::Preempted,
            };
            assert_eq!(why, expected, "{record:?}");
            running = to;
            switched.extend(to);
        }
    }
    let machine: Vec<u8> = bench
        .records(|what| matches!(what, What::Switch(_)))
        .iter()
        .filter_map(|record| match record.what {
            What::Switch(vcpu) => Some(vcpu.0),
            _ => None,
        })
        .collect();
    assert!(machine.len() > 40, "{}", machine.len());
    assert_eq!(switched, machine);
}

#[test]
fn getting_ready_and_blocking_take_turns_and_have_their_reasons() {
    let bench = two_on_one(1 << 12);
    let (records, _) = records(&bench, 0);
    let mut ready: BTreeMap<u8, bool> = BTreeMap::new();
    for record in &records {
        match record.event {
            Event::Wake { vcpu, .. } => {
                assert_ne!(ready.insert(vcpu, true), Some(true), "{record:?}");
            }
            Event::Block { vcpu, why } => {
                assert_eq!(ready.insert(vcpu, false), Some(true), "{record:?}");
                assert_eq!((vcpu, why), (0, BlockReason::Idle));
            }
            _ => {}
        }
    }
    let count = |cause: ExitCause| {
        let fits = |record: &&Record| matches!(record.event, Event::Exit { cause: own, .. } if own == cause);
        records.iter().filter(fits).count()
    };
    assert!(count(ExitCause::Idle) >= 20);
    assert!(count(ExitCause::Deadline) >= 20);
    let states: Vec<(u8, PartitionState)> = records
        .iter()
        .filter_map(|record| match record.event {
            Event::State { partition, state } => Some((partition, state)),
            _ => None,
        })
        .collect();
    assert_eq!(
        states,
        [(0, PartitionState::Running), (1, PartitionState::Running)]
    );
}

#[test]
fn a_small_ring_keeps_the_newest_and_counts_all() {
    let (whole, stored) = records(&two_on_one(1 << 12), 0);
    let (newest, again) = records(&two_on_one(1 << 4), 0);
    assert_eq!(again, stored);
    assert_eq!(newest, whole[whole.len() - 16..]);
}

#[test]
fn each_pcpu_has_its_own_ring() {
    let mut bench = Bench::new(2, &[vm("first", &[(0, 3)]), vm("second", &[(1, 3)])]);
    bench.world().trace = rings(2, 1 << 10);
    for vcpu in 0..2 {
        let work = 50_000 * (1 + u64::from(vcpu));
        bench.program(vcpu, move |_| script([Action::Compute(work), Action::CpuOff]));
    }
    bench.run(10_000_000);
    for pcpu in 0..2 {
        let (records, _) = records(&bench, pcpu);
        assert!(records.iter().all(|record| usize::from(record.pcpu) == pcpu));
        let own = Event::Exit {
            vcpu: Some(pcpu as u8),
            cause: ExitCause::CpuOff,
            argument: 0,
        };
        assert!(records.iter().any(|record| record.event == own), "{records:?}");
    }
    // The last vCPU takes the board with it.
    let off = Event::Block {
        vcpu: 0,
        why: BlockReason::Off,
    };
    let (first, _) = records(&bench, 0);
    assert!(first.iter().any(|record| record.event == off), "{first:?}");
}

#[test]
fn tracing_changes_nothing_that_a_guest_or_the_machine_sees() {
    let run = |traced: bool| {
        let mut bench = Bench::new(1, &[vm("control", &[(0, 20)]), vm("busy", &[(0, 1)])]);
        if traced {
            bench.world().trace = rings(1, 1 << 8);
        }
        bench.program(0, |_| periodic(100_000, |_| Action::Compute(500)));
        bench.program(1, |_| |_, _| Action::Compute(1_000_000));
        bench.run(2_500_000);
        bench.records(|_| true)
    };
    assert_eq!(run(true), run(false));
}

#[test]
fn a_wake_says_how_late_its_timer_is() {
    // The timer of a less urgent vCPU is not looked at while another one runs.
    let mut bench = Bench::new(1, &[vm("urgent", &[(0, 20)]), vm("late", &[(0, 1)])]);
    bench.world().trace = rings(1, 1 << 12);
    bench.program(0, |_| periodic(70_000, |_| Action::Compute(30_000)));
    bench.program(1, |_| periodic(100_000, |_| Action::Compute(500)));
    bench.run(2_500_000);
    let (records, _) = records(&bench, 0);
    let wakes = records.iter().filter_map(|record| match record.event {
        Event::Wake { vcpu: 1, late } => Some((record.time, u64::from(late))),
        _ => None,
    });
    // The first one is the start of the partition.
    let wakes: Vec<(u64, u64)> = wakes.skip(1).collect();
    let late = wakes.iter().filter(|(_, late)| *late != 0).count();
    assert!(wakes.len() > 10 && late > 3, "{wakes:?}");
    let (time, late) = wakes[0];
    let phase = (time - late) % 100_000;
    assert!(
        wakes.iter().all(|(time, late)| (time - late) % 100_000 == phase),
        "{wakes:?}"
    );
}
