// SPDX-License-Identifier: Apache-2.0
//! Locks against a model. One vCPU makes random calls, and a list of the locks that it owns says each answer.
//! And random clients on two pCPUs, which give up, restart and take a second lock: no two own a lock at a
//! time, a lock is broken only after an owner that ended, and no vCPU is left out for good.

use crate::support::{Bench, Part, call, error_mark, marking, tables, task, vm};
use bulkhead_abi::{Error, ObjectKind, Operation, Rights};
use bulkhead_arch_api::{Reply, VcpuId};
use bulkhead_arch_sim::{Action, Guest, Outcome};
use bulkhead_image::layout::{LockRecord, Name};
use proptest::prelude::*;
use std::collections::BTreeSet;

const LOCKS: u64 = 3;
const CLOCK: u64 = 9;
/// The ticks by which the clocks of two pCPUs can differ in the mock.
const SKEW: u64 = 60;

fn bench(pcpus: u32, parts: &[Part]) -> Bench {
    let mut image = tables(pcpus, parts);
    for name in ["a", "b", "c"] {
        image.locks.push(LockRecord {
            name: Name::new(name).unwrap(),
        });
    }
    Bench::with_image(pcpus, image.build().unwrap())
}

fn with_locks(part: Part) -> Part {
    let part = part.cap(CLOCK as u32, ObjectKind::Timer, 0, Rights::READ);
    (0..LOCKS as u32).fold(part, |part, lock| {
        part.cap(lock + 1, ObjectKind::Lock, lock, Rights::WRITE)
    })
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Take(u64),
    TryTake(u64),
    Release(u64),
}

