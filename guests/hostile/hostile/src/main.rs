// SPDX-License-Identifier: Apache-2.0
//! A hostile VM. It does what a broken or malicious kernel could do, as often as it is told. Nothing of this
//! may disturb anybody else. After any answer the VM goes on.
//!
//! Bootargs: `family=NAME` (`all`), `count=N` operations (10000), `seed=N` (1), `cpus=N` (1). The same seed
//! draws the same operations. With more than one CPU, the others do the same family all the time, with
//! numbers of their own and all lines of the interrupt controller pending (`crowd`), until CPU 0 has done its
//! count. Then there is a line `hostile: cpu C did N` for each of them. The families are in
//! [`FAMILIES`]. `all` draws one for each operation.
//!
//! The program ends with `hostile: FAMILY done N, damage D, finished F, interrupted I, undefined U, aborted
//! A, debug B, other O`, the ends of the operations. Operations of `psci` are `other` if they were refused.
//! `damage` counts registers that changed although no executed instruction may change them. It must be 0.
//!
//! The program spares all that would only end itself: PSCI's system functions and `CPU_OFF` of its first CPU,
//! requests to stop its own partition, waits without an end, and the registers that say where its own vectors
//! are. Its health actions should be `inject` or `log`. Without `cpus`, only the families `psci` and `others`
//! use CPUs besides the first.
#![no_std]
#![no_main]
#![forbid(unsafe_code)]

mod code;
mod crowd;
mod others;
mod storm;
mod words;

use bulkhead_guest::random::Random;
use bulkhead_guest::vm::sandbox::{Outcome, Sandbox};
use bulkhead_guest::vm::{Machine, floating_point, pl011};
use bulkhead_guest::{arguments, println};

bulkhead_guest::vm_main!(main);

/// State that the operations share.
pub struct Attack {
    random: Random,
    sandbox: Sandbox,
    damage: u64,
    seen: Seen,
}

/// The ends of operations, counted.
#[derive(Default)]
pub struct Seen {
    finished: u64,
    interrupted: u64,
    undefined: u64,
    aborted: u64,
    debug: u64,
    other: u64,
}

/// A register that changed.
struct Change {
    register: usize,
    before: u64,
    after: u64,
}

impl Attack {
    /// Starts with the numbers of `seed`, on the CPU of `sandbox`.
    fn new(seed: u64, sandbox: Sandbox) -> Self {
        Self {
            random: Random::new(seed),
            sandbox,
            damage: 0,
            seen: Seen::default(),
        }
    }

    /// Does an operation of the family of this number in [`FAMILIES`]; `None`: of any.
    fn operate(&mut self, family: Option<usize>) {
        let number = family.unwrap_or_else(|| self.random.below(FAMILIES.len() as u64) as usize);
        FAMILIES[number].1(self);
    }

    /// Counts a register that changed.
    fn damage(&mut self, code: &[u32], outcome: &Outcome, change: Change) {
        self.damage += 1;
        if self.damage <= MAX_REPORTS {
            let Change {
                register,
                before,
                after,
            } = change;
            println!(
                "hostile: damage: x{register} from {before:#x} to {after:#x} by {code:#010x?}, vector {}, syndrome {:#x}",
                outcome.vector, outcome.syndrome
            );
        }
    }

    /// Counts how code in the sandbox ended.
    fn count(&mut self, outcome: &Outcome) {
        let seen = &mut self.seen;
        let counter = match outcome.class() {
            _ if outcome.finished() => &mut seen.finished,
            _ if outcome.interrupted() => &mut seen.interrupted,
            0 => &mut seen.undefined,
            // Instruction and data aborts, from EL0 and EL1 (Arm ARM DDI 0487 D19.2.37).
            0x20 | 0x21 | 0x24 | 0x25 => &mut seen.aborted,
            0x30..0x36 => &mut seen.debug,
            _ => &mut seen.other,
        };
        *counter += 1;
    }
}

/// One operation.
type Operation = fn(&mut Attack);

/// The families by name.
const FAMILIES: &[(&str, Operation)] = &[
    ("hypercalls", code::hypercall),
    ("mmio", code::device),
    ("registers", code::register),
    ("instructions", code::instructions),
    ("stage2", code::probe),
    ("mmu", code::translation),
    ("debug", code::debug),
    ("fp", code::floating_point),
    ("interrupts", storm::interrupts),
    ("psci", storm::psci),
    ("wait", storm::wait),
    ("others", others::access),
];

/// Reports of damage.
const MAX_REPORTS: u64 = 4;
/// Operations between two looks at the FP registers.
const ROUND: u64 = 64;

fn main(machine: Machine) {
    let bootargs = machine.bootargs();
    let count = arguments::number(bootargs, "count", 10_000);
    let seed = arguments::number(bootargs, "seed", 1);
    let family = arguments::value(bootargs, "family").unwrap_or("all");
    let number = FAMILIES.iter().position(|(name, _)| *name == family);
    if number.is_none() && family != "all" {
        println!("hostile: no family {family}");
        return;
    }
    println!("hostile: {family} start");
    let mut attack = Attack::new(seed, Sandbox::new());
    let cpus = arguments::number(bootargs, "cpus", 1) as usize;
    if cpus > 1 {
        attack.sandbox.keep_lines();
    }
    crowd::start(cpus, number, seed);
    for done in 0..count {
        if done % ROUND == 0 {
            check_floating_point(&mut attack, done, family);
        }
        crowd::beside(done);
        attack.operate(number);
    }
    crowd::stop();
    storm::quieten();
    pl011::reset();
    let Attack { mut damage, seen, .. } = attack;
    damage += crowd::damage();
    for (cpu, operations) in crowd::done() {
        println!("hostile: cpu {cpu} did {operations}");
    }
    println!(
        "hostile: {family} done {count}, damage {damage}, finished {}, interrupted {}, undefined {}, aborted {}, debug {}, other {}",
        seen.finished, seen.interrupted, seen.undefined, seen.aborted, seen.debug, seen.other
    );
}

/// Checks that the FP registers hold what was put there before the last round, unless the round itself
/// changes them.
fn check_floating_point(attack: &mut Attack, done: u64, family: &str) {
    let changes_them = matches!(
        family,
        "all" | "mmio" | "registers" | "instructions" | "stage2" | "fp" | "mmu" | "debug"
    );
    floating_point::enable();
    if done != 0 && !changes_them {
        attack.damage += u64::from(floating_point::differences(done - ROUND));
    }
    floating_point::fill(done);
}
