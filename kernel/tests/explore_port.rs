// SPDX-License-Identifier: Apache-2.0
//! Exhaustive search in a small scope: synchronous messages, donation and locks on two pCPUs.
//!
//! The code is the kernel's own, on the mock. Its state cannot be copied, so the search runs each case from
//! the start. A case is a placement of two clients and a server, their programs, and an order of the pCPUs'
//! steps. The usual order lets the pCPU go on whose clock is the earliest. A deviation lets the other one do
//! a step first. The search tries one deviation at each of the first steps of every system, and two in some.
//! A step is an exit with all that the kernel does for it; the inside of a step is guarded by locks.
//!
//! In every case each call has its own answer or its deadline, no vCPU waits for ever, and the mock, which is
//! strict about the protocol of the boundary, does not complain.

use crate::support::{Bench, Part, RAM, call, error_mark, tables, task, vm};
use bulkhead_abi::{Error, ObjectKind, Operation, Rights};
use bulkhead_arch_api::Reply;
use bulkhead_arch_sim::{Action, Guest, Outcome};
use bulkhead_image::layout::{LockRecord, Name, PortRecord};

const PORT: u64 = 1;
const CLOCK: u64 = 2;
const LOCK: u64 = 3;
const FROM: u64 = RAM + 0x100;
const TO: u64 = RAM + 0x200;
/// All partitions run by then.
const START: u64 = 100_000;
/// All programs have ended by then.
const END: u64 = 160_000;
/// The ticks by which a pCPU may be ahead of the other one.
const AHEAD: u64 = 2_000;
/// The mark at the end of a program.
const FINISHED: u64 = 0xF1;
/// The mark of an answer that is another one's.
const MIXED_UP: u64 = 0xBAD;

/// A step of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// A call. With `short`, its deadline is so soon that it may come first.
    Call { donates: bool, short: bool },
    /// A call while the client owns the lock.
    CallWithLock,
}

const CALL: Step = Step::Call {
    donates: false,
    short: false,
};
const DONATE: Step = Step::Call {
    donates: true,
    short: false,
};
const SHORT: Step = Step::Call {
    donates: true,
    short: true,
};
const PROGRAMS: [[Step; 2]; 5] = [
    [DONATE, DONATE],
    [CALL, DONATE],
    [SHORT, DONATE],
    [SHORT, SHORT],
    [Step::CallWithLock, DONATE],
];

/// The programs that run side by side.
const PAIRS: [[usize; 2]; 6] = [[0, 0], [1, 2], [2, 0], [2, 3], [3, 4], [4, 4]];
/// The steps at which the search deviates: one of so many, or two of so many.
const ONE: usize = 40;
const TWO: usize = 25;

/// A system of the search.
#[derive(Clone, Copy, Debug)]
struct System {
    programs: [usize; 2],
    /// The pCPUs of the second client and of the server. The first client is on pCPU 0.
    homes: [u32; 2],
    /// True if the server is more important than its clients.
    server_first: bool,
    /// True if the server replies and receives in one call.
    in_one_call: bool,
}

fn actions(step: Step, question: u64) -> Vec<Action> {
    let (donates, until) = match step {
        Step::Call { donates, short } => (donates, if short { START + 1_500 } else { 0 }),
        Step::CallWithLock => (true, 0),
    };
    let operation = if donates {
        Operation::PortSendReceiveDonate
    } else {
        Operation::PortSendReceive
    };
    let mut actions = vec![
        Action::Write {
            address: FROM,
            size: 8,
            value: question,
        },
        call(operation, &[PORT, FROM, 8, TO, 16, until]),
        Action::Read { address: TO, size: 8 },
    ];
    if step == Step::CallWithLock {
        actions.insert(0, call(Operation::LockTake, &[LOCK, 0]));
        actions.push(call(Operation::LockRelease, &[LOCK]));
    }
    actions
}

/// Returns a client with a program. Its marks are the answers, and a mark at the end.
fn client(number: u64, program: [Step; 2]) -> impl Guest {
    let mut rest = vec![call(Operation::TimerSleep, &[CLOCK, START])];
    let questions: Vec<u64> = (1..=2).map(|step| (number << 8) | (2 * step)).collect();
    for (step, question) in program.into_iter().zip(&questions) {
        rest.extend(actions(step, *question));
    }
    rest.reverse();
    let mut asked = questions.into_iter();
    let (mut failed, mut finished) = (None, false);
    move |last: Outcome, _: u64| {
        match last {
            Outcome::Replied(Reply::Hypercall(Err(error))) => failed = Some(error_mark(error)),
            Outcome::Value(value) => {
                let question = asked.next().unwrap_or(0);
                let right = if value == question + 1 { question } else { MIXED_UP };
                return Action::Mark(failed.take().unwrap_or(right));
            }
            _ => {}
        }
        match rest.pop() {
            Some(action) => action,
            None if !finished => {
                finished = true;
                Action::Mark(failed.unwrap_or(FINISHED))
            }
            None => Action::Idle,
        }
    }
}

