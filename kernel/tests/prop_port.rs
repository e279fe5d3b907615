// SPDX-License-Identifier: Apache-2.0
//! Ports against a model that keeps messages in a list; and random clients and servers on two pCPUs, which
//! find that no message and no reply is lost, doubled, changed or mixed up, even if clients and servers give
//! up or restart.

use crate::support::{Bench, Part, RAM, call, error_mark, marking, port, tables, task, vm};
use bulkhead_abi::{Error, ObjectKind, Operation, Rights};
use bulkhead_arch_api::Reply;
use bulkhead_arch_sim::{Action, Guest, Outcome};
use bulkhead_image::layout::{Name, PortRecord};
use proptest::prelude::*;
use std::collections::{BTreeSet, VecDeque};

const FROM: u64 = RAM + 0x100;
const TO: u64 = RAM + 0x200;
/// Messages that wait in a port.
const DEPTH: usize = 3;
/// The mark of a client that got the answer to another question.
const MIXED_UP: u64 = 0xBAD;

fn bench(pcpus: u32, parts: &[Part]) -> Bench {
    let mut image = tables(pcpus, parts);
    for name in ["first", "second"] {
        image.ports.push(PortRecord {
            name: Name::new(name).unwrap(),
            ..port(16, DEPTH as u32)
        });
    }
    Bench::with_image(pcpus, image.build().unwrap())
}

fn with_ports(part: Part) -> Part {
    part.cap(1, ObjectKind::Port, 0, Rights::ALL)
        .cap(2, ObjectKind::Port, 1, Rights::ALL)
        .cap(3, ObjectKind::Timer, 0, Rights::READ)
}

/// A step of the program that the model follows.
#[derive(Clone, Copy, Debug)]
enum Step {
    Send {
        port: usize,
        length: u64,
        value: u64,
    },
    SendFrom {
        port: usize,
        address: u64,
    },
    Take {
        port: usize,
        size: u64,
    },
    /// A call to a port that no vCPU serves: it ends, and its message with it.
    Call {
        port: usize,
        value: u64,
    },
}

fn step() -> impl Strategy<Value = Step> {
    let port = 0..2_usize;
    let length = prop_oneof![0..17_u64, 0..40_u64];
    let address = prop_oneof![RAM..RAM + 0x5000, any::<u64>()];
    prop_oneof![
        4 => (port.clone(), length, any::<u64>())
            .prop_map(|(port, length, value)| Step::Send { port, length, value }),
        1 => (port.clone(), address).prop_map(|(port, address)| Step::SendFrom { port, address }),
        4 => (port.clone(), prop_oneof![Just(16_u64), 0..20_u64])
            .prop_map(|(port, size)| Step::Take { port, size }),
        1 => (port, any::<u64>()).prop_map(|(port, value)| Step::Call { port, value }),
    ]
}

/// Returns the actions of a step. All answers and loads leave marks.
fn actions(step: Step) -> Vec<Action> {
    let store = |value| Action::Write {
        address: FROM,
        size: 8,
        value,
    };
    let handle = |port: usize| port as u64 + 1;
    match step {
        Step::Send { port, length, value } => {
            vec![
                store(value),
                call(Operation::PortSend, &[handle(port), FROM, length]),
            ]
        }
        Step::SendFrom { port, address } => vec![call(Operation::PortSend, &[handle(port), address, 8])],
        Step::Take { port, size } => vec![
            Action::Write {
                address: TO,
                size: 8,
                value: u64::MAX,
            },
            call(Operation::PortTryReceive, &[handle(port), TO, size]),
            Action::Read { address: TO, size: 8 },
        ],
        Step::Call { port, value } => {
            vec![
                store(value),
                call(Operation::PortSendReceive, &[handle(port), FROM, 8, TO, 0, 1]),
            ]
        }
    }
}

#[derive(Default)]
struct Model {
    ports: [VecDeque<(u64, u64)>; 2],
    /// The message that a call leaves in the port until a vCPU looks.
    stale: [VecDeque<usize>; 2],
}

/// Returns the word that a buffer of ones has after a message.
fn stored(length: u64, value: u64) -> u64 {
    match length {
        0 => u64::MAX,
        8.. => value,
        _ => {
            let kept = u64::MAX << (8 * length);
            value & !kept | kept
        }
    }
}

