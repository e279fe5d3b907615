// SPDX-License-Identifier: Apache-2.0
//! Every class of fault with every action, restart limits, watchdogs, and the lines of the log about them.

use crate::support::{self, Bench, NOWHERE, Part, RAM, UART, call, caller, error_mark, task, vm};
use bulkhead_abi::{Error, HealthClass, ObjectKind, Operation, Rights};
use bulkhead_arch_api::{FaultReport, GuestPhys, Reply, ResetKind, VcpuId};
use bulkhead_arch_sim::{Action, Outcome, What, script};
use bulkhead_image::layout::HealthAction;

const READ_NOWHERE: Action = Action::Read {
    address: NOWHERE,
    size: 4,
};

fn report(class: HealthClass) -> FaultReport {
    FaultReport {
        class,
        syndrome: 0x5e,
        pc: 0x4000_0010,
        address: Some(GuestPhys(NOWHERE)),
        virtual_address: None,
    }
}

/// Returns a partition under test beside a neighbour that must not notice: the neighbour marks every 10 000
/// ticks.
fn bench(part: Part) -> Bench {
    let bench = Bench::new(1, &[part, vm("neighbour", &[(0, 20)])]);
    bench.program(1, |_| {
        let mut step = 0;
        move |_, now: u64| {
            step += 1;
            match step % 4 {
                1 => Action::SetTimer(Some((now / 10_000 + 1) * 10_000)),
                2 => Action::Idle,
                3 => Action::Acknowledge,
                _ => Action::Mark(now / 10_000),
            }
        }
    });
    bench
}

fn neighbour_is_fine(bench: &Bench) {
    let marks = bench.marks(1);
    assert!(marks.len() > 90, "{}", marks.len());
    assert!(marks.windows(2).all(|pair| pair[1] == pair[0] + 1), "{marks:?}");
}

/// Returns the outcome of the partition: the number of its starts, and the marks it left.
fn outcome(bench: &Bench) -> (usize, Vec<u64>) {
    neighbour_is_fine(bench);
    (
        bench
            .records(|what| matches!(what, What::Reset(vcpu) if vcpu.0 == 0))
            .len(),
        bench.marks(0),
    )
}

/// Touches an address where nothing is, and marks the outcome: 1000 + value, or 2000 for a reflected fault.
fn toucher() -> impl FnMut(Outcome, u64) -> Action {
    let mut step = 0;
    move |last, _| {
        step += 1;
        match (step, last) {
            (1, _) => Action::Compute(1_000),
            (2, _) => READ_NOWHERE,
            (3, Outcome::Replied(Reply::Read(value))) => Action::Mark(1000 + value),
            (3, Outcome::Faulted(_)) => Action::Mark(2000),
            _ => Action::Idle,
        }
    }
}

#[test]
fn a_touch_of_nothing_reads_zero_if_the_action_is_log() {
    let mut bench = bench(vm("part", &[(0, 5)]).action(HealthClass::Memory, HealthAction::Log));
    bench.program(0, |_| toucher());
    bench.run(1_000_000);
    assert_eq!(outcome(&bench), (1, vec![1000]));
    assert!(
        bench.logged("health: partition=part vcpu=0 class=memory address=0x80000000"),
        "{:?}",
        bench.log()
    );
    assert!(bench.logged("line=10 event=1 action=log"));
    assert!(bench.logged("registers: partition=part vcpu=0 r0=0x0"));
}

#[test]
fn a_touch_of_nothing_is_reflected_if_the_action_is_inject() {
    let mut bench = bench(vm("part", &[(0, 5)]).action(HealthClass::Memory, HealthAction::Inject));
    bench.program(0, |_| toucher());
    bench.run(1_000_000);
    assert_eq!(outcome(&bench), (1, vec![2000]));
}

#[test]
fn a_touch_of_nothing_ends_the_partition_if_the_action_is_stop() {
    let mut bench = bench(vm("part", &[(0, 5)]).action(HealthClass::Memory, HealthAction::Stop));
    bench.program(0, |_| toucher());
    bench.run(30_000_000);
    assert_eq!(outcome(&bench), (1, vec![]));
    assert!(bench.logged("partition part: failed"));
}

