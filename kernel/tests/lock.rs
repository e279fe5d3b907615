// SPDX-License-Identifier: Apache-2.0
//! Locks: who owns one and who is next, loans of places to the owner, owners that end.

use crate::support::{Bench, Part, RAM, call, error_mark, marking, port, reply_to, tables, task, vm};
use bulkhead_abi::{Error, ObjectKind, Operation, Rights};
use bulkhead_arch_api::VcpuId;
use bulkhead_arch_sim::{Action, Guest, Outcome};
use bulkhead_image::layout::{LockRecord, Name};

const LOCK: u64 = 1;
const CLOCK: u64 = 2;
const OTHER: u64 = 3;
const PORT: u64 = 4;
const FROM: u64 = RAM + 0x100;
const TO: u64 = RAM + 0x200;

/// Returns a board with two locks and a port.
fn bench(pcpus: u32, parts: &[Part]) -> Bench {
    let mut image = tables(pcpus, parts);
    for name in ["first", "second"] {
        image.locks.push(LockRecord {
            name: Name::new(name).unwrap(),
        });
    }
    image.ports.push(port(64, 1));
    Bench::with_image(pcpus, image.build().unwrap())
}

fn with_locks(part: Part) -> Part {
    part.cap(LOCK as u32, ObjectKind::Lock, 0, Rights::WRITE)
        .cap(CLOCK as u32, ObjectKind::Timer, 0, Rights::READ)
        .cap(OTHER as u32, ObjectKind::Lock, 1, Rights::WRITE)
        .cap(PORT as u32, ObjectKind::Port, 0, Rights(3))
}

fn take(lock: u64, until: u64) -> Action {
    call(Operation::LockTake, &[lock, until])
}

fn try_take(lock: u64) -> Action {
    call(Operation::LockTryTake, &[lock])
}

fn release(lock: u64) -> Action {
    call(Operation::LockRelease, &[lock])
}

fn sleep(until: u64) -> Action {
    call(Operation::TimerSleep, &[CLOCK, until])
}

fn mark(error: Error) -> u64 {
    error_mark(error)
}

/// The answer to a call that succeeded.
const DONE: [u64; 4] = [0; 4];
/// The answer to one who takes a broken lock.
const BROKEN: [u64; 4] = [1, 0, 0, 0];

/// Returns a guest that is busy from a time on.
fn busy_from(time: u64) -> impl Guest {
    let mut step = 0;
    move |_: Outcome, _: u64| {
        step += 1;
        match step {
            1 => Action::SetTimer(Some(time)),
            2 => Action::Idle,
            _ => Action::Compute(10_000),
        }
    }
}

/// Returns the time of a mark, counted from 0.
fn time_of(bench: &Bench, vcpu: u8, mark: usize) -> u64 {
    let world = bench.look();
    let marks: Vec<_> = world.marks(VcpuId(vcpu)).collect();
    marks[mark].0
}

#[test]
fn a_lock_has_one_owner() {
    for pcpu in [0, 1] {
        let parts = [
            with_locks(task("owner", 0, 20)),
            with_locks(vm("other", &[(pcpu, 10)])),
        ];
        let mut bench = bench(2, &parts);
        bench.program(0, |_| {
            marking(vec![
                release(LOCK),
                take(LOCK, 0),
                take(LOCK, 0),
                try_take(LOCK),
                sleep(300_000),
                release(LOCK),
                release(LOCK),
            ])
        });
        bench.program(1, |_| {
            marking(vec![
                sleep(100_000),
                try_take(LOCK),
                release(LOCK),
                take(LOCK, 200_000),
                try_take(OTHER),
                sleep(400_000),
                try_take(LOCK),
            ])
        });
        bench.run(1_000_000);
        let state = mark(Error::WrongState);
        let expected = [&[state][..], &DONE, &[state, state], &DONE, &DONE, &[state]].concat();
        assert_eq!(bench.marks(0), expected, "pCPU {pcpu}");
        let late = mark(Error::TimedOut);
        let expected = [&DONE[..], &[late, state, late], &DONE, &DONE, &DONE].concat();
        assert_eq!(bench.marks(1), expected, "pCPU {pcpu}");
        let at = time_of(&bench, 1, 6);
        assert!((200_000..202_000).contains(&at), "the deadline came at {at}");
    }
}

