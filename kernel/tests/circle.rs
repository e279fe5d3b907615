// SPDX-License-Identifier: Apache-2.0
//! Circles of calls and locks are refused, on any pCPUs.

use crate::support::{self, Bench, Part, RAM, call, error_mark, marking, port, tables, task, vm};
use bulkhead_abi::{Error, ObjectKind, Operation, Rights};
use bulkhead_arch_sim::{Action, Guest};
use bulkhead_image::layout::{LockRecord, Name, PortRecord};

/// The port that a partition serves, and the one that it calls.
const MINE: u64 = 1;
const NEXT: u64 = 2;
const CLOCK: u64 = 3;
const FIRST_LOCK: u64 = 4;
const FROM: u64 = RAM + 0x100;
const TO: u64 = RAM + 0x200;

const OPERATIONS: [Operation; 2] = [Operation::PortSendReceive, Operation::PortSendReceiveDonate];

fn bench(pcpus: u32, parts: &[Part]) -> Bench {
    let mut image = tables(pcpus, parts);
    for name in ["a", "b", "c"] {
        image.ports.push(PortRecord {
            name: Name::new(name).unwrap(),
            ..port(64, 4)
        });
        image.locks.push(LockRecord {
            name: Name::new(name).unwrap(),
        });
    }
    Bench::with_image(pcpus, image.build().unwrap())
}

/// Makes a partition serve port `mine`, and call port `next`.
fn serves(part: Part, mine: u32, next: u32) -> Part {
    let mut part = part
        .cap(MINE as u32, ObjectKind::Port, mine, Rights::READ)
        .cap(NEXT as u32, ObjectKind::Port, next, Rights::WRITE)
        .cap(CLOCK as u32, ObjectKind::Timer, 0, Rights::READ);
    for lock in 0..3 {
        part = part.cap(FIRST_LOCK as u32 + lock, ObjectKind::Lock, lock, Rights::WRITE);
    }
    part
}

fn sleep(until: u64) -> Action {
    support::sleep(CLOCK, until)
}

fn receive() -> Action {
    call(Operation::PortReceive, &[MINE, TO, 64, 0])
}

fn request(operation: Operation, until: u64) -> Action {
    call(operation, &[NEXT, FROM, 8, TO, 64, until])
}

fn take(lock: u64, until: u64) -> Action {
    call(Operation::LockTake, &[FIRST_LOCK + lock, until])
}

/// Returns the index by which the first call of a vCPU is answered.
fn reply_to(vcpu: u8) -> u64 {
    crate::support::reply_to(7, vcpu, 1)
}

fn cycle() -> u64 {
    error_mark(Error::DonationCycle)
}

#[test]
fn a_call_that_closes_a_circle_is_refused_although_nobody_has_received_there() {
    for pcpus in [[0, 0, 0], [0, 1, 0], [1, 0, 1], [0, 0, 1]] {
        for operation in OPERATIONS {
            let parts = [
                serves(task("a", pcpus[0], 5), 0, 1),
                serves(task("b", pcpus[1], 6), 1, 2),
                serves(task("c", pcpus[2], 7), 2, 0),
            ];
            let mut bench = bench(2, &parts);
            // The first one calls before it has ever received.
            bench.program(0, move |_| marking(vec![sleep(100_000), request(operation, 0)]));
            for vcpu in [1, 2] {
                let reply = call(Operation::PortReply, &[reply_to(vcpu - 1), FROM, 8]);
                bench.program(vcpu, move |_| {
                    marking(vec![receive(), request(operation, 0), reply])
                });
            }
            bench.run(500_000);
            let context = format!("{pcpus:?} {operation:?}");
            let of = reply_to(1);
            assert_eq!(bench.marks(2), [8, 0, of, 0, cycle(), 0, 0, 0, 0], "{context}");
            let of = reply_to(0);
            assert_eq!(bench.marks(1), [8, 0, of, 0, 8, 0, 0, 0, 0, 0, 0, 0], "{context}");
            assert_eq!(bench.marks(0), [0, 0, 0, 0, 8, 0, 0, 0], "{context}");
        }
    }
}