#[test]
fn restarts_go_on_until_the_limit() {
    let part = vm("part", &[(0, 5)])
        .action(HealthClass::Memory, HealthAction::Restart)
        .with(|part| part.restart_limit = 3);
    let mut bench = bench(part);
    bench.program(0, |_| toucher());
    bench.run(30_000_000);
    assert_eq!(outcome(&bench), (4, vec![]));
    assert!(
        bench.logged("event=4 action=stop (restart limit reached)"),
        "{:?}",
        bench.log()
    );
    assert!(bench.logged("partition part: failed"));
}

#[test]
fn without_a_limit_restarts_never_end_and_the_log_stays_short() {
    let mut bench = bench(vm("part", &[(0, 5)]).action(HealthClass::Memory, HealthAction::Restart));
    bench.program(0, |_| toucher());
    bench.run(5_000_000);
    let (starts, _) = outcome(&bench);
    assert!(starts > 500, "{starts}");
    let reports = bench
        .log()
        .iter()
        .filter(|line| line.starts_with("health: "))
        .count();
    assert!(reports < 32, "{reports}");
    assert!(bench.log().len() < 400);
}

#[test]
fn a_fault_the_backend_cannot_complete_is_reflected_stopped_or_restarted() {
    for class in [HealthClass::Memory, HealthClass::System] {
        for (action, expected) in [
            (HealthAction::Log, (1, vec![2])),
            (HealthAction::Inject, (1, vec![2])),
            (HealthAction::Stop, (1, vec![])),
            (HealthAction::Restart, (3, vec![])),
        ] {
            let mut bench = bench(
                vm("part", &[(0, 5)])
                    .action(class, action)
                    .with(|part| part.restart_limit = 2),
            );
            bench.program(0, move |_| {
                let mut step = 0;
                move |last, _| {
                    step += 1;
                    match (step, last) {
                        (1, _) => Action::Fault(report(class)),
                        (2, Outcome::Faulted(seen)) if seen == report(class) => Action::Mark(2),
                        _ => Action::Idle,
                    }
                }
            });
            bench.run(1_000_000);
            assert_eq!(outcome(&bench), expected, "{class:?} {action:?}");
        }
    }
}

#[test]
fn a_task_that_faults_is_stopped_or_restarted_whatever_the_action_says() {
    for (action, starts) in [
        (HealthAction::Log, 1),
        (HealthAction::Inject, 1),
        (HealthAction::Stop, 1),
        (HealthAction::Restart, 3),
    ] {
        let part = task("part", 0, 5)
            .action(HealthClass::Task, action)
            .with(|part| part.restart_limit = 2);
        let mut bench = bench(part);
        bench.program(0, |_| {
            script([Action::Fault(report(HealthClass::Task)), Action::Mark(1)])
        });
        bench.run(30_000_000);
        assert_eq!(outcome(&bench), (starts, vec![]), "{action:?}");
        assert!(bench.logged("partition part: failed"));
    }
}

#[test]
fn a_malformed_hypercall_gets_its_error_and_is_a_health_event() {
    let refused = error_mark(Error::NotSupported);
    for (action, expected) in [
        (HealthAction::Log, (1, vec![refused])),
        (HealthAction::Inject, (1, vec![])),
        (HealthAction::Stop, (1, vec![])),
        (HealthAction::Restart, (3, vec![])),
    ] {
        let part = vm("part", &[(0, 5)])
            .action(HealthClass::Hypercall, action)
            .with(|part| part.restart_limit = 2);
        let mut bench = bench(part);
        bench.program(0, |_| caller(vec![Action::Hypercall(0x7777, [0; 6])]));
        bench.run(1_000_000);
        assert_eq!(outcome(&bench), expected, "{action:?}");
        assert!(bench.logged("class=hypercall operation=0x7777 capability=0x0 error=not-supported"));
    }
}

