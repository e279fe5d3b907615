// SPDX-License-Identifier: Apache-2.0
//! Upcalls: a task that computes is interrupted by an event or at a time, once, and goes on where it was.

use crate::support::{Bench, Part, call, caller, error_mark, task, vm};
use bulkhead_abi::{Error, ObjectKind, Operation, Rights};
use bulkhead_arch_api::Reply;
use bulkhead_arch_sim::{Action, Outcome, script};

const GATE: u64 = 1;
const CLOCK: u64 = 2;
const ENTRY: u64 = 0x1000;
/// Where the tests' partitions have their memory.
const MEMORY: u64 = 0x4000_0000;
const FRAME: u64 = MEMORY + 0x400;
/// A mark of the upcall; the time follows.
const UPCALL: u64 = 1 << 60;

fn watcher() -> Part {
    task("watcher", 0, 20)
        .cap(GATE as u32, ObjectKind::EventGate, 0, Rights::ALL)
        .cap(CLOCK as u32, ObjectKind::Timer, 0, Rights::READ)
}

fn ask(until: u64) -> Action {
    call(Operation::EventUpcall, &[GATE, 0, ENTRY, FRAME, until])
}

/// Returns a guest that does `actions`, and marks when each is done or refused. In an upcall it marks the
/// time, takes the events, marks them, and goes on where it was.
fn interruptible(actions: Vec<Action>) -> impl FnMut(Outcome, u64) -> Action {
    let mut rest = actions.into_iter();
    let mut in_upcall = 0;
    move |last: Outcome, now: u64| {
        if let Outcome::Upcall(argument) = last {
            assert_eq!(argument, FRAME);
            in_upcall = 1;
            return Action::Mark(UPCALL + now);
        }
        match (in_upcall, last) {
            (1, _) => {
                in_upcall = 2;
                call(Operation::EventPoll, &[GATE])
            }
            (2, Outcome::Replied(Reply::Hypercall(Ok([events, ..])))) => {
                in_upcall = 3;
                Action::Mark(events)
            }
            (3, _) => {
                in_upcall = 0;
                call(Operation::EventUpcall, &[GATE, FRAME, 0, 0, 0])
            }
            (_, Outcome::Replied(Reply::Hypercall(Err(error)))) => Action::Mark(error_mark(error)),
            _ => rest.next().unwrap_or(Action::Compute(1_000_000)),
        }
    }
}

fn run(actions: Vec<Action>, other: Vec<Action>) -> Vec<u64> {
    let raiser = task("raiser", 1, 1).cap(1, ObjectKind::EventGate, 0, Rights::WRITE);
    let mut bench = Bench::new(2, &[watcher(), vm("busy", &[(0, 1)]), raiser]);
    let actions = std::cell::RefCell::new(Some(actions));
    bench.program(0, move |_| interruptible(actions.take().unwrap_or_default()));
    bench.program(1, |_| |_, _| Action::Compute(1_000_000));
    let other = std::cell::RefCell::new(Some(other));
    bench.program(2, move |_| script(other.take().unwrap_or_default()));
    bench.run(1_000_000);
    bench.marks(0)
}

/// Asserts that a mark is the mark of an upcall at a time.
fn at(mark: u64, time: u64) {
    let late = mark.wrapping_sub(UPCALL + time);
    assert!(late < 1_000, "{} instead of {time}", mark.wrapping_sub(UPCALL));
}

#[test]
fn a_time_interrupts_a_computation_that_then_goes_on() {
    let marks = run(
        vec![
            ask(300_000),
            Action::Compute(500_000),
            Action::Mark(1),
            Action::Compute(900_000),
        ],
        vec![],
    );
    assert_eq!(marks.len(), 3, "once: {marks:?}");
    at(marks[0], 300_000);
    assert_eq!(marks[1..], [0, 1]);
}