#[test]
fn the_lock_goes_to_the_most_important_one_that_waits() {
    for pcpus in [[0, 0, 0], [1, 0, 1], [1, 1, 1], [0, 1, 0]] {
        let parts = [
            with_locks(task("owner", 0, 5)),
            with_locks(task("low", pcpus[0], 10)),
            with_locks(task("high", pcpus[1], 20)),
            with_locks(vm("middle", &[(pcpus[2], 15)])),
        ];
        let mut bench = bench(2, &parts);
        bench.program(0, |_| {
            marking(vec![take(LOCK, 0), sleep(400_000), release(LOCK), take(LOCK, 0)])
        });
        for (vcpu, start) in [(1, 100_000), (2, 300_000), (3, 200_000)] {
            bench.program(vcpu, move |_| {
                marking(vec![
                    sleep(start),
                    take(LOCK, 0),
                    Action::Compute(5_000),
                    release(LOCK),
                ])
            });
        }
        bench.run(1_000_000);
        for vcpu in 0..4 {
            assert_eq!(
                bench.marks(vcpu).len(),
                if vcpu == 0 { 16 } else { 12 },
                "vCPU {vcpu}"
            );
            assert!(bench.marks(vcpu).iter().all(|mark| *mark == 0));
        }
        let taken = [1, 3, 2].map(|vcpu| time_of(&bench, vcpu, 4));
        let [low, middle, high] = taken;
        assert!(
            high < middle && middle < low && low < time_of(&bench, 0, 12),
            "{taken:?} {pcpus:?}"
        );
        // Each hand-over takes about as long as the work between.
        assert!(
            (400_000..404_000).contains(&high) && low < 415_000,
            "{taken:?} {pcpus:?}"
        );
    }
}

#[test]
fn the_owner_runs_in_the_place_of_who_waits() {
    // The owner is less important than the one that is busy, which is less important than the one that waits.
    for through_a_call in [false, true] {
        let owner = with_locks(task("owner", 0, 5));
        let waiter = with_locks(task("waiter", 0, 30));
        let server = with_locks(task("server", 0, 4));
        let mut bench = bench(1, &[owner, waiter, vm("busy", &[(0, 20)]), server]);
        bench.program(0, move |_| {
            let work = if through_a_call {
                call(Operation::PortSendReceiveDonate, &[PORT, FROM, 8, TO, 64, 0])
            } else {
                Action::Compute(20_000)
            };
            marking(vec![take(LOCK, 0), sleep(95_000), work, release(LOCK)])
        });
        bench.program(1, |_| {
            marking(vec![sleep(100_000), take(LOCK, 900_000), release(LOCK)])
        });
        bench.program(2, |_| busy_from(90_000));
        bench.program(3, |_| {
            marking(vec![
                call(Operation::PortReceive, &[PORT, TO, 64, 0]),
                Action::Compute(20_000),
                call(Operation::PortReply, &[reply_to(5, 0, 1), FROM, 8]),
            ])
        });
        bench.run(2_000_000);
        assert_eq!(bench.marks(1), [DONE; 3].concat());
        let took = time_of(&bench, 1, 4) - time_of(&bench, 1, 0);
        assert!((18_000..26_000).contains(&took), "{took}");
        // Afterwards the owner is as unimportant as before: its answer to the release waits.
        assert_eq!(bench.marks(0).len(), if through_a_call { 12 } else { 8 });
    }
}