#[test]
fn a_silent_watchdog_bites_and_a_kicked_one_does_not() {
    let watched = |action| {
        vm("part", &[(0, 5)])
            .action(HealthClass::Watchdog, action)
            .with(|part| {
                part.watchdog_ns = 50_000;
                part.restart_limit = 2;
            })
    };
    for (action, starts) in [
        (HealthAction::Log, 1),
        (HealthAction::Stop, 1),
        (HealthAction::Restart, 3),
    ] {
        let mut bench = bench(watched(action));
        bench.program(0, |_| script([Action::Compute(u64::MAX)]));
        bench.run(1_000_000);
        assert_eq!(outcome(&bench).0, starts, "{action:?}");
        assert!(bench.logged("class=watchdog period_ns=50000"));
        assert_eq!(
            bench.logged("partition part: failed"),
            action != HealthAction::Log
        );
    }
    let mut bench = bench(watched(HealthAction::Stop));
    bench.program(0, |_| {
        let mut step = 0_u32;
        move |_, _| {
            step += 1;
            if step.is_multiple_of(2) {
                Action::Compute(40_000)
            } else {
                call(Operation::PartitionKick, &[0])
            }
        }
    });
    bench.run(1_000_000);
    assert_eq!(outcome(&bench).0, 1);
    assert!(!bench.logged("watchdog"));
}

#[test]
fn watchdogs_of_less_important_vcpus_do_not_interrupt_a_job() {
    const PERIOD: u64 = 50_000;
    const JOB: u64 = 20_000;
    let dog = |name| {
        vm(name, &[(0, 5)])
            .action(HealthClass::Watchdog, HealthAction::Log)
            .with(|part| part.watchdog_ns = 1_000)
    };
    let mut bench = Bench::new(1, &[vm("critical", &[(0, 20)]), dog("first"), dog("second")]);
    // The VM makes a mark at the release, then does the job.
    bench.program(0, |_| {
        let mut late = None;
        let mut alarm = support::periodic(PERIOD, Action::Mark);
        move |last, now| match late.take() {
            Some(()) => Action::Compute(JOB),
            None => {
                let action = alarm(last, now);
                late = matches!(action, Action::Mark(_)).then_some(());
                action
            }
        }
    });
    bench.program(1, |_| |_: Outcome, _| Action::Compute(500));
    bench.program(2, |_| |_: Outcome, _| Action::Compute(500));
    bench.run(20 * PERIOD);
    let releases = bench.records(|what| matches!(what, What::Mark(VcpuId(0), _)));
    assert!(releases.len() >= 17, "{} releases", releases.len());
    let armed = bench.records(|what| matches!(what, What::Arm(_)));
    // During the first jobs the other partitions are still loaded.
    for release in &releases[2..] {
        let job = release.time + 1..release.time + JOB;
        let interruptions = armed.iter().filter(|arm| job.contains(&arm.time)).count();
        assert_eq!(interruptions, 0, "in the job of {}", release.time);
    }
    // The watchdogs end in the time of their own partitions.
    assert!(
        bench.look().records.len() > 100 && bench.logged("partition=second"),
        "{:?}",
        bench.log()
    );
    assert!(bench.logged("partition=first"));
}

#[test]
fn every_watcher_is_told_of_a_state() {
    const GATE: u64 = 1;
    let names = ["w0", "w1", "w2", "w3", "w4", "w5", "w6", "w7", "w8", "w9"];
    let watcher = |name| {
        vm(name, &[(0, 5)])
            .cap(GATE as u32, ObjectKind::EventGate, u32::MAX, Rights::READ)
            .with(|part| part.watches = vec![0])
    };
    let mut parts = vec![vm("bad", &[(0, 4)])];
    parts.extend(names.map(watcher));
    for (number, part) in (0_u32..).zip(&mut parts).skip(1) {
        part.capabilities
            .iter_mut()
            .for_each(|(.., object, _)| *object = number);
    }
    let mut bench = Bench::new(1, &parts);
    bench.program(0, |_| {
        script([Action::Compute(200_000), Action::Reset(ResetKind::Off)])
    });
    for vcpu in 1..=10 {
        bench.program(vcpu, |_| {
            caller((0..8).map(|_| call(Operation::EventWait, &[GATE, 0])).collect())
        });
    }
    bench.run(2_000_000);
    for vcpu in 1..=10 {
        let marks = bench.marks(vcpu);
        assert!(
            !marks.is_empty() && marks.iter().all(|events| events & 1 != 0),
            "{vcpu}: {marks:?}"
        );
    }
}