#[test]
fn an_event_from_another_pcpu_interrupts() {
    let marks = run(
        vec![ask(0), Action::Compute(900_000)],
        vec![Action::Compute(200_000), call(Operation::EventSignal, &[1, 0x30])],
    );
    assert!(
        (UPCALL + 200_000..UPCALL + 260_000).contains(&marks[0]),
        "{marks:?}"
    );
    assert_eq!(marks[1..], [0x30]);
}

#[test]
fn an_event_of_its_own_interrupts_behind_the_call() {
    let marks = run(
        vec![
            ask(0),
            call(Operation::EventSignal, &[GATE, 4]),
            Action::Mark(9),
            Action::Compute(900_000),
        ],
        vec![],
    );
    assert!(marks[0] >= UPCALL && marks[0] < UPCALL << 1, "{marks:?}");
    assert_eq!(marks[1..], [4, 9]);
}

#[test]
fn an_event_that_is_there_already_interrupts_at_once() {
    let marks = run(
        vec![call(Operation::EventSignal, &[GATE, 2]), ask(0), Action::Mark(9)],
        vec![],
    );
    assert!(marks[0] >= UPCALL, "{marks:?}");
    assert_eq!(marks[1..], [2, 9]);
}

#[test]
fn an_upcall_waits_for_the_end_of_a_sleep() {
    let marks = run(
        vec![
            ask(100_000),
            call(Operation::TimerSleep, &[CLOCK, 400_000]),
            Action::Mark(9),
        ],
        vec![],
    );
    at(marks[0], 400_000);
    assert_eq!(marks[1..], [0, 9]);
}

#[test]
fn a_wait_for_events_takes_the_upcall_back() {
    let marks = run(
        vec![
            ask(100_000),
            call(Operation::EventWait, &[GATE, 50_000]),
            Action::Compute(300_000),
            Action::Mark(9),
        ],
        vec![],
    );
    assert_eq!(marks, [error_mark(Error::TimedOut), 9]);
}

#[test]
fn asking_for_none_takes_the_upcall_back() {
    let none = call(Operation::EventUpcall, &[GATE, 0, 0, 0, 0]);
    let marks = run(
        vec![ask(100_000), none, Action::Compute(300_000), Action::Mark(9)],
        vec![],
    );
    assert_eq!(marks, [9]);
}

#[test]
fn wrong_memory_is_refused() {
    let wrong = |from, frame| call(Operation::EventUpcall, &[GATE, from, ENTRY, frame, 0]);
    let marks = run(
        vec![
            wrong(0, FRAME + 4),
            wrong(0, 0x10),
            wrong(4, FRAME),
            wrong(0x10, FRAME),
            wrong(0, MEMORY + 0x4000 - 8),
            Action::Mark(9),
        ],
        vec![],
    );
    let refused = error_mark(Error::InvalidArgument);
    assert_eq!(marks, [refused, refused, refused, refused, refused, 9]);
}

#[test]
fn a_vm_has_none() {
    let machine = vm("vm", &[(0, 5)]).cap(GATE as u32, ObjectKind::EventGate, 0, Rights::ALL);
    let mut bench = Bench::new(1, &[machine]);
    bench.program(0, |_| caller(vec![ask(0)]));
    bench.run(100_000);
    assert_eq!(bench.marks(0), [error_mark(Error::WrongState)]);
}

#[test]
fn a_new_life_has_no_upcall_of_the_old_one() {
    let restarter = watcher();
    let mut bench = Bench::new(1, &[restarter]);
    let lives = std::cell::Cell::new(0);
    bench.program(0, move |_| {
        lives.set(lives.get() + 1);
        interruptible(if lives.get() == 1 {
            vec![ask(300_000), call(Operation::PartitionRestart, &[0, 0])]
        } else {
            vec![Action::Mark(2), Action::Compute(900_000)]
        })
    });
    bench.run(1_000_000);
    assert_eq!(bench.marks(0), [2]);
}