fn step() -> impl Strategy<Value = Step> {
    let lock = 1..=LOCKS;
    prop_oneof![
        lock.clone().prop_map(Step::Take),
        lock.clone().prop_map(Step::TryTake),
        lock.prop_map(Step::Release),
    ]
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

const ENTERED: u64 = 1 << 8;
const LEAVES: u64 = 2 << 8;
const BROKEN: u64 = 1 << 16;

/// Returns a client that takes locks at random, one inside the other at times, and marks when it has one and
/// when it is about to release one.
fn client(seed: u64) -> impl Guest {
    let mut dice = Dice(seed);
    let mut owned: Vec<u64> = Vec::new();
    let mut leaving = None;
    let mut wanted = None;
    move |last: Outcome, now: u64| {
        if let Some(lock) = wanted.take() {
            match last {
                Outcome::Replied(Reply::Hypercall(Ok([broken, ..]))) => {
                    owned.push(lock);
                    return Action::Mark(ENTERED | lock | if broken != 0 { BROKEN } else { 0 });
                }
                _ => return Action::Acknowledge,
            }
        }
        if let Some(lock) = leaving.take() {
            return call(Operation::LockRelease, &[lock]);
        }
        match dice.draw(8) {
            0 | 1 if owned.len() < 2 => {
                let lock = 1 + dice.draw(LOCKS);
                if owned.contains(&lock) {
                    return Action::Compute(1 + dice.draw(100));
                }
                wanted = Some(lock);
                if dice.draw(4) == 0 {
                    call(Operation::LockTryTake, &[lock])
                } else {
                    call(Operation::LockTake, &[lock, now + 100 + dice.draw(30_000)])
                }
            }
            2 | 3 if !owned.is_empty() => {
                let lock = owned.swap_remove(dice.draw(owned.len() as u64) as usize);
                leaving = Some(lock);
                Action::Mark(LEAVES | lock)
            }
            4 => call(Operation::TimerSleep, &[CLOCK, now + dice.draw(3_000)]),
            _ => Action::Compute(1 + dice.draw(900)),
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
            call(Operation::TimerSleep, &[CLOCK, now + 20_000 + dice.draw(60_000)])
        }
    }
}

/// A time in which a vCPU owned a lock, as far as the marks show.
#[derive(Clone, Copy, Debug)]
struct Section {
    vcpu: u8,
    from: u64,
    to: u64,
}

/// Checks the sections of all clients for a lock. Returns their number. A section without an end ends with
/// the next one that finds the lock broken.
fn check_sections(bench: &Bench, lock: u64, restarts: bool) -> Result<usize, TestCaseError> {
    let world = bench.look();
    let mut marks: Vec<(u64, u8, u64)> = (0..4_u8)
        .flat_map(|vcpu| {
            world
                .marks(VcpuId(vcpu))
                .map(move |(time, mark)| (time, vcpu, mark))
        })
        .filter(|(_, _, mark)| mark & 0xFF == lock && mark & (ENTERED | LEAVES) != 0)
        .collect();
    marks.sort_unstable();
    let mut sections = Vec::new();
    for (at, (from, vcpu, mark)) in marks.iter().enumerate() {
        if mark & LEAVES != 0 {
            continue;
        }
        prop_assert!(
            restarts || mark & BROKEN == 0,
            "lock {} is broken without a restart",
            lock
        );
        let is_end = |(time, other, mark): &&(u64, u8, u64)| {
            other == vcpu && mark & LEAVES != 0 || mark & BROKEN != 0 && time > from
        };
        let end = marks[at + 1..].iter().find(is_end);
        sections.push(Section {
            vcpu: *vcpu,
            from: *from,
            to: end.map_or(u64::MAX, |(time, ..)| *time),
        });
    }
    for (at, one) in sections.iter().enumerate() {
        for other in &sections[at + 1..] {
            let both = one.to.min(other.to).saturating_sub(one.from.max(other.from));
            prop_assert!(
                both <= SKEW,
                "lock {}: vCPU {} {:?}, vCPU {} {:?}",
                lock,
                one.vcpu,
                one,
                other.vcpu,
                other
            );
        }
    }
    Ok(sections.len())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, rng_seed: proptest::test_runner::RngSeed::Fixed(21), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_vcpu_owns_what_it_took_and_did_not_release(steps in prop::collection::vec(step(), 1..60)) {
        let mut bench = bench(1, &[with_locks(task("own", 0, 10))]);
        let program: Vec<Action> = steps.iter().map(|step| match step {
            Step::Take(lock) => call(Operation::LockTake, &[*lock, 1]),
            Step::TryTake(lock) => call(Operation::LockTryTake, &[*lock]),
            Step::Release(lock) => call(Operation::LockRelease, &[*lock]),
        }).collect();
        bench.program(0, move |_| marking(program.clone()));
        bench.run(1_000_000);
        let mut owned = BTreeSet::new();
        let expected: Vec<u64> = steps.iter().flat_map(|step| {
            let is_right = match step {
                Step::Take(lock) | Step::TryTake(lock) => owned.insert(*lock),
                Step::Release(lock) => owned.remove(lock),
            };
            if is_right { vec![0; 4] } else { vec![error_mark(Error::WrongState)] }
        }).collect();
        prop_assert_eq!(bench.marks(0), expected);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, rng_seed: proptest::test_runner::RngSeed::Fixed(22), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_two_own_a_lock(
        seed in any::<u64>(),
        homes in prop::array::uniform4(0..2_u32),
        priorities in prop::array::uniform4(2..30_u32),
        restarts in any::<bool>(),
    ) {
        let part = |index: usize| {
            with_locks(if index.is_multiple_of(2) {
                task(["first", "", "third", ""][index], homes[index], priorities[index])
            } else {
                vm(["", "second", "", "fourth"][index], &[(homes[index], priorities[index])])
            })
        };
        let mut parts: Vec<Part> = (0..4).map(part).collect();
        let restart = (0..4).fold(task("restarter", 0, 31), |part, number| {
            part.cap(10 + number, ObjectKind::Partition, number, Rights::ALL)
        });
        parts.push(restart.cap(CLOCK as u32, ObjectKind::Timer, 0, Rights::READ));
        let mut bench = bench(2, &parts);
        bench.seed(seed % 2);
        for vcpu in 0..4_u8 {
            bench.program(vcpu, move |_| client(seed ^ u64::from(vcpu) << 40 ^ u64::from(vcpu) << 3));
        }
        if restarts {
            bench.program(4, move |_| restarter(seed ^ 33));
        }
        bench.run(1_500_000);
        prop_assert!(bench.look().halted.is_empty());
        let mut entered = 0;
        for lock in 1..=LOCKS {
            entered += check_sections(&bench, lock, restarts)?;
        }
        prop_assert!(entered > 40, "{} sections", entered);
        prop_assert!(!bench.logged("class=hypercall"), "{:?}", bench.log());
    }
}
