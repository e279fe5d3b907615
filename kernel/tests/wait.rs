// SPDX-License-Identifier: Apache-2.0
//! The verbs of waits, each asked of each wait of a hypercall: its outcome, its deadline, an interrupt that
//! makes it give up, and the partition that leaves it. The waits for the answer to an access are in
//! `service`.

use crate::support::{Bench, Part, RAM, call, error_mark, marking, port, reply_to, sleep, tables, task, vm};
use bulkhead_abi::{Error, ObjectKind, Operation, Rights};
use bulkhead_arch_api::VcpuId;
use bulkhead_arch_sim::Action;
use bulkhead_image::layout::{LockRecord, Name, PortRecord};
use std::cell::Cell;
use std::rc::Rc;

const GATE: u32 = 1;
const CLOCK: u64 = 2;
/// The port at which the vCPU receives.
const INBOX: u32 = 3;
/// The port at which the vCPU calls.
const SERVER: u32 = 4;
const LOCK: u32 = 5;
const WAITER: u64 = 6;
const FROM: u64 = RAM + 0x100;
const TO: u64 = RAM + 0x200;

/// The time at which the other partition ends the wait.
const END: u64 = 200_000;
/// The answer to a call without results.
const DONE: [u64; 4] = [0; 4];

/// A kind of wait.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Events,
    Sleep,
    Message,
    Reply,
    Lock,
}

const ALL: [Kind; 5] = [Kind::Events, Kind::Sleep, Kind::Message, Kind::Reply, Kind::Lock];

impl Kind {
    /// Returns the call that waits, at most until a time.
    fn wait(self, until: u64) -> Action {
        match self {
            Self::Events => call(Operation::EventWait, &[GATE.into(), until]),
            Self::Sleep => sleep(CLOCK, until),
            Self::Message => call(Operation::PortReceive, &[INBOX.into(), TO, 64, until]),
            Self::Reply => {
                let arguments = [SERVER.into(), FROM, 8, TO, 64, until];
                call(Operation::PortSendReceive, &arguments)
            }
            Self::Lock => call(Operation::LockTake, &[LOCK.into(), until]),
        }
    }

    /// Returns what the other partition does before anything waits, and the answers.
    fn before(self) -> (Vec<Action>, Vec<u64>) {
        match self {
            Self::Reply => (
                vec![call(Operation::PortReceive, &[SERVER.into(), TO, 64, 0])],
                vec![8, 0, reply_to(7, 0, 1), 0],
            ),
            Self::Lock => (vec![call(Operation::LockTake, &[LOCK.into(), 0])], DONE.to_vec()),
            _ => (Vec::new(), Vec::new()),
        }
    }

    /// Returns the step by which the other partition ends the wait.
    fn end(self) -> Action {
        match self {
            Self::Events => call(Operation::EventSignal, &[GATE.into(), 4]),
            Self::Sleep => Action::Compute(1),
            Self::Message => call(Operation::PortSend, &[INBOX.into(), FROM, 8]),
            Self::Reply => call(Operation::PortReply, &[reply_to(7, 0, 1), FROM, 8]),
            Self::Lock => call(Operation::LockRelease, &[LOCK.into()]),
        }
    }

    /// Returns the outcome of the wait that was ended.
    fn outcome(self) -> [u64; 4] {
        match self {
            Self::Events => [4, 0, 0, 0],
            Self::Message | Self::Reply => [8, 0, 0, 0],
            Self::Sleep | Self::Lock => DONE,
        }
    }
}

/// Returns a board with a VM that waits, on this pCPU, and a task on pCPU 0 that does `steps`.
fn bench(kind: Kind, pcpu: u32, steps: impl Fn() -> Vec<Action> + 'static) -> Bench {
    let both = |part: Part| {
        part.cap(CLOCK as u32, ObjectKind::Timer, 0, Rights::READ).cap(
            LOCK,
            ObjectKind::Lock,
            0,
            Rights::WRITE,
        )
    };
    let waiter = both(vm("waiter", &[(pcpu, 10)]))
        .cap(GATE, ObjectKind::EventGate, 0, Rights::READ)
        .cap(INBOX, ObjectKind::Port, 0, Rights::READ)
        .cap(SERVER, ObjectKind::Port, 1, Rights::WRITE);
    let other = both(task("other", 0, 20))
        .cap(GATE, ObjectKind::EventGate, 0, Rights::WRITE)
        .cap(INBOX, ObjectKind::Port, 0, Rights::WRITE)
        .cap(SERVER, ObjectKind::Port, 1, Rights::READ)
        .cap(WAITER as u32, ObjectKind::Partition, 0, Rights::ALL);
    let mut image = tables(2, &[waiter, other]);
    image.ports.push(port(64, 1));
    image.ports.push(PortRecord {
        name: Name::new("server").unwrap(),
        ..port(64, 1)
    });
    image.locks.push(LockRecord {
        name: Name::new("lock").unwrap(),
    });
    let bench = Bench::with_image(2, image.build().unwrap());
    bench.program(1, move |_| {
        let (mut all, _) = kind.before();
        all.extend(steps());
        marking(all)
    });
    bench
}