#[test]
fn of_two_that_call_each_other_at_once_one_is_refused() {
    for pcpu in [0, 1] {
        for operation in OPERATIONS {
            for start in (0..60).map(|step| 99_000 + 40 * step) {
                let parts = [serves(task("a", 0, 5), 0, 1), serves(task("b", pcpu, 6), 1, 0)];
                let mut bench = bench(2, &parts);
                for (vcpu, start) in [(0, 100_000), (1, start)] {
                    bench.program(vcpu, move |_| {
                        marking(vec![
                            sleep(start),
                            request(operation, 0),
                            receive(),
                            call(Operation::PortReply, &[reply_to(1 - vcpu), FROM, 8]),
                        ])
                    });
                }
                bench.run(500_000);
                let context = format!("{pcpu} {operation:?} {start}");
                let refused = |caller| [cycle(), 8, 0, reply_to(caller), 0, 0, 0, 0, 0];
                let served = [8, 0, 0, 0];
                let marks = [0, 1].map(|vcpu| bench.marks(vcpu));
                let ends = marks.each_ref().map(|marks| marks.get(4..).unwrap_or(&[]));
                let is_one = |one: usize| {
                    let other = 1 - one;
                    ends[one] == refused(other as u8) && ends[other] == served
                };
                // Both may see the other: then both are refused, and go on to receive.
                let both = ends.iter().all(|end| *end == [cycle()]);
                assert!(is_one(0) || is_one(1) || both, "{context}: {marks:?}");
            }
        }
    }
}

#[test]
fn circles_of_locks_and_calls_are_refused_across_pcpus() {
    for pcpu in [0, 1] {
        let parts = [serves(task("a", 0, 10), 0, 1), serves(task("b", pcpu, 20), 1, 2)];
        let mut bench = bench(2, &parts);
        bench.program(0, |_| marking(vec![take(0, 0), sleep(100_000), take(1, 0)]));
        bench.program(1, |_| {
            let release = call(Operation::LockRelease, &[FIRST_LOCK + 1]);
            marking(vec![take(1, 0), sleep(200_000), take(0, 0), release])
        });
        bench.run(500_000);
        assert_eq!(bench.marks(1)[8..], [cycle(), 0, 0, 0, 0], "pCPU {pcpu}");
        assert_eq!(bench.marks(0), [0; 12], "pCPU {pcpu}");
        // A client that owns what its server wants.
        let parts = [serves(task("a", 0, 10), 0, 1), serves(task("b", pcpu, 20), 1, 2)];
        let mut bench = self::bench(2, &parts);
        bench.program(0, |_| {
            marking(vec![
                sleep(50_000),
                take(0, 0),
                request(Operation::PortSendReceive, 0),
            ])
        });
        bench.program(1, |_| marking(vec![receive(), take(0, 0)]));
        bench.run(500_000);
        assert_eq!(bench.marks(1), [8, 0, reply_to(0), 0, cycle()], "pCPU {pcpu}");
        assert_eq!(bench.marks(0), [0; 8], "pCPU {pcpu}");
    }
}

/// Returns a program whose call is interrupted by its timer before the call ends, and that goes on with
/// `rest`.
fn interrupted_call(rest: Vec<Action>) -> impl Guest {
    let mut program = vec![
        sleep(100_000),
        Action::SetTimer(Some(150_000)),
        request(Operation::PortSendReceive, 0),
        Action::Acknowledge,
        Action::SetTimer(None),
        Action::Compute(100_000),
    ];
    program.extend(rest);
    marking(program)
}

