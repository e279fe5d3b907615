// SPDX-License-Identifier: Apache-2.0
//! Cold and warm starts by everyone that can ask for them, and the news of them for the partition and its
//! supervisor.

use crate::support::{Bench, NOWHERE, Part, RAM, call, error_mark, task, vm};
use bulkhead_abi::status::{StartOptions, StartWord, StatusWord};
use bulkhead_abi::{Error, HealthClass, ObjectKind, Operation, Rights, StartCause, StartMode};
use bulkhead_arch_api::{PartitionId, Reply, ResetKind, VcpuId};
use bulkhead_arch_sim::{Action, Guest, Outcome, What, script};
use bulkhead_image::layout::HealthAction;

/// A word of the partition's memory that no payload covers.
const COUNTER: u64 = RAM + 0x2000;
/// Index of the supervisor's capability for the part.
const PART: u64 = 1;

const WARM: StartOptions = StartOptions {
    mode: StartMode::Warm,
    alternative: None,
    is_health: false,
};

fn options(options: StartOptions) -> u64 {
    options.encode()
}

fn start(mode: StartMode, cause: StartCause, starts: u32) -> StartWord {
    StartWord {
        mode,
        cause,
        alternative: 0,
        starts,
    }
}

/// Counts the guest's lives in its memory, marks the count and then its start word, and does `then` in life
/// number n.
fn counter(then: impl Fn(u64) -> Action + 'static) -> impl Guest {
    let mut step = 0;
    let mut life = 0;
    move |last, _| {
        step += 1;
        match (step, last) {
            (1, _) => Action::Read {
                address: COUNTER,
                size: 8,
            },
            (2, Outcome::Value(count)) => {
                life = count + 1;
                Action::Write {
                    address: COUNTER,
                    size: 8,
                    value: life,
                }
            }
            (3, _) => Action::Mark(life),
            (4, _) => call(Operation::PartitionStatus, &[0]),
            (5, Outcome::Replied(Reply::Hypercall(Ok([_, word, ..])))) => Action::Mark(word),
            (6, _) => then(life),
            _ => Action::Idle,
        }
    }
}

fn marks(bench: &Bench) -> Vec<(u64, StartWord)> {
    bench
        .marks(0)
        .chunks_exact(2)
        .map(|pair| (pair[0], StartWord::decode(pair[1]).unwrap()))
        .collect()
}

fn supervisor() -> Part {
    task("supervisor", 0, 20)
        .cap(PART as u32, ObjectKind::Partition, 0, Rights::ALL)
        .cap(2, ObjectKind::Timer, 0, Rights::READ)
}

/// Does one action every 100 000 ticks, and marks the error or the first result.
fn supervise(actions: Vec<Action>) -> impl Guest {
    let mut step = 0;
    move |last: Outcome, _: u64| {
        step += 1;
        let index = step / 3;
        match (step % 3, last) {
            (1, _) => call(Operation::TimerSleep, &[2, (index as u64 + 1) * 100_000]),
            (2, _) => actions.get(index).copied().unwrap_or(Action::Idle),
            (_, Outcome::Replied(Reply::Hypercall(Ok([first, ..])))) => Action::Mark(first),
            (_, Outcome::Replied(Reply::Hypercall(Err(error)))) => Action::Mark(error_mark(error)),
            _ => Action::Idle,
        }
    }
}

#[test]
fn a_guest_restarts_itself_warm_or_cold() {
    let mut bench = Bench::new(1, &[vm("part", &[(0, 5)])]);
    let lives = std::cell::Cell::new(0);
    let lives = std::rc::Rc::new(lives);
    bench.program(0, move |_| {
        lives.set(lives.get() + 1);
        let kind = match lives.get() {
            1 | 2 => Some(ResetKind::Warm),
            3 => Some(ResetKind::Cold),
            4 => Some(ResetKind::Warm),
            _ => None,
        };
        counter(move |_| kind.map_or(Action::Idle, Action::Reset))
    });
    bench.run(1_000_000);
    assert_eq!(
        marks(&bench),
        [
            (1, start(StartMode::Cold, StartCause::Boot, 1)),
            (2, start(StartMode::Warm, StartCause::Own, 2)),
            (3, start(StartMode::Warm, StartCause::Own, 3)),
            (1, start(StartMode::Cold, StartCause::Own, 4)),
            (2, start(StartMode::Warm, StartCause::Own, 5)),
        ]
    );
}

