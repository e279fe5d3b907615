// SPDX-License-Identifier: Apache-2.0
//! The end of authority: a partition that takes a capability away ends the waits that rest on the capability.

use crate::support::{
    self, Bench, Part, RAM, call, error_mark, load, marking, port, reply_to, store, tables, task, vm,
};
use bulkhead_abi::{Error, ObjectKind, Operation, Rights};
use bulkhead_arch_api::VcpuId;
use bulkhead_arch_sim::Action;
use bulkhead_image::ImageBuilder;
use bulkhead_image::layout::{LockRecord, Name};

/// The capabilities of the granter, and of the third partition.
const PORT: u64 = 1;
const CLOCK: u64 = 2;
const LOCK: u64 = 3;
const GATE: u64 = 4;
const OTHER: u64 = 5;
/// The first free slot of the holder.
const GIFT: u64 = 1;
const FROM: u64 = RAM + 0x100;
const TO: u64 = RAM + 0x200;
const READ_WRITE: Rights = Rights(3);

/// Times: of the grant, of its end, and of a try to complete the wait afterwards.
const GRANTED: u64 = 50_000;
const ENDED: u64 = 200_000;
const TRIED: u64 = 300_000;

fn image(pcpus: u32, parts: &[Part]) -> ImageBuilder {
    let mut image = tables(pcpus, parts);
    image.ports.push(port(64, 4));
    image.locks.push(LockRecord {
        name: Name::new("lock").unwrap(),
    });
    image
}

fn with_all(part: Part, other: u32) -> Part {
    part.cap(PORT as u32, ObjectKind::Port, 0, READ_WRITE)
        .cap(CLOCK as u32, ObjectKind::Timer, 0, Rights::READ)
        .cap(LOCK as u32, ObjectKind::Lock, 0, Rights::WRITE)
        .cap(GATE as u32, ObjectKind::EventGate, 0, READ_WRITE)
        .cap(OTHER as u32, ObjectKind::Partition, other, Rights::ALL)
}

fn sleep(until: u64) -> Action {
    support::sleep(CLOCK, until)
}

fn mark(error: Error) -> u64 {
    error_mark(error)
}

/// The ways to take a capability away from one to whom it was granted.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Way {
    Revoke,
    Delete,
    NewLife,
}

const WAYS: [Way; 3] = [Way::Revoke, Way::Delete, Way::NewLife];

/// Lets partition 1 wait by a capability that partition 0 has granted to it and takes away. Partition 2 then
/// does what would have completed the wait. Returns the board and the actions of the holder after its wait.
fn take_away(
    (way, pcpu, is_vm): (Way, u32, bool),
    (slot, rights): (u64, Rights),
    waits: &[Action],
    tries: &[Action],
) -> Bench {
    let holder = if is_vm {
        vm("holder", &[(pcpu, 20)])
    } else {
        task("holder", pcpu, 20)
    };
    let parts = [
        with_all(task("granter", 0, 10), 1),
        holder.cap(CLOCK as u32, ObjectKind::Timer, 0, Rights::READ),
        with_all(task("third", 0, 9), 0),
    ];
    let bench = Bench::with_image(2, image(2, &parts).build().unwrap());
    let end = match way {
        Way::Revoke => call(Operation::CapabilityRevoke, &[slot]),
        Way::Delete => call(Operation::CapabilityDelete, &[slot]),
        Way::NewLife => sleep(ENDED),
    };
    bench.program(0, move |_| {
        marking(vec![
            sleep(GRANTED),
            call(Operation::CapabilityGrant, &[OTHER, slot, rights.0.into()]),
            sleep(ENDED),
            end,
        ])
    });
    let waits = waits.to_vec();
    bench.program(1, move |_| {
        let mut actions = vec![sleep(100_000)];
        actions.extend(&waits);
        marking(actions)
    });
    let mut actions = vec![sleep(ENDED)];
    if way == Way::NewLife {
        actions.push(call(Operation::PartitionRestart, &[OTHER]));
    }
    actions.push(sleep(TRIED));
    actions.extend(tries);
    bench.program(2, move |_| marking(actions.clone()));
    bench
}

/// Runs a board of [`take_away`] until shortly before the try, and to the end. Checks that the wait has ended
/// in time.
fn run(bench: &mut Bench, context: &str) {
    bench.run(TRIED - 10_000);
    let world = bench.look();
    let marks: Vec<_> = world.marks(VcpuId(1)).collect();
    let ended = marks
        .get(4)
        .copied()
        .unwrap_or_else(|| panic!("{context}: {marks:?}"));
    assert_eq!(ended.1, mark(Error::Revoked), "{context}: {marks:?}");
    assert!((ENDED..ENDED + 90_000).contains(&ended.0), "{context}: {marks:?}");
    drop(world);
    bench.run(1_000_000);
}

