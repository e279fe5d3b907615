// SPDX-License-Identifier: Apache-2.0
//! Partitions that control, watch and wait for each other by capability.

use crate::support::{Bench, Part, call, caller, error_mark, task, vm};
use bulkhead_abi::hypercall::ORDER_SPACE_NS;
use bulkhead_abi::status::StatusWord;
use bulkhead_abi::{Error, HealthClass, ObjectKind, Operation, PartitionState, Rights};
use bulkhead_arch_api::{Reply, VcpuId};
use bulkhead_arch_sim::{Action, Outcome, What, script};

const LINUX: u64 = 1;
const GATE: u64 = 2;
const CLOCK: u64 = 3;
const CONSOLE: u64 = 4;

/// Returns two partitions. Partition 0 is a task that may do everything with partition 1. Partition 1 is a VM
/// with vCPUs on both pCPUs.
fn parts() -> Vec<Part> {
    let supervisor = task("supervisor", 0, 20)
        .cap(LINUX as u32, ObjectKind::Partition, 1, Rights::ALL)
        .cap(GATE as u32, ObjectKind::EventGate, 0, Rights::ALL)
        .cap(CLOCK as u32, ObjectKind::Timer, 0, Rights::READ)
        .cap(CONSOLE as u32, ObjectKind::Console, 0, Rights(3))
        .with(|part| part.watches = vec![1]);
    vec![supervisor, vm("linux", &[(0, 4), (1, 4)]), vm("other", &[(1, 4)])]
}

fn linux(bench: &Bench) {
    bench.program(1, |_| {
        let mut step = 0;
        move |_, _| {
            step += 1;
            if step == 1 {
                Action::CpuOn(1, 0, 0)
            } else {
                Action::Compute(5_000)
            }
        }
    });
    bench.program(2, |_| |_, _| Action::Compute(5_000));
    bench.program(3, |_| {
        |_, now| {
            if now % 7 == 0 {
                Action::Mark(now)
            } else {
                Action::Compute(1_003)
            }
        }
    });
}

fn sleep(until: u64) -> Action {
    call(Operation::TimerSleep, &[CLOCK, until])
}

fn state(mark: u64) -> PartitionState {
    StatusWord::decode(mark).unwrap().state
}

#[test]
fn stop_start_and_restart_reach_both_pcpus() {
    let mut bench = Bench::new(2, &parts());
    linux(&bench);
    let status = call(Operation::PartitionStatus, &[LINUX]);
    bench.program(0, move |_| {
        caller(vec![
            sleep(100_000),
            status,
            call(Operation::PartitionStart, &[LINUX]),
            call(Operation::PartitionStop, &[LINUX]),
            sleep(2 * ORDER_SPACE_NS),
            status,
            call(Operation::PartitionStop, &[LINUX]),
            call(Operation::PartitionStart, &[LINUX]),
            sleep(3 * ORDER_SPACE_NS),
            status,
            call(Operation::PartitionRestart, &[LINUX]),
            sleep(4 * ORDER_SPACE_NS),
            status,
        ])
    });
    bench.run(5 * ORDER_SPACE_NS);
    let marks = bench.marks(0);
    let wrong = error_mark(Error::WrongState);
    assert_eq!(state(marks[1]), PartitionState::Running);
    assert_eq!(marks[2..4], [wrong, 0]);
    assert_eq!(state(marks[5]), PartitionState::Stopped);
    assert_eq!(marks[6..8], [wrong, 0]);
    assert_eq!(state(marks[9]), PartitionState::Running);
    assert_eq!(marks[10], 0);
    let last = StatusWord::decode(marks[12]).unwrap();
    assert_eq!((last.state, last.restarts), (PartitionState::Running, 1));
    for vcpu in [1, 2] {
        let detached = bench.records(|what| *what == What::Detach(VcpuId(vcpu)));
        assert_eq!(
            detached.len(),
            2,
            "vCPU {vcpu} was taken off at the stop and at the restart"
        );
        let reset = bench.records(|what| *what == What::Reset(VcpuId(vcpu)));
        assert_eq!(reset.len(), 3);
    }
    assert!(bench.marks(3).len() > 3, "the other partition went on");
}

#[test]
fn a_stopped_partition_does_not_run() {
    let mut bench = Bench::new(2, &parts());
    bench.program(0, |_| {
        caller(vec![sleep(100_000), call(Operation::PartitionStop, &[LINUX])])
    });
    for vcpu in [1, 2] {
        bench.program(vcpu, move |_| {
            let mut step = 0;
            move |_, now| {
                step += 1;
                match step {
                    1 if vcpu == 1 => Action::CpuOn(1, 0, 0),
                    step if step % 2 == 0 => Action::Compute(100),
                    _ => Action::Mark(now),
                }
            }
        });
    }
    bench.run(500_000);
    for vcpu in [1, 2] {
        let last = *bench.marks(vcpu).last().unwrap();
        assert!((90_000..102_000).contains(&last), "vCPU {vcpu} ran until {last}");
    }
}