#[test]
fn a_waiter_lends_to_each_owner_before_it() {
    // The first owner releases. The second one, which waited, is less important than the busy one, too. The
    // third one waits for both.
    for pcpu in [0, 1] {
        let mut bench = bench(
            2,
            &[
                with_locks(task("first", pcpu, 5)),
                with_locks(task("second", 0, 6)),
                with_locks(task("third", 0, 6)),
                with_locks(task("most", 0, 30)),
                vm("busy", &[(0, 20)]),
            ],
        );
        bench.program(0, |_| {
            marking(vec![take(LOCK, 0), sleep(50_000), sleep(200_000), release(LOCK)])
        });
        for vcpu in [1, 2] {
            bench.program(vcpu, |_| {
                marking(vec![
                    sleep(60_000),
                    take(LOCK, 0),
                    Action::Compute(10_000),
                    release(LOCK),
                ])
            });
        }
        // It owns nothing, and waits for one that owns the second lock, and so on.
        bench.program(3, |_| {
            marking(vec![sleep(100_000), take(LOCK, 900_000), release(LOCK)])
        });
        bench.program(4, |_| busy_from(90_000));
        bench.run(2_000_000);
        assert_eq!(bench.marks(3), [DONE; 3].concat(), "pCPU {pcpu}");
        let at = time_of(&bench, 3, 4);
        assert!(
            (200_000..206_000).contains(&at),
            "it is the most important one: {at}"
        );
        // The others are as unimportant as before.
        assert_eq!(bench.marks(1).len() + bench.marks(2).len(), 8, "pCPU {pcpu}");
    }
}

#[test]
fn who_waits_later_lends_to_the_owner_that_got_the_lock_from_another_pcpu() {
    let mut bench = bench(
        2,
        &[
            with_locks(task("remote", 1, 5)),
            with_locks(task("middle", 0, 10)),
            with_locks(task("most", 0, 9)),
            vm("busy", &[(0, 20)]),
            with_locks(task("urgent", 0, 30)),
        ],
    );
    bench.program(0, |_| marking(vec![take(LOCK, 0), sleep(80_000), release(LOCK)]));
    bench.program(1, |_| {
        marking(vec![
            sleep(60_000),
            take(LOCK, 0),
            Action::Compute(30_000),
            release(LOCK),
        ])
    });
    bench.program(2, |_| marking(vec![sleep(61_000), take(LOCK, 0), release(LOCK)]));
    bench.program(3, |_| busy_from(90_000));
    bench.program(4, |_| marking(vec![sleep(95_000), take(LOCK, 0), release(LOCK)]));
    bench.run(500_000);
    assert_eq!(bench.marks(4), [DONE; 3].concat());
    let at = time_of(&bench, 4, 4);
    assert!((110_000..120_000).contains(&at), "{at}");
}

#[test]
fn a_lock_of_an_owner_that_ends_is_broken_until_somebody_releases_it() {
    for (pcpu, is_waited_for) in [(0, true), (0, false), (1, true), (1, false)] {
        let owner = with_locks(task("owner", 0, 5));
        let other = with_locks(task("other", pcpu, 10));
        let third = with_locks(task("third", pcpu, 9));
        let mut bench = bench(2, &[owner, other, third]);
        let stop = call(Operation::PartitionStop, &[0]);
        bench.program(0, move |_| {
            marking(vec![take(LOCK, 0), take(OTHER, 0), sleep(100_000), stop])
        });
        let start = if is_waited_for { 50_000 } else { 150_000 };
        for (vcpu, start) in [(1, start), (2, start + 1_000)] {
            bench.program(vcpu, move |_| {
                marking(vec![
                    sleep(start),
                    take(LOCK, 0),
                    Action::Compute(5_000),
                    release(LOCK),
                ])
            });
        }
        bench.run(1_000_000);
        assert_eq!(
            bench.marks(1),
            [DONE, BROKEN, DONE].concat(),
            "{pcpu} {is_waited_for}"
        );
        assert_eq!(
            bench.marks(2),
            [DONE, DONE, DONE].concat(),
            "{pcpu} {is_waited_for}"
        );
    }
}