fn each(mut test: impl FnMut(Way, u32, bool)) {
    for way in WAYS {
        for pcpu in [0, 1] {
            for is_vm in [false, true] {
                test(way, pcpu, is_vm);
            }
        }
    }
}

#[test]
fn a_receiver_gets_nothing_after_its_capability_was_taken_away() {
    each(|way, pcpu, is_vm| {
        let context = format!("{way:?} {pcpu} {is_vm}");
        let waits = [call(Operation::PortReceive, &[GIFT, TO, 64, 0]), load(TO)];
        let tries = [
            store(FROM, 0x5EC7),
            call(Operation::PortSend, &[PORT, FROM, 8]),
            call(Operation::PortTryReceive, &[PORT, TO, 64]),
            load(TO),
        ];
        let mut bench = take_away((way, pcpu, is_vm), (PORT, Rights::READ), &waits, &tries);
        run(&mut bench, &context);
        assert_eq!(bench.marks(1)[5..], [0], "{context}");
        let sent = bench.marks(2);
        assert_eq!(
            sent[sent.len() - 5..],
            [8, 0, 0, 0, 0x5EC7],
            "{context}: {sent:?}"
        );
    });
}

#[test]
fn a_call_ends_with_the_capability_that_it_was_made_by() {
    each(|way, pcpu, is_vm| {
        for is_received in [false, true] {
            for operation in [Operation::PortSendReceive, Operation::PortSendReceiveDonate] {
                let context = format!("{way:?} {pcpu} {is_vm} {is_received} {operation:?}");
                let waits = [call(operation, &[GIFT, FROM, 8, TO, 64, 0])];
                let receive = call(Operation::PortTryReceive, &[PORT, TO, 64]);
                let tries = [receive, call(Operation::PortReply, &[reply_to(6, 1, 1), FROM, 8])];
                let mut bench = take_away((way, pcpu, is_vm), (PORT, Rights::WRITE), &waits, &tries);
                if is_received {
                    // The third partition has the message already when the capability goes.
                    let mut actions = vec![sleep(150_000), receive, sleep(ENDED)];
                    if way == Way::NewLife {
                        actions.push(call(Operation::PartitionRestart, &[OTHER]));
                    }
                    actions.extend([sleep(TRIED), tries[1], receive]);
                    bench.program(2, move |_| marking(actions.clone()));
                }
                run(&mut bench, &context);
                assert_eq!(bench.marks(1).len(), 5, "{context}");
                let marks = bench.marks(2);
                let last = *marks.last().unwrap();
                if is_received {
                    assert_eq!(marks[4..8], [8, 0, reply_to(6, 1, 1), 0], "{context}");
                    let ends = [mark(Error::Revoked), mark(Error::TimedOut)];
                    assert_eq!(marks[marks.len() - 2..], ends, "{context}");
                } else {
                    assert_eq!(last, mark(Error::Revoked), "{context}");
                }
            }
        }
    });
}

#[test]
fn a_waiter_for_a_lock_does_not_get_it_after_its_capability_was_taken_away() {
    each(|way, pcpu, is_vm| {
        let context = format!("{way:?} {pcpu} {is_vm}");
        let waits = [
            call(Operation::LockTake, &[GIFT, 0]),
            call(Operation::LockRelease, &[GIFT]),
        ];
        let mut bench = take_away((way, pcpu, is_vm), (LOCK, Rights::WRITE), &waits, &[]);
        let (take, release) = (
            call(Operation::LockTake, &[LOCK, 0]),
            call(Operation::LockRelease, &[LOCK]),
        );
        bench.program(2, move |_| {
            let mut actions = vec![take, sleep(ENDED)];
            if way == Way::NewLife {
                actions.push(call(Operation::PartitionRestart, &[OTHER]));
            }
            actions.extend([sleep(TRIED), release, take]);
            marking(actions)
        });
        run(&mut bench, &context);
        assert_eq!(bench.marks(1)[5..], [mark(Error::NoCapability)], "{context}");
        let marks = bench.marks(2);
        assert!(marks.iter().all(|mark| *mark == 0), "{context}: {marks:?}");
        let steps = if way == Way::NewLife { 6 } else { 5 };
        assert_eq!(marks.len(), 4 * steps, "{context}");
    });
}

