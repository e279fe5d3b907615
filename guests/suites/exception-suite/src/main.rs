// SPDX-License-Identifier: Apache-2.0
//! Every exception that a guest can cause, at EL1 and at EL0. The tests check the vector, the syndrome, the
//! address, and that nothing else changed. Exceptions that the architecture gives to EL1 must come to the
//! guest's own vector as on a bare board. Those that only the hypervisor can see must come as the external
//! abort that the health action `inject` promises.
//!
//! - [`instructions`]: undefined instructions, calls, breakpoints, FP that is switched off, illegal returns.
//! - [`memory`]: forms of loads and stores on registers that are emulated, holes, walks and fetches that go
//!   wrong.
//! - [`decoded`]: loads and stores on emulated registers with write-back, and pairs.
//! - [`debug`]: every breakpoint and watchpoint register, single steps over emulated instructions, two CPUs
//!   at a time.
//! - [`narrow`]: 32-bit programs under this 64-bit kernel.
//!
//! The code under test runs in the library's sandbox. The tests pass on the bare board too, where [`memory`]
//! has less to do.
#![no_std]
#![no_main]
#![forbid(unsafe_code)]

mod debug;
mod decoded;
mod instructions;
mod memory;
mod narrow;

use bulkhead_guest::println;
use bulkhead_guest::report::Report;
use bulkhead_guest::vm::sandbox::{CODE, Outcome, Sandbox, Start};
use bulkhead_guest::vm::{Machine, timer};

bulkhead_guest::vm_main!(main);

/// Time of one run, in microseconds.
const BUDGET: u64 = 100;
/// The level at which the code runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Level {
    /// A kernel.
    El1,
    /// A program.
    El0,
}

/// The end of a run, as far as it is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// At its end.
    Finished,
    /// With an exception: class, the masked rest of the syndrome, index of the word.
    Exception { class: u64, rest: u64, word: u64 },
}

/// One piece of code and how it must end.
#[derive(Clone, Copy)]
struct Case {
    name: &'static str,
    words: &'static [u32],
    /// x1, x2, x3 at its start.
    registers: [u64; 3],
    /// Class at EL1 (for EL0 see [`class_at`]) and the word; `None`: it comes to its end.
    class: Option<(u64, u64)>,
    /// The masked rest of the syndrome: mask and value.
    rest: (u64, u64),
}

/// Registers x4..x30 of every run.
const MARK: u64 = 0x5EED_0000;

fn main(_: Machine) {
    let mut report = Report::new();
    let mut sandbox = Sandbox::new();
    instructions::run(&mut report, &mut sandbox);
    memory::run(&mut report, &mut sandbox);
    decoded::run(&mut report, &mut sandbox);
    debug::run(&mut report, &mut sandbox);
    narrow::run(&mut report, &mut sandbox);
    report.finish();
}

/// Returns the start of a run.
fn start(level: Level, registers: [u64; 3]) -> Start {
    let mut general = [0; 31];
    for (register, number) in general.iter_mut().zip(MARK..) {
        *register = number;
    }
    general[1..4].copy_from_slice(&registers);
    Start {
        general,
        program: level == Level::El0,
        debug: false,
        step: false,
        budget: timer::ticks(BUDGET),
    }
}

/// Returns the class of an exception from this level. The class of an abort or debug exception "from a lower
/// level" is one below "from the same level" (Arm DDI 0487 D19.2.37). The others have one class.
fn class_at(level: Level, class: u64) -> u64 {
    let paired = matches!(class, 0x21 | 0x25 | 0x31 | 0x33 | 0x35);
    class - u64::from(paired && level == Level::El0)
}

fn end_of(outcome: &Outcome, mask: u64) -> End {
    if outcome.finished() {
        return End::Finished;
    }
    End::Exception {
        class: outcome.class(),
        rest: outcome.syndrome & 0x1FF_FFFF & mask,
        word: outcome.word(),
    }
}

/// Returns the index of the vector of a synchronous exception from this level.
fn vector_of(level: Level) -> u64 {
    match level {
        Level::El1 => 4,
        Level::El0 => 8,
    }
}

/// Runs `case` at `level` and checks its end. If the code did not come to its end, no register may have
/// changed.
fn check(report: &mut Report, sandbox: &mut Sandbox, level: Level, case: &Case) -> Outcome {
    let start = start(level, case.registers);
    let outcome = sandbox.run(case.words, &start);
    println!("{} at {level:?}:", case.name);
    let (mask, rest) = case.rest;
    let want = case.class.map_or(End::Finished, |(class, word)| End::Exception {
        class: class_at(level, class),
        rest,
        word,
    });
    report.equal("ends as it must", end_of(&outcome, mask), want);
    if want != End::Finished {
        report.equal("its vector", outcome.vector, vector_of(level));
        report.check("no register changed", outcome.general == start.general);
    }
    outcome
}

/// Returns the address of a word of the sandbox's code.
const fn word_address(index: u64) -> u64 {
    CODE + 4 * index
}