#[test]
fn a_health_action_restarts_warm_or_cold_and_names_the_class() {
    for (action, lives, mode) in [
        (HealthAction::RestartWarm, [1, 2, 3], StartMode::Warm),
        (HealthAction::Restart, [1, 1, 1], StartMode::Cold),
    ] {
        let part = vm("part", &[(0, 5)])
            .action(HealthClass::Memory, action)
            .with(|part| part.restart_limit = 2);
        let mut bench = Bench::new(1, &[part, vm("neighbour", &[(0, 1)])]);
        bench.program(0, |_| {
            counter(|_| Action::Read {
                address: NOWHERE,
                size: 4,
            })
        });
        bench.run(30_000_000);
        let expected: Vec<_> = lives
            .into_iter()
            .zip(1..)
            .map(|(life, number)| {
                let health = start(mode, StartCause::Health(HealthClass::Memory), number);
                let first = start(StartMode::Cold, StartCause::Boot, 1);
                (life, if number == 1 { first } else { health })
            })
            .collect();
        assert_eq!(marks(&bench), expected);
        assert!(bench.logged("partition part: failed"), "{:?}", bench.log());
    }
}

#[test]
fn a_supervisor_chooses_the_mode() {
    let warm = options(WARM);
    let mut bench = Bench::new(1, &[vm("part", &[(0, 5)]), supervisor()]);
    bench.program(0, |_| counter(|_| Action::Idle));
    bench.program(1, move |_| {
        supervise(vec![
            call(Operation::PartitionRestart, &[PART, warm]),
            call(Operation::PartitionRestart, &[PART, 0]),
            call(Operation::PartitionStop, &[PART]),
            call(Operation::PartitionStart, &[PART, warm]),
            call(Operation::PartitionStart, &[PART, warm]),
            call(Operation::PartitionRestart, &[PART, 2]),
            call(Operation::PartitionStart, &[PART, 1 << 8 | 1 << 16]),
            call(Operation::PartitionStatus, &[PART]),
        ])
    });
    bench.run(1_000_000);
    let by = |mode, starts| start(mode, StartCause::Supervisor, starts);
    assert_eq!(
        marks(&bench),
        [
            (1, start(StartMode::Cold, StartCause::Boot, 1)),
            (2, by(StartMode::Warm, 2)),
            (1, by(StartMode::Cold, 3)),
            (2, by(StartMode::Warm, 4)),
        ]
    );
    let results = bench.marks(1);
    let invalid = error_mark(Error::InvalidArgument);
    assert_eq!(
        results[..7],
        [0, 0, 0, 0, error_mark(Error::WrongState), invalid, invalid]
    );
    let status = StatusWord::decode(results[7]).unwrap();
    assert_eq!(status.restarts, 2, "a stop and a start are no restart");
}

#[test]
fn a_supervisor_s_start_renews_the_restart_limit_and_the_partition_s_own_does_not() {
    let part = vm("part", &[(0, 5)])
        .action(HealthClass::Memory, HealthAction::RestartWarm)
        .with(|part| part.restart_limit = 2);
    let mut bench = Bench::new(1, &[part, supervisor()]);
    bench.program(0, |_| {
        counter(|life| match life {
            2 => call(Operation::PartitionRestart, &[0, options(WARM)]),
            _ => Action::Read {
                address: NOWHERE,
                size: 4,
            },
        })
    });
    bench.program(1, |_| {
        supervise(vec![call(Operation::PartitionStart, &[PART, options(WARM)])])
    });
    bench.run(1_000_000);
    let lives: Vec<u64> = marks(&bench).into_iter().map(|(life, _)| life).collect();
    // Lives 1, 3 and 4 fail, the last of them for good. The supervisor grants 5, 6 and 7.
    assert_eq!(lives, [1, 2, 3, 4, 5, 6, 7]);
}

#[test]
fn every_part_of_the_shared_state_is_reset_once_per_start() {
    let mut bench = Bench::new(1, &[vm("part", &[(0, 5)]), vm("other", &[(0, 3)])]);
    bench.program(0, |_| {
        script([Action::Compute(20_000), Action::Reset(ResetKind::Warm)])
    });
    bench.run(100_000);
    let parts: Vec<u32> = bench
        .records(|what| matches!(what, What::ResetShared(PartitionId(0), _)))
        .iter()
        .map(|record| match record.what {
            What::ResetShared(_, part) => part,
            _ => u32::MAX,
        })
        .collect();
    assert!(parts.len() >= 6, "{parts:?}");
    assert!(parts.chunks_exact(3).all(|parts| parts == [0, 1, 2]), "{parts:?}");
}