impl Model {
    fn put(&mut self, port: usize, message: Option<(u64, u64)>) -> Result<(), Error> {
        let waiting = self.ports[port].len() + self.stale[port].len();
        if waiting == DEPTH {
            return Err(Error::NoSpace);
        }
        match message {
            Some(message) => self.ports[port].push_back(message),
            None => self.stale[port].push_back(self.ports[port].len()),
        }
        Ok(())
    }

    /// Returns the marks of a step: the results or the error of its call, then what it loads.
    fn marks(&mut self, step: Step) -> Vec<u64> {
        let answer = |result: Result<(), Error>| match result {
            Ok(()) => vec![0; 4],
            Err(error) => vec![error_mark(error)],
        };
        match step {
            Step::Send { length: 17.., .. } => answer(Err(Error::InvalidArgument)),
            Step::Send { port, length, value } => answer(self.put(port, Some((length, value)))),
            Step::SendFrom { port, address } => {
                let is_memory = address % 8 == 0 && (RAM..=RAM + 0x4000 - 8).contains(&address);
                if !is_memory {
                    return answer(Err(Error::InvalidArgument));
                }
                let value = if address == FROM || address == TO {
                    None
                } else {
                    Some(0)
                };
                // The places of the test itself are left out: see the filter.
                answer(self.put(port, Some((8, value.unwrap_or(0)))))
            }
            Step::Take { size: 0..16, .. } => {
                vec![error_mark(Error::InvalidArgument), u64::MAX]
            }
            Step::Take { port, .. } => {
                let Some((length, value)) = self.ports[port].pop_front() else {
                    self.stale[port].clear();
                    return vec![error_mark(Error::TimedOut), u64::MAX];
                };
                // Stale messages before this one went with it.
                self.stale[port].retain(|before| *before != 0);
                for before in &mut self.stale[port] {
                    *before -= 1;
                }
                vec![length, 0, 0, 0, stored(length, value)]
            }
            // A call takes the place of one that the caller has given up, and is given up there.
            Step::Call { port, .. } if !self.stale[port].is_empty() => answer(Err(Error::TimedOut)),
            Step::Call { port, .. } => match self.put(port, None) {
                Ok(()) => answer(Err(Error::TimedOut)),
                refused => answer(refused),
            },
        }
    }
}

/// The numbers that a random guest draws.
struct Dice(u64);

impl Dice {
    fn draw(&mut self, below: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % below
    }
}

/// Returns a client that asks both ports at random, with random deadlines. It marks each good answer by the
/// question, and [`MIXED_UP`] for an answer to another question.
fn client(seed: u64, own: u64) -> impl Guest {
    let mut dice = Dice(seed);
    let mut question = own << 32;
    let mut step = 0;
    move |last: Outcome, now: u64| {
        step += 1;
        match (step % 5, last) {
            (1, _) => {
                question += 2;
                Action::Write {
                    address: FROM,
                    size: 8,
                    value: question,
                }
            }
            (2, _) => {
                let operation = match dice.draw(8) {
                    0..4 => Operation::PortSendReceive,
                    _ => Operation::PortSendReceiveDonate,
                };
                let until = now + 500 + dice.draw(20_000);
                call(operation, &[1 + dice.draw(2), FROM, 8, TO, 16, until])
            }
            (3, Outcome::Replied(Reply::Hypercall(Ok([8, ..])))) => Action::Read { address: TO, size: 8 },
            (3, Outcome::Replied(Reply::Hypercall(Err(Error::Interrupted)))) => {
                step = 2;
                call(Operation::PortResume, &[0, now + 1_000])
            }
            (4, Outcome::Value(value)) if value == question + 1 => Action::Mark(question),
            (4, Outcome::Value(_)) => Action::Mark(MIXED_UP),
            _ => Action::Compute(1 + dice.draw(700)),
        }
    }
}