#[test]
fn a_restart_takes_locks_and_waits_with_it() {
    let owner = with_locks(task("owner", 0, 20));
    let waiter = with_locks(task("waiter", 1, 10));
    let restarter = task("restarter", 0, 30)
        .cap(1, ObjectKind::Partition, 0, Rights::ALL)
        .cap(3, ObjectKind::Partition, 1, Rights::ALL)
        .cap(CLOCK as u32, ObjectKind::Timer, 0, Rights::READ);
    let mut bench = bench(2, &[owner, waiter, restarter]);
    bench.program(0, |_| marking(vec![take(LOCK, 0), take(OTHER, 0)]));
    bench.program(1, |_| marking(vec![sleep(100_000), take(LOCK, 0), release(LOCK)]));
    bench.program(2, |_| {
        let restart = |partition: u64| call(Operation::PartitionRestart, &[partition]);
        marking(vec![
            sleep(200_000),
            restart(3),
            sleep(2_000_000),
            restart(1),
            sleep(4_000_000),
        ])
    });
    bench.run(5_000_000);
    // Each life of the owner gets both locks. The waiter's first life ends in its wait, and its second one
    // gets the lock when the owner's first life ends.
    assert_eq!(bench.marks(1), [DONE, DONE, BROKEN, DONE].concat());
    assert_eq!(bench.marks(0)[..8], [DONE; 2].concat());
    assert_eq!(bench.marks(0)[8..], [DONE, BROKEN].concat());
}

#[test]
fn owners_that_wait_for_each_other_are_refused() {
    for calls in [false, true] {
        let first = with_locks(task("first", 0, 10));
        let second = with_locks(task("second", 0, 20));
        let mut bench = bench(1, &[first, second]);
        bench.program(0, |_| {
            marking(vec![
                take(LOCK, 0),
                sleep(100_000),
                take(OTHER, 0),
                release(OTHER),
            ])
        });
        bench.program(1, move |_| {
            let wait = if calls {
                call(
                    Operation::PortSendReceiveDonate,
                    &[PORT, FROM, 8, TO, 64, 300_000],
                )
            } else {
                take(LOCK, 300_000)
            };
            marking(vec![take(OTHER, 0), sleep(50_000), wait, release(OTHER)])
        });
        bench.run(1_000_000);
        let cycle = mark(Error::DonationCycle);
        let late = mark(Error::TimedOut);
        if calls {
            // No vCPU serves the port, so the caller lends its place to no vCPU, and the first one waits.
            assert_eq!(bench.marks(0), [DONE; 4].concat());
        } else {
            assert_eq!(
                bench.marks(0),
                [&DONE[..], &DONE, &[cycle, mark(Error::WrongState)]].concat()
            );
        }
        assert_eq!(bench.marks(1), [&DONE[..], &DONE, &[late], &DONE].concat());
    }
}

#[test]
fn a_vm_takes_its_interrupts_while_it_waits_for_a_lock() {
    let parts = [
        with_locks(task("owner", 0, 10)),
        with_locks(vm("waiter", &[(0, 20)])),
    ];
    let mut bench = bench(1, &parts);
    bench.program(0, |_| marking(vec![take(LOCK, 0), sleep(300_000), release(LOCK)]));
    bench.program(1, |_| {
        marking(vec![
            sleep(50_000),
            Action::SetTimer(Some(150_000)),
            take(LOCK, 0),
            Action::Acknowledge,
            take(LOCK, 0),
        ])
    });
    bench.run(1_000_000);
    let marks = bench.marks(1);
    assert_eq!(marks[4], mark(Error::Interrupted), "{marks:?}");
    assert_eq!(marks.last_chunk(), Some(&DONE));
    let at = time_of(&bench, 1, 4);
    assert!((150_000..152_000).contains(&at), "{at}");
}

#[test]
fn a_lock_needs_its_capability_and_the_right() {
    let part = with_locks(task("own", 0, 10)).cap(6, ObjectKind::Lock, 0, Rights::GRANT);
    let mut bench = bench(1, &[part]);
    bench.program(0, |_| {
        marking(vec![take(6, 0), take(9, 0), take(CLOCK, 0), release(PORT)])
    });
    bench.run(100_000);
    let kind = mark(Error::WrongKind);
    let expected = [mark(Error::NoRight), mark(Error::NoCapability), kind, kind];
    assert_eq!(bench.marks(0), expected);
}