#[test]
fn a_thousand_restarts_across_pcpus_in_any_order() {
    for seed in 0..2 {
        let mut bench = Bench::new(2, &parts());
        bench.seed(seed);
        linux(&bench);
        bench.program(0, |_| {
            let mut step = 0_u64;
            move |last, now| {
                step += 1;
                if step == 3_001 {
                    return call(Operation::PartitionStatus, &[LINUX]);
                }
                match (step % 3, last) {
                    (2, Outcome::Replied(Reply::Hypercall(Ok([word, ..])))) if step > 3_000 => {
                        Action::Mark(word)
                    }
                    _ if step > 3_000 => Action::Idle,
                    (1, _) => call(Operation::PartitionRestart, &[LINUX]),
                    (2, _) => Action::Compute(step % 97),
                    _ => sleep(now + ORDER_SPACE_NS + 3_000 + step % 1_009 * 5),
                }
            }
        });
        bench.run(1_050 * ORDER_SPACE_NS);
        let word = StatusWord::decode(*bench.marks(0).last().unwrap()).unwrap();
        assert_eq!(word.state, PartitionState::Running);
        assert!(word.restarts > 900, "{word:?}");
        assert!(bench.log().len() < 200, "{} lines", bench.log().len());
    }
}

#[test]
fn state_changes_arrive_as_events() {
    let mut bench = Bench::new(2, &parts());
    bench.program(0, |_| {
        let mut step = 0;
        move |last: Outcome, _: u64| {
            step += 1;
            match (step % 3, last) {
                (1, _) => call(Operation::EventWait, &[GATE, 0]),
                (2, Outcome::Replied(Reply::Hypercall(Ok([events, ..])))) => {
                    assert_eq!(events, 2, "bit of partition 1");
                    call(Operation::PartitionStatus, &[LINUX])
                }
                (_, Outcome::Replied(Reply::Hypercall(Ok([word, ..])))) => Action::Mark(word),
                _ => Action::Idle,
            }
        }
    });
    bench.program(1, |_| script([Action::Compute(20_000), Action::Fault(fault())]));
    bench.run(1_000_000);
    // Several changes in a row may be seen as one, and one change may be announced twice.
    let mut seen: Vec<PartitionState> = bench.marks(0).into_iter().map(state).collect();
    seen.dedup();
    assert_eq!(seen, [PartitionState::Running, PartitionState::Failed]);
    let word = StatusWord::decode(*bench.marks(0).last().unwrap()).unwrap();
    assert_eq!((word.events, word.last_event), (1, Some(HealthClass::System)));
}

fn fault() -> bulkhead_arch_api::FaultReport {
    bulkhead_arch_api::FaultReport {
        class: HealthClass::System,
        syndrome: 0,
        pc: 0,
        address: None,
        virtual_address: None,
    }
}

#[test]
fn waiting_ends_with_an_event_from_another_pcpu_or_in_time() {
    let mut parts = parts();
    parts[2] = parts[2].clone().cap(5, ObjectKind::EventGate, 0, Rights::WRITE);
    parts[0].watches.clear();
    let mut bench = Bench::new(2, &parts);
    bench.program(0, |_| {
        caller(vec![
            call(Operation::EventPoll, &[GATE]),
            call(Operation::EventWait, &[GATE, 50_000]),
            call(Operation::TimerNow, &[CLOCK]),
            call(Operation::EventWait, &[GATE, 10]),
            call(Operation::EventWait, &[GATE, 0]),
            call(Operation::TimerNow, &[CLOCK]),
            call(Operation::EventSignal, &[GATE, 8]),
            call(Operation::EventWait, &[GATE, 0]),
        ])
    });
    bench.program(3, |_| {
        script([
            Action::Compute(200_000),
            call(Operation::EventSignal, &[5, 0x10]),
            Action::Compute(1_000_000),
        ])
    });
    bench.run(1_000_000);
    let marks = bench.marks(0);
    let late = error_mark(Error::TimedOut);
    assert_eq!((marks[0], marks[1], marks[3], marks[4]), (0, late, late, 0x10));
    assert!((50_000..50_200).contains(&marks[2]), "{marks:?}");
    assert!((200_000..202_000).contains(&marks[5]), "{marks:?}");
    assert_eq!(marks[6..], [0, 8]);
}

#[test]
fn a_sleep_ends_in_time_and_not_before() {
    let mut bench = Bench::new(2, &parts());
    bench.program(0, |_| {
        caller(vec![
            sleep(123_456),
            call(Operation::TimerNow, &[CLOCK]),
            sleep(1),
            call(Operation::TimerNow, &[CLOCK]),
        ])
    });
    bench.program(1, |_| |_, _| Action::Compute(1_000_000));
    bench.run(1_000_000);
    let marks = bench.marks(0);
    assert!((123_456..123_600).contains(&marks[1]), "{marks:?}");
    assert!(marks[3] - marks[1] < 100, "{marks:?}");
}