#[test]
fn an_owner_whose_capability_was_taken_away_owns_the_lock_no_more() {
    each(|way, pcpu, is_vm| {
        let context = format!("{way:?} {pcpu} {is_vm}");
        let waits = [call(Operation::LockTake, &[GIFT, 0]), sleep(ENDED + 50_000)];
        let mut bench = take_away((way, pcpu, is_vm), (LOCK, Rights::WRITE), &waits, &[]);
        bench.program(2, move |_| {
            let mut actions = vec![sleep(150_000)];
            if way == Way::NewLife {
                actions.extend([sleep(ENDED), call(Operation::PartitionRestart, &[OTHER])]);
            }
            let take = call(Operation::LockTake, &[LOCK, 900_000]);
            actions.extend([take, call(Operation::LockRelease, &[LOCK]), take]);
            marking(actions)
        });
        bench.run(1_000_000);
        let marks = bench.marks(2);
        // The one who waits is told that the lock is broken, and repairs it.
        assert_eq!(
            marks[marks.len() - 12..],
            [1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
            "{context}: {marks:?}"
        );
    });
}

#[test]
fn a_wait_for_events_or_a_sleep_ends_with_its_capability() {
    each(|way, pcpu, is_vm| {
        let context = format!("{way:?} {pcpu} {is_vm}");
        let waits = [call(Operation::EventWait, &[GIFT, 0])];
        let tries = [
            call(Operation::EventSignal, &[GATE, 4]),
            call(Operation::EventPoll, &[GATE]),
        ];
        let mut bench = take_away((way, pcpu, is_vm), (GATE, Rights::READ), &waits, &tries);
        run(&mut bench, &context);
        assert_eq!(bench.marks(1).len(), 5, "{context}");
        let marks = bench.marks(2);
        assert_eq!(marks[marks.len() - 4..], [4, 0, 0, 0], "{context}");
        let waits = [support::sleep(GIFT, 900_000)];
        let mut bench = take_away((way, pcpu, is_vm), (CLOCK, Rights::READ), &waits, &[]);
        run(&mut bench, &context);
        assert_eq!(bench.marks(1).len(), 5, "{context}");
    });
}

#[test]
fn who_deletes_a_capability_ends_the_wait_of_a_sibling_that_rests_on_it() {
    for pcpu in [0, 1] {
        let holder = vm("holder", &[(0, 10), (pcpu, 20)])
            .cap(PORT as u32, ObjectKind::Port, 0, READ_WRITE)
            .cap(CLOCK as u32, ObjectKind::Timer, 0, Rights::READ);
        let mut bench = Bench::with_image(2, image(2, &[holder]).build().unwrap());
        bench.program(0, |_| {
            marking(vec![
                Action::CpuOn(1, RAM, 0),
                sleep(100_000),
                call(Operation::CapabilityDelete, &[PORT]),
            ])
        });
        bench.program(1, |_| {
            marking(vec![call(Operation::PortReceive, &[PORT, TO, 64, 0])])
        });
        bench.run(500_000);
        assert_eq!(bench.marks(1), [mark(Error::Revoked)], "pCPU {pcpu}");
        assert_eq!(bench.marks(0), [0; 8]);
    }
}

const NAMES: [&str; 20] = [
    "a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l", "m", "n", "o", "p", "q", "r", "s", "t",
];

#[test]
fn all_waits_of_many_holders_end_before_a_revocation_returns() {
    let mut parts = vec![with_all(task("granter", 0, 30), 1)];
    for number in 1..20 {
        parts.push(task(NAMES[number as usize], number % 2, 20 - number / 2).cap(
            CLOCK as u32,
            ObjectKind::Timer,
            0,
            Rights::READ,
        ));
    }
    for (number, slot) in (1..20).zip(6..) {
        parts[0] = parts[0]
            .clone()
            .cap(slot, ObjectKind::Partition, number, Rights::GRANT);
    }
    let mut bench = Bench::with_image(2, image(2, &parts).build().unwrap());
    bench.program(0, |_| {
        let grant = |slot: u64| call(Operation::CapabilityGrant, &[slot, PORT, 1]);
        let mut actions = vec![sleep(GRANTED)];
        actions.extend((6..25).map(grant));
        actions.extend([
            sleep(ENDED),
            call(Operation::CapabilityRevoke, &[PORT]),
            call(Operation::PortSend, &[PORT, FROM, 8]),
            call(Operation::PortTryReceive, &[PORT, TO, 64]),
        ]);
        marking(actions)
    });
    for vcpu in 1..20 {
        bench.program(vcpu, |_| {
            marking(vec![
                sleep(100_000),
                call(Operation::PortReceive, &[GIFT, TO, 64, 0]),
            ])
        });
    }
    bench.run(2_000_000);
    for vcpu in 1..20 {
        assert_eq!(
            bench.marks(vcpu),
            [0, 0, 0, 0, mark(Error::Revoked)],
            "vCPU {vcpu}"
        );
    }
    assert_eq!(bench.marks(0)[4 * 23..], [8, 0, 0, 0]);
}