#[test]
fn a_supervisor_starts_other_payloads_and_restarts_keep_them() {
    let chosen = |number, mode| {
        options(StartOptions {
            mode,
            alternative: Some(number),
            is_health: false,
        })
    };
    let part = vm("part", &[(0, 5)])
        .action(HealthClass::Memory, HealthAction::Restart)
        .with(|part| {
            part.payload = vec![1; 32];
            part.alternatives = vec![vec![2; 8], vec![3; 16]];
        });
    let mut bench = Bench::new(1, &[part, supervisor()]);
    bench.program(0, |reset| {
        // The marks are the entry, the content of the start of memory, and its length.
        let entry = reset.entry.0 - RAM;
        let mut step = 0;
        move |last, _| {
            step += 1;
            match (step, last) {
                (1, _) => Action::Read {
                    address: RAM,
                    size: 1,
                },
                (2, Outcome::Value(first)) => Action::Mark(entry << 8 | first),
                (3, _) => Action::Read {
                    address: RAM + 31,
                    size: 1,
                },
                (4, Outcome::Value(last)) => Action::Mark(last),
                (5, _) if entry == 32 => Action::Compute(30_000),
                (6, _) if entry == 32 => Action::Reset(ResetKind::Cold),
                _ => Action::Idle,
            }
        }
    });
    bench.program(1, move |_| {
        supervise(vec![
            call(Operation::PartitionRestart, &[PART, chosen(1, StartMode::Cold)]),
            call(Operation::PartitionRestart, &[PART, chosen(3, StartMode::Cold)]),
            call(Operation::PartitionRestart, &[PART, chosen(2, StartMode::Warm)]),
            call(Operation::PartitionStop, &[PART]),
            call(Operation::PartitionStart, &[PART, chosen(0, StartMode::Cold)]),
        ])
    });
    bench.run(700_000);
    let marks = bench.marks(0);
    assert_eq!(
        marks[..4],
        [1, 1, 16 << 8 | 2, 0],
        "its own, then the first other"
    );
    assert_eq!(
        marks[4..8],
        [32 << 8 | 3, 0, 32 << 8 | 3, 0],
        "its own reset keeps the second"
    );
    assert_eq!(marks[marks.len() - 2..], [1, 1]);
    let refused = error_mark(Error::InvalidArgument);
    assert_eq!(bench.marks(1), [0, refused, 0, 0, 0]);
    let loading: Vec<_> = bench
        .log()
        .into_iter()
        .filter(|line| line.starts_with("partition part: loading"))
        .collect();
    assert_eq!(
        loading[..3],
        [
            "partition part: loading, start 2, alternative other-1",
            "partition part: loading, start 3, alternative other-2",
            "partition part: loading, start 4, alternative other-2",
        ]
    );
}

/// Makes a call again whenever the call was interrupted, after taking the interrupt. Marks the interrupt
/// taken and the final answer.
fn patient(blocking: Action, timer: u64) -> impl Guest {
    let mut armed = false;
    let interrupted = Reply::Hypercall(Err(Error::Interrupted));
    move |last: Outcome, _: u64| match last {
        Outcome::Started(_) => Action::SetTimer(Some(timer)),
        Outcome::Replied(reply) if reply == interrupted => Action::Acknowledge,
        Outcome::Interrupt(line) => {
            armed = false;
            Action::Mark(line.map_or(0, |line| u64::from(line) + 1000))
        }
        Outcome::Replied(Reply::Hypercall(Ok([first, ..]))) => Action::Mark(first),
        Outcome::Replied(Reply::Hypercall(Err(error))) => Action::Mark(error_mark(error)),
        _ if !armed => {
            armed = true;
            blocking
        }
        _ => Action::Idle,
    }
}

#[test]
fn an_interrupt_ends_a_blocking_call_of_a_vm() {
    const TIMER: u64 = 1027;
    const GATE: u64 = 3;
    const CLOCK: u64 = 2;
    let calls = [
        (
            call(Operation::EventWait, &[GATE, 300_000]),
            error_mark(Error::TimedOut),
        ),
        (call(Operation::TimerSleep, &[CLOCK, 300_000]), 0),
    ];
    for (blocking, end) in calls {
        for timer in [50, 100_000] {
            let part = vm("part", &[(0, 5)])
                .cap(CLOCK as u32, ObjectKind::Timer, 0, Rights::READ)
                .cap(GATE as u32, ObjectKind::EventGate, 0, Rights::READ);
            let mut bench = Bench::new(1, &[part, vm("busy", &[(0, 4)])]);
            bench.program(0, move |_| patient(blocking, timer));
            bench.program(1, |_| |_, _| Action::Compute(1_000_000));
            bench.run(1_000_000);
            let marks: Vec<_> = bench.look().marks(VcpuId(0)).collect();
            let values: Vec<u64> = marks.iter().map(|(_, value)| *value).collect();
            assert_eq!(values, [TIMER, end], "{marks:?}");
            assert!((timer..timer + 1_500).contains(&marks[0].0), "{marks:?}");
            assert!((300_000..301_500).contains(&marks[1].0), "{marks:?}");
        }
    }
}