#[test]
fn who_takes_an_interrupt_can_serve_meanwhile_and_is_refused_when_it_waits_on() {
    for pcpu in [0, 1] {
        let parts = [
            serves(vm("a", &[(0, 10)]), 0, 1),
            serves(task("b", pcpu, 20), 1, 0),
        ];
        let mut bench = bench(2, &parts);
        bench.program(0, |_| {
            interrupted_call(vec![
                call(Operation::PortResume, &[0, 0]),
                call(Operation::PortTryReceive, &[MINE, TO, 64]),
                call(Operation::PortReply, &[reply_to(1), FROM, 8]),
                call(Operation::PortResume, &[0, 0]),
            ])
        });
        bench.program(1, |_| {
            marking(vec![
                receive(),
                sleep(200_000),
                request(Operation::PortSendReceive, 0),
                call(Operation::PortReply, &[reply_to(0), FROM, 8]),
            ])
        });
        bench.run(1_000_000);
        let interrupted = error_mark(Error::Interrupted);
        let expected = [
            &[0, 0, 0, 0, interrupted, cycle()][..],
            &[8, 0, reply_to(1), 0, 0, 0, 0, 0, 8, 0, 0, 0],
        ];
        assert_eq!(bench.marks(0), expected.concat(), "pCPU {pcpu}");
        assert_eq!(
            bench.marks(1),
            [8, 0, reply_to(0), 0, 0, 0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0],
            "pCPU {pcpu}"
        );
    }
}

#[test]
fn a_call_that_has_come_to_close_a_circle_can_be_given_up() {
    for pcpu in [0, 1] {
        let parts = [
            serves(vm("a", &[(0, 10)]), 0, 1),
            serves(task("b", pcpu, 20), 1, 0),
        ];
        let mut bench = bench(2, &parts);
        bench.program(0, |_| {
            interrupted_call(vec![
                call(Operation::PortResume, &[0, 1]),
                call(Operation::PortResume, &[0, 1]),
                call(Operation::PortTryReceive, &[MINE, TO, 64]),
            ])
        });
        bench.program(1, |_| {
            marking(vec![
                receive(),
                sleep(200_000),
                request(Operation::PortSendReceive, 0),
            ])
        });
        bench.run(1_000_000);
        let ended = [Error::Interrupted, Error::TimedOut, Error::WrongState].map(error_mark);
        let expected = [&[0; 4][..], &ended, &[8, 0, reply_to(1), 0]];
        assert_eq!(bench.marks(0), expected.concat(), "pCPU {pcpu}");
    }
}

#[test]
fn a_receiver_whose_capability_is_gone_hides_no_circle() {
    const OTHER: u64 = 8;
    const GRANTED: u64 = 1;
    for operation in OPERATIONS {
        let first = serves(task("first", 0, 20), 0, 1);
        let second =
            serves(task("second", 1, 10), 1, 0).cap(OTHER as u32, ObjectKind::Partition, 2, Rights::ALL);
        let guest = task("guest", 0, 5).cap(2, ObjectKind::Timer, 0, Rights::READ);
        let mut bench = bench(2, &[first, second, guest]);
        bench.program(1, move |_| {
            let grant = call(
                Operation::CapabilityGrant,
                &[OTHER, MINE, u64::from(Rights::READ.0)],
            );
            let revoke = call(Operation::CapabilityRevoke, &[MINE]);
            marking(vec![
                sleep(50_000),
                grant,
                sleep(300_000),
                revoke,
                sleep(600_000),
                request(operation, 0),
            ])
        });
        bench.program(2, |_| {
            let receive = call(Operation::PortReceive, &[GRANTED, TO, 64, 0]);
            marking(vec![support::sleep(2, 100_000), receive])
        });
        bench.program(0, move |_| {
            let send = call(Operation::PortSend, &[NEXT, FROM, 8, 0]);
            marking(vec![sleep(200_000), send, sleep(500_000), request(operation, 0)])
        });
        bench.run(2_000_000);
        assert_eq!(
            bench.marks(2).get(4),
            Some(&8),
            "the guest has received: {:?}",
            bench.marks(2)
        );
        assert_eq!(
            bench.marks(1).last(),
            Some(&cycle()),
            "{operation:?}: {:?}",
            bench.marks(1)
        );
    }
}