/// Returns a server that answers each question with the next number.
fn server(in_one_call: bool) -> impl Guest {
    let (mut step, mut reply) = (0, 0);
    move |last: Outcome, _: u64| {
        if let Outcome::Replied(Reply::Hypercall(answer)) = last {
            match answer {
                Ok([8, _, index, _]) => (step, reply) = (1, index),
                // The reply came, or was too late.
                _ => (step, reply) = (0, 0),
            }
        }
        match (step, last) {
            (1, _) => {
                step = 2;
                Action::Read { address: TO, size: 8 }
            }
            (2, Outcome::Value(value)) => {
                step = 3;
                let address = if in_one_call { TO } else { FROM };
                Action::Write {
                    address,
                    size: 8,
                    value: value + 1,
                }
            }
            (3, _) if !in_one_call => call(Operation::PortReply, &[reply, FROM, 8]),
            _ => {
                let reply = if step == 3 { reply } else { 0 };
                call(Operation::PortReceiveDonate, &[PORT, TO, 16, 8, reply, 0])
            }
        }
    }
}

fn bench(system: &System) -> Bench {
    let with = |part: Part| {
        part.cap(PORT as u32, ObjectKind::Port, 0, Rights(3))
            .cap(CLOCK as u32, ObjectKind::Timer, 0, Rights::READ)
            .cap(LOCK as u32, ObjectKind::Lock, 0, Rights::WRITE)
    };
    let parts = [
        with(task("first", 0, 10)),
        with(vm("second", &[(system.homes[0], 12)])),
        with(task(
            "server",
            system.homes[1],
            if system.server_first { 20 } else { 5 },
        )),
    ];
    let mut image = tables(2, &parts);
    image.ports.push(PortRecord {
        name: Name::new("port").unwrap(),
        message_size: 16.into(),
        // Calls that were given up count until the server looks: two of each client.
        depth: 4.into(),
        flags: 0.into(),
        reserved: 0.into(),
    });
    image.locks.push(LockRecord {
        name: Name::new("lock").unwrap(),
    });
    let bench = Bench::with_image(2, image.build().unwrap());
    for vcpu in 0..2 {
        let program = PROGRAMS[system.programs[usize::from(vcpu)]];
        bench.program(vcpu, move |_| client(u64::from(vcpu) + 1, program));
    }
    let in_one_call = system.in_one_call;
    bench.program(2, move |_| server(in_one_call));
    bench
}

/// Runs a system with deviations at these steps, and checks it. Returns the number of its steps.
fn run(system: &System, deviations: &[usize]) -> usize {
    let mut bench = bench(system);
    let mut step = 0;
    bench.run_deviating(END, AHEAD, |now| {
        if now < START {
            return false;
        }
        step += 1;
        deviations.contains(&(step - 1))
    });
    let told = || format!("{system:?} with deviations at {deviations:?}");
    assert!(bench.look().halted.is_empty(), "{}", told());
    for (vcpu, program) in (0..).zip(system.programs) {
        let marks = bench.marks(vcpu);
        assert_eq!(
            marks.last(),
            Some(&FINISHED),
            "vCPU {vcpu} of {}: {marks:x?}",
            told()
        );
        assert_eq!(marks.len(), 3, "vCPU {vcpu} of {}: {marks:x?}", told());
        for (number, (mark, step)) in (1..).zip(marks.iter().zip(PROGRAMS[program])) {
            let answered = *mark == ((u64::from(vcpu) + 1) << 8) | (2 * number);
            let late = *mark == error_mark(Error::TimedOut) && step == SHORT;
            assert!(answered || late, "vCPU {vcpu} of {}: {marks:x?}", told());
        }
    }
    step
}

fn systems() -> impl Iterator<Item = System> {
    (0..PAIRS.len() * 16).map(|number| {
        let bits = number as u32 % 16;
        System {
            programs: PAIRS[number / 16],
            homes: [bits & 1, bits >> 1 & 1],
            server_first: bits & 4 != 0,
            in_one_call: bits & 8 != 0,
        }
    })
}

#[test]
fn one_deviation_anywhere_changes_no_answer() {
    let mut cases = 0;
    for system in systems() {
        let steps = run(&system, &[]);
        if system.homes == [0, 0] {
            // The other pCPU has nothing to do.
            cases += 1;
            continue;
        }
        for at in 0..steps.min(ONE) {
            run(&system, &[at]);
            cases += 1;
        }
    }
    assert!(cases > 2_000, "{cases} cases");
}

#[test]
fn two_deviations_anywhere_change_no_answer() {
    let mut cases = 0;
    for homes in [[1, 0], [0, 1], [1, 1]] {
        let system = System {
            programs: [2, 4],
            homes,
            server_first: false,
            in_one_call: true,
        };
        let steps = run(&system, &[]).min(TWO);
        for first in 0..steps {
            for second in first..steps {
                run(&system, &[first, second]);
                cases += 1;
            }
        }
    }
    assert!(cases > 900, "{cases} cases");
}