/// Returns the time at which the vCPU was told the outcome of its last call.
fn told_at(bench: &Bench) -> u64 {
    let world = bench.look();
    let (time, _) = world.marks(VcpuId(0)).last().expect("the wait has ended");
    time
}

/// Checks each wait, with the vCPU on the pCPU of the other partition and elsewhere.
fn each(mut check: impl FnMut(Kind, u32)) {
    for kind in ALL {
        for pcpu in [0, 1] {
            check(kind, pcpu);
        }
    }
}

#[test]
fn a_wait_ends_with_its_outcome() {
    each(|kind, pcpu| {
        let mut bench = bench(kind, pcpu, move || vec![sleep(CLOCK, END), kind.end()]);
        let until = if kind == Kind::Sleep { END } else { 900_000 };
        bench.program(0, move |_| {
            marking(vec![Action::Compute(20_000), kind.wait(until)])
        });
        bench.run(1_000_000);
        assert_eq!(bench.marks(0), kind.outcome(), "{kind:?} on pCPU {pcpu}");
        let at = told_at(&bench);
        assert!((END..END + 10_000).contains(&at), "{kind:?} on pCPU {pcpu}: {at}");
    });
}

#[test]
fn a_wait_ends_at_its_deadline() {
    each(|kind, pcpu| {
        let mut bench = bench(kind, pcpu, Vec::new);
        bench.program(0, move |_| marking(vec![Action::Compute(20_000), kind.wait(END)]));
        bench.run(1_000_000);
        let expected = match kind {
            Kind::Sleep => DONE.to_vec(),
            _ => vec![error_mark(Error::TimedOut)],
        };
        assert_eq!(bench.marks(0), expected, "{kind:?} on pCPU {pcpu}");
        let at = told_at(&bench);
        assert!((END..END + 5_000).contains(&at), "{kind:?} on pCPU {pcpu}: {at}");
    });
}

#[test]
fn an_interrupt_makes_a_vcpu_give_up_and_nothing_comes_later() {
    each(|kind, pcpu| {
        let mut bench = bench(kind, pcpu, move || vec![sleep(CLOCK, END), kind.end()]);
        bench.program(0, move |_| {
            let again = match kind {
                Kind::Events => call(Operation::EventPoll, &[GATE.into()]),
                Kind::Sleep => Action::Compute(1),
                Kind::Message => call(Operation::PortTryReceive, &[INBOX.into(), TO, 64]),
                Kind::Reply => call(Operation::PortResume, &[0, 0]),
                Kind::Lock => call(Operation::LockTryTake, &[LOCK.into()]),
            };
            marking(vec![
                Action::SetTimer(Some(150_000)),
                kind.wait(900_000),
                Action::Acknowledge,
                Action::Compute(2 * END),
                again,
            ])
        });
        bench.run(1_000_000);
        let mut expected = vec![error_mark(Error::Interrupted)];
        // The outcome that came for no waiter is where a later call finds it.
        if kind != Kind::Sleep {
            expected.extend(kind.outcome());
        }
        assert_eq!(bench.marks(0), expected, "{kind:?} on pCPU {pcpu}");
    });
}

#[test]
fn a_partition_that_stops_leaves_its_wait() {
    each(|kind, pcpu| {
        let steps = move || {
            let stop = call(Operation::PartitionRestart, &[WAITER, 0]);
            vec![sleep(CLOCK, 100_000), stop, sleep(CLOCK, END), kind.end()]
        };
        let mut bench = bench(kind, pcpu, steps);
        let lives = Rc::new(Cell::new(0));
        bench.program(0, move |_| {
            lives.set(lives.get() + 1);
            let look = match kind {
                Kind::Events => call(Operation::EventPoll, &[GATE.into()]),
                Kind::Sleep => sleep(CLOCK, 0),
                Kind::Message => call(Operation::PortTryReceive, &[INBOX.into(), TO, 64]),
                Kind::Reply => call(Operation::PortResume, &[0, 0]),
                Kind::Lock => call(Operation::LockTryTake, &[LOCK.into()]),
            };
            marking(match lives.get() {
                1 => vec![Action::Compute(20_000), kind.wait(900_000)],
                _ => vec![Action::Compute(2 * END), look],
            })
        });
        bench.run(2_000_000);
        let (_, mut other) = kind.before();
        other.extend([DONE; 3].concat());
        match kind {
            Kind::Sleep => {}
            Kind::Reply => other.push(error_mark(Error::Revoked)),
            _ => other.extend(DONE),
        }
        assert_eq!(bench.marks(1), other, "{kind:?} on pCPU {pcpu}");
        // The new life has the message and the events, and the lock is free and not broken.
        let expected = match kind {
            Kind::Reply => vec![error_mark(Error::WrongState)],
            _ => kind.outcome().to_vec(),
        };
        assert_eq!(bench.marks(0), expected, "{kind:?} on pCPU {pcpu}");
    });
}