/// Returns a server of one port, which answers at once or later, in another order, or never.
fn server(seed: u64, port: u64) -> impl Guest {
    let mut dice = Dice(seed);
    let mut held: Vec<(u64, u64)> = Vec::new();
    let mut step = 0;
    let mut reply = 0;
    move |last: Outcome, now: u64| {
        step += 1;
        match (step % 5, last) {
            (1, _) => {
                let until = now + 1 + dice.draw(5_000);
                call(Operation::PortReceive, &[port, TO, 16, until])
            }
            (2, Outcome::Replied(Reply::Hypercall(Ok([8, _, index, _])))) => {
                reply = index;
                Action::Read { address: TO, size: 8 }
            }
            (3, Outcome::Value(value)) => {
                if reply != 0 && dice.draw(16) != 0 {
                    held.push((reply, value));
                }
                Action::Compute(1 + dice.draw(900))
            }
            (4, _) if !held.is_empty() && (held.len() > 3 || dice.draw(3) != 0) => {
                let at = dice.draw(held.len() as u64) as usize;
                let (index, value) = held.swap_remove(at);
                reply = index;
                Action::Write {
                    address: FROM,
                    size: 8,
                    value: value + 1,
                }
            }
            (0, Outcome::Done) if reply != 0 => {
                let index = std::mem::take(&mut reply);
                call(Operation::PortReply, &[index, FROM, 8])
            }
            _ => {
                reply = 0;
                Action::Compute(1 + dice.draw(300))
            }
        }
    }
}

/// Returns a partition that restarts the others at random.
fn restarter(seed: u64) -> impl Guest {
    let mut dice = Dice(seed);
    let mut step = 0;
    move |_: Outcome, now: u64| {
        step += 1;
        if step % 2 == 0 {
            call(Operation::PartitionRestart, &[10 + dice.draw(4)])
        } else {
            call(Operation::TimerSleep, &[3, now + 30_000 + dice.draw(60_000)])
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, rng_seed: proptest::test_runner::RngSeed::Fixed(11), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_port_is_a_bounded_list(steps in prop::collection::vec(step(), 1..60)) {
        let inside = |step: &Step| !matches!(step, Step::SendFrom { address, .. } if (FROM - 8..TO + 16).contains(address));
        let steps: Vec<Step> = steps.into_iter().filter(inside).collect();
        // Another one that could receive: a call to a port that only the caller serves would be refused.
        let mut bench = bench(1, &[with_ports(task("own", 0, 10)), with_ports(task("other", 0, 5))]);
        let program: Vec<Action> = steps.iter().flat_map(|step| actions(*step)).collect();
        bench.program(0, move |_| marking(program.clone()));
        bench.run(3_000_000);
        let mut model = Model::default();
        let expected: Vec<u64> = steps.iter().flat_map(|step| model.marks(*step)).collect();
        prop_assert_eq!(bench.marks(0), expected);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, rng_seed: proptest::test_runner::RngSeed::Fixed(12), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_answer_is_lost_or_mixed_up(
        seed in any::<u64>(),
        homes in prop::array::uniform4(0..2_u32),
        priorities in prop::array::uniform4(2..30_u32),
        restarts in any::<bool>(),
    ) {
        let part = |index: usize| with_ports(match index {
            0 => vm("client", &[(homes[0], priorities[0])]),
            1 => task("other", homes[1], priorities[1]),
            2 => task("server", homes[2], priorities[2]),
            _ => vm("second", &[(homes[3], priorities[3])]),
        });
        let mut parts: Vec<Part> = (0..4).map(part).collect();
        let restart = (0..4).fold(task("restarter", 0, 31), |part, number| {
            part.cap(10 + number, ObjectKind::Partition, number, Rights::ALL)
        });
        parts.push(restart.cap(3, ObjectKind::Timer, 0, Rights::READ));
        let mut bench = bench(2, &parts);
        bench.seed(seed % 2);
        bench.program(0, move |_| client(seed, 1));
        bench.program(1, move |_| client(seed ^ 5, 2));
        bench.program(2, move |_| server(seed ^ 9, 1));
        bench.program(3, move |_| server(seed ^ 17, 2));
        if restarts {
            bench.program(4, move |_| restarter(seed ^ 33));
        }
        bench.run(2_000_000);
        prop_assert!(bench.look().halted.is_empty());
        let mut answered = 0;
        for client in 0..2 {
            let marks = bench.marks(client);
            prop_assert!(!marks.contains(&MIXED_UP), "client {}: {:?}", client, marks);
            let questions: BTreeSet<u64> = marks.iter().copied().collect();
            // A client that restarts counts its questions anew.
            prop_assert!(restarts || questions.len() == marks.len(), "client {} was answered twice", client);
            answered += marks.len();
        }
        prop_assert!(answered > 20, "{} answers", answered);
        prop_assert!(!bench.logged("class=hypercall"), "{:?}", bench.log());
    }
}
