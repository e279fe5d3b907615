// SPDX-License-Identifier: Apache-2.0
//! Two supervisors and a partition with two vCPUs change that partition's life cycle at random, at the same
//! time.
//!
//! The mock is strict: it panics if a vCPU is reset that was not detached, or if shared state is reset while
//! a vCPU is attached. Beyond that, each life must find in its memory the content that its start word
//! promises. Lives are counted without a gap, the critical partition beside them misses nothing, and the last
//! request is honoured.

use crate::support::{Bench, NOWHERE, Part, RAM, call, task, vm};
use bulkhead_abi::status::{StartOptions, StartWord};
use bulkhead_abi::{HealthClass, ObjectKind, Operation, Rights, StartMode};
use bulkhead_arch_api::{Reply, ResetKind};
use bulkhead_arch_sim::{Action, Guest, Outcome};
use bulkhead_image::layout::HealthAction;
use proptest::prelude::*;
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;

/// A word of the partition's memory that no payload covers.
const WORD: u64 = RAM + 0x2000;
const PART: u64 = 1;
const CLOCK: u64 = 2;
const PERIOD: u64 = 5_000;
/// Nanoseconds of a tick. With so slow a counter the space between two orders is of the size of the pauses
/// below.
const TICK_NS: u64 = 100;
/// The time until which everybody acts at random. Then one supervisor makes the last request.
const QUIET: u64 = 300_000;
const END: u64 = 400_000;

/// The possible contents of the partition's memory, and the start words of its lives.
#[derive(Default)]
struct Story {
    possible: BTreeSet<u64>,
    lives: Vec<(u64, StartWord)>,
    wrong: Vec<String>,
}

type Shared = Rc<RefCell<Story>>;

/// Lives one life of vCPU 0: looks around, remembers, and goes through its part of `deeds`.
fn live(story: Shared, deeds: Rc<Vec<Action>>) -> impl Guest {
    let mut step = 0_usize;
    let mut word = StartWord::default();
    let mut deed = 0;
    move |last, now| {
        step += 1;
        match (step, last) {
            (1, _) => call(Operation::PartitionStatus, &[0]),
            (2, Outcome::Replied(Reply::Hypercall(Ok([_, start, ..])))) => {
                word = StartWord::decode(start).unwrap();
                let mut story = story.borrow_mut();
                let before = story.lives.last().map_or(0, |(_, before)| before.starts);
                if word.starts != before + 1 {
                    // A cold life in between was ended before it got here.
                    story.possible.insert(0);
                }
                if word.mode == StartMode::Cold {
                    story.possible = [0].into();
                }
                story.lives.push((now, word));
                Action::Read {
                    address: RAM,
                    size: 1,
                }
            }
            (3, Outcome::Value(first)) => {
                if first != u64::from(word.alternative) + 1 {
                    story
                        .borrow_mut()
                        .wrong
                        .push(format!("payload {first}: {word:?}"));
                }
                Action::Read {
                    address: WORD,
                    size: 8,
                }
            }
            (4, Outcome::Value(found)) => {
                let mut story = story.borrow_mut();
                let right = match word.mode {
                    StartMode::Cold => found == 0,
                    StartMode::Warm => story.possible.contains(&found),
                };
                if !right {
                    let possible = story.possible.clone();
                    story
                        .wrong
                        .push(format!("found {found} of {possible:?}: {word:?}"));
                }
                // The store may still be lost with this life.
                story.possible = [found, word.starts.into()].into();
                Action::Write {
                    address: WORD,
                    size: 8,
                    value: word.starts.into(),
                }
            }
            (5, _) => {
                story.borrow_mut().possible = [word.starts.into()].into();
                deed = word.starts as usize * 7;
                Action::CpuOn(1, RAM, 0)
            }
            _ if now > QUIET => Action::Idle,
            _ => {
                deed += 1;
                deeds[deed % deeds.len()]
            }
        }
    }
}

/// Sleeps and asks, in turns. The first supervisor makes the last request.
fn supervise(requests: Vec<(u64, Action)>, last_word: bool) -> impl Guest {
    let mut step = 0;
    let mut asleep = 0;
    move |_: Outcome, now: u64| {
        step += 1;
        if now > QUIET {
            let restart = StartOptions {
                mode: StartMode::Cold,
                alternative: Some(0),
                is_health: false,
            };
            return if last_word && std::mem::take(&mut asleep) != 0 {
                call(Operation::PartitionRestart, &[PART, restart.encode()])
            } else {
                Action::Idle
            };
        }
        let (pause, request) = requests[step / 2 % requests.len()];
        if step % 2 == 0 {
            request
        } else {
            asleep = now + pause;
            call(Operation::TimerSleep, &[CLOCK, asleep * TICK_NS])
        }
    }
}