#[test]
fn what_a_partition_may_not_do_is_refused_and_logged() {
    let mut parts = parts();
    parts[0] = task("supervisor", 0, 20)
        .cap(LINUX as u32, ObjectKind::Partition, 1, Rights::READ)
        .cap(CLOCK as u32, ObjectKind::Timer, 0, Rights::READ);
    let mut bench = Bench::new(2, &parts);
    linux(&bench);
    bench.program(0, |_| {
        caller(vec![
            call(Operation::PartitionStop, &[LINUX]),
            call(Operation::PartitionStop, &[CLOCK]),
            call(Operation::PartitionStop, &[40]),
            call(Operation::PartitionStop, &[u64::MAX]),
            call(Operation::CapabilityDerive, &[LINUX, u64::from(Rights::ALL.0)]),
            call(Operation::CapabilityDelete, &[0]),
        ])
    });
    bench.run(5_000_000);
    let expected = [
        Error::NoRight,
        Error::WrongKind,
        Error::NoCapability,
        Error::NoCapability,
        Error::NoRight,
        Error::InvalidArgument,
    ];
    assert_eq!(bench.marks(0), expected.map(error_mark));
    assert_eq!(
        bench
            .log()
            .iter()
            .filter(|line| line.contains("class=hypercall"))
            .count(),
        6
    );
    assert!(
        bench.logged("operation=0x102 capability=0x1 error=no-right"),
        "{:?}",
        bench.log()
    );
}

#[test]
fn capabilities_are_derived_granted_and_revoked() {
    let mut bench = Bench::new(2, &parts());
    linux(&bench);
    bench.program(0, |_| {
        caller(vec![
            sleep(100_000),
            call(Operation::CapabilityDerive, &[LINUX, 1]),
            call(Operation::CapabilityInspect, &[5]),
            call(Operation::CapabilityDerive, &[5, 1]),
            call(Operation::CapabilityGrant, &[LINUX, LINUX, 5]),
            call(Operation::CapabilityRevoke, &[LINUX]),
            call(Operation::CapabilityInspect, &[5]),
            call(Operation::CapabilityInspect, &[6]),
            call(Operation::PartitionStatus, &[LINUX]),
        ])
    });
    bench.run(300_000);
    let gone = error_mark(Error::NoCapability);
    let marks = &bench.marks(0)[1..];
    assert_eq!(marks[..5], [5, 1 << 32 | 1, 6, 1, 0]);
    assert_eq!(marks[5..7], [gone, gone]);
    assert_eq!(state(marks[7]), PartitionState::Running);
}

#[test]
fn a_restarted_partition_has_the_capabilities_of_its_first_start() {
    let mut bench = Bench::new(2, &parts());
    // Each life fills its space, grants to another partition, deletes an endowed capability, and ends itself.
    bench.program(0, |_| {
        let grant = call(Operation::CapabilityGrant, &[LINUX, LINUX, 1]);
        let derive = call(Operation::CapabilityDerive, &[CONSOLE, 1]);
        let mut actions = vec![grant, call(Operation::CapabilityDelete, &[CLOCK])];
        actions.extend([derive; 62]);
        actions.push(call(Operation::PartitionRestart, &[0]));
        caller(actions)
    });
    bench.program(1, |_| |_, _| Action::Compute(5_000));
    bench.program(3, |_| |_, _| Action::Compute(5_000));
    bench.run(1_500_000);
    let marks = bench.marks(0);
    // The space holds its own capability and four endowed ones. One of these is deleted, so 60 places are
    // free.
    let full = error_mark(Error::NoSpace);
    let mut life = vec![0, 3];
    life.extend(5..64);
    life.extend([full; 2]);
    assert!(marks.len() > 3 * life.len(), "{} results", marks.len());
    for (number, marks) in marks.chunks_exact(1 + life.len()).enumerate() {
        // The other partition has not met the error for what it was granted before. So that slot stays dead.
        let slot = if number < 63 { 1 + number as u64 } else { full };
        assert_eq!(marks[0], slot, "grant of life {number}");
        assert_eq!(marks[1..], life, "life {number}");
    }
}

#[test]
fn a_task_prints_and_reads_its_console() {
    let mut bench = Bench::new(2, &parts());
    let text = u64::from_le_bytes(*b"hello, t");
    bench.program(0, move |_| {
        caller(vec![
            call(
                Operation::ConsoleWrite,
                &[CONSOLE, 12, text, u64::from_le_bytes(*b"ask\n....")],
            ),
            call(Operation::ConsoleRead, &[CONSOLE]),
        ])
    });
    bench.run(300_000);
    assert_eq!(bench.marks(0), [12, 0]);
    assert_eq!(bench.console("supervisor"), "hello, task\n");
}

#[test]
fn the_same_run_twice_is_the_same_run() {
    let run = || {
        let mut bench = Bench::new(2, &parts());
        linux(&bench);
        bench.program(0, |_| {
            caller(vec![sleep(50_000), call(Operation::PartitionRestart, &[LINUX])])
        });
        bench.run(300_000);
        bench.records(|_| true)
    };
    assert_eq!(run(), run());
}