#[test]
fn the_line_of_an_event_is_that_of_the_mapping_only_if_the_event_is_about_memory() {
    for (class, line) in [(HealthClass::Memory, "line=11"), (HealthClass::System, "line=10")] {
        let mut bench = bench(vm("part", &[(0, 5)]).action(class, HealthAction::Stop));
        // The number of a register may look like an address.
        let report = FaultReport {
            address: Some(GuestPhys(RAM + 0x10)),
            ..report(class)
        };
        bench.program(0, move |_| script([Action::Fault(report)]));
        bench.run(100_000);
        assert!(bench.logged(line), "{class:?}: {:?}", bench.log());
    }
}

#[test]
fn a_stopped_partition_has_no_watchdog() {
    let mut bench = bench(vm("part", &[(0, 5)]).with(|part| part.watchdog_ns = 50_000));
    bench.program(0, |_| script([Action::Reset(ResetKind::Off)]));
    bench.run(1_000_000);
    assert_eq!(outcome(&bench).0, 1);
    assert!(!bench.logged("watchdog"));
    assert!(bench.logged("partition part: stopped"));
}

#[test]
fn a_reset_by_the_guest_does_not_count_against_the_limit() {
    let mut bench = bench(vm("part", &[(0, 5)]).with(|part| part.restart_limit = 0));
    bench.program(0, |_| {
        script([Action::Compute(20_000), Action::Reset(ResetKind::Cold)])
    });
    bench.run(1_000_000);
    assert!(outcome(&bench).0 > 10);
    assert!(!bench.logged("failed"));
}

#[test]
fn a_restart_finds_memory_and_devices_as_at_the_first_start() {
    let mut bench = bench(vm("part", &[(0, 5)]));
    bench.program(0, |_| {
        let mut step = 0;
        move |last, _| {
            step += 1;
            match (step, last) {
                (1, _) => Action::Read {
                    address: support::RAM + 0x100,
                    size: 8,
                },
                (2, Outcome::Value(value)) => Action::Mark(value),
                (3, _) => Action::Write {
                    address: support::RAM + 0x100,
                    size: 8,
                    value: 77,
                },
                (4, _) => Action::Read {
                    address: UART + 0x38,
                    size: 4,
                },
                (5, Outcome::Replied(Reply::Read(value))) => Action::Mark(value),
                (6, _) => Action::Write {
                    address: UART + 0x38,
                    size: 4,
                    value: 0x10,
                },
                (7, _) => Action::Compute(100_000),
                _ => Action::Reset(ResetKind::Cold),
            }
        }
    });
    bench.run(1_000_000);
    let (starts, marks) = outcome(&bench);
    assert!(starts > 3);
    assert!(marks.iter().all(|mark| *mark == 0), "{marks:?}");
}

#[test]
fn a_backend_failure_ends_the_partition_only() {
    let mut bench = bench(vm("part", &[(0, 5)]));
    bench.program(0, |_| script([Action::Fail(0x99)]));
    bench.run(1_000_000);
    assert_eq!(outcome(&bench).0, 1);
    assert!(bench.logged("partition part: backend failure 0x99"));
    assert!(bench.logged("partition part: failed"));
}

#[test]
fn a_million_faults_leave_a_short_log() {
    let mut bench = bench(vm("part", &[(0, 5)]).action(HealthClass::Memory, HealthAction::Log));
    bench.program(0, |_| |_, _| READ_NOWHERE);
    bench.run(100_000_000);
    neighbour_is_fine(&bench);
    let reports: Vec<String> = bench
        .log()
        .into_iter()
        .filter(|line| line.starts_with("health: "))
        .collect();
    assert!((20..40).contains(&reports.len()), "{}", reports.len());
}