fn options() -> impl Strategy<Value = u64> {
    let mode = prop_oneof![Just(StartMode::Cold), Just(StartMode::Warm)];
    let word = (mode, prop::option::of(0..4_u8)).prop_map(|(mode, alternative)| {
        StartOptions {
            mode,
            alternative,
            is_health: false,
        }
        .encode()
    });
    prop_oneof![9 => word, 1 => any::<u64>()]
}

fn requests() -> impl Strategy<Value = Vec<(u64, Action)>> {
    let request = prop_oneof![
        3 => options().prop_map(|options| call(Operation::PartitionRestart, &[PART, options])),
        3 => options().prop_map(|options| call(Operation::PartitionStart, &[PART, options])),
        3 => Just(call(Operation::PartitionStop, &[PART])),
    ];
    prop::collection::vec((0..12_000_u64, request), 1..12)
}

fn deeds() -> impl Strategy<Value = Rc<Vec<Action>>> {
    let deed = prop_oneof![
        6 => (0..9_000_u64).prop_map(Action::Compute),
        1 => prop_oneof![Just(ResetKind::Cold), Just(ResetKind::Warm), Just(ResetKind::Off)].prop_map(Action::Reset),
        1 => Just(Action::Read { address: NOWHERE, size: 4 }),
        1 => Just(Action::CpuOff),
        1 => Just(Action::CpuOn(1, RAM, 0)),
        1 => Just(Action::Hypercall(0x7FFF, [0; 6])),
        1 => options().prop_map(|options| call(Operation::PartitionRestart, &[0, options])),
    ];
    prop::collection::vec(deed, 1..20).prop_map(Rc::new)
}

fn action() -> impl Strategy<Value = HealthAction> {
    prop_oneof![
        Just(HealthAction::Stop),
        Just(HealthAction::Restart),
        Just(HealthAction::RestartWarm)
    ]
}

fn parts(memory: HealthAction, hypercall: HealthAction) -> Vec<Part> {
    let supervisor = |name, pcpu| {
        task(name, pcpu, 20)
            .cap(PART as u32, ObjectKind::Partition, 1, Rights::ALL)
            .cap(CLOCK as u32, ObjectKind::Timer, 0, Rights::READ)
    };
    let part = vm("part", &[(0, 5), (1, 5)])
        .action(HealthClass::Memory, memory)
        .action(HealthClass::Hypercall, hypercall)
        .with(|part| {
            part.payload = vec![1; 100];
            part.alternatives = vec![vec![2; 40], vec![3; 5000]];
        });
    vec![
        vm("control", &[(0, 30)]),
        part,
        supervisor("first", 0),
        supervisor("second", 1),
    ]
}

fn control() -> impl Guest {
    let mut step = 0;
    move |_: Outcome, now: u64| {
        step += 1;
        match step % 4 {
            1 => Action::SetTimer(Some((now / PERIOD + 1) * PERIOD)),
            2 => Action::Idle,
            3 => Action::Acknowledge,
            _ => Action::Mark(now / PERIOD),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, rng_seed: proptest::test_runner::RngSeed::Fixed(7), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_life_cycle_under_fire_stays_sound(
        deeds in deeds(),
        first in requests(),
        second in requests(),
        memory in action(),
        hypercall in action(),
        seed in 0..2_u64,
    ) {
        let mut bench = Bench::new(2, &parts(memory, hypercall));
        bench.seed(seed);
        bench.world().hertz = 1_000_000_000 / TICK_NS;
        let story = Shared::default();
        bench.program(0, |_| control());
        let (told, all) = (Rc::clone(&story), Rc::clone(&deeds));
        bench.program(1, move |_| live(Rc::clone(&told), Rc::clone(&all)));
        bench.program(2, move |_| {
            let deeds = Rc::clone(&deeds);
            let mut step = 0;
            move |_: Outcome, now: u64| {
                step += 1;
                if now > QUIET { Action::Idle } else { deeds[step % deeds.len()] }
            }
        });
        bench.program(3, move |_| supervise(first.clone(), true));
        bench.program(4, move |_| supervise(second.clone(), false));
        bench.run(END);
        prop_assert!(bench.look().halted.is_empty() && !bench.look().powered_off);
        let marks = bench.marks(0);
        prop_assert!(marks.windows(2).all(|pair| pair[1] == pair[0] + 1), "missed a release");
        prop_assert!(marks.len() as u64 + 2 >= END / PERIOD);
        let story = story.borrow();
        prop_assert!(story.wrong.is_empty(), "{:?}", story.wrong);
        // A life that is ended before it has asked leaves a gap, but none is counted twice.
        prop_assert!(story.lives.windows(2).all(|pair| pair[0].1.starts < pair[1].1.starts));
        let (time, last) = *story.lives.last().unwrap();
        prop_assert!(time > QUIET && last.alternative == 0 && last.mode == StartMode::Cold, "{time} {last:?}");
    }
}
