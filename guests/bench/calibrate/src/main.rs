// SPDX-License-Identifier: Apache-2.0
//! The costs of the hypervisor on the machine that runs this program, in ticks of the machine's counter.
//!
//! The guest `bench` counts instructions in an emulator, where each turn takes the same time. A machine has
//! caches, so this program counts the worst of many turns. Before every second turn it walks through more
//! memory than the caches have, and lets the CPU forget its instructions: the hypervisor's code and data are
//! cold then.
//!
//! Bootargs: `runs=N` turns of each measurement; `class=WORD` and `board=WORD`, which the program repeats, so
//! that a log says where it is from. Each other line is `calibrate NAME WORST MEDIAN LEAST`.
#![no_std]
#![no_main]
#![forbid(unsafe_code)]

#[path = "../../bench/src/arrival.rs"]
mod arrival;
mod cold;
#[path = "../../bench/src/decision.rs"]
mod decision;
#[allow(dead_code, reason = "the guest `bench` uses more of it")]
#[path = "../../bench/src/pair.rs"]
mod pair;

use bulkhead_guest::vm::timer::{Timer, frequency};
use bulkhead_guest::vm::{Machine, exception, gic};
use bulkhead_guest::{arguments, println};
use core::sync::atomic::{AtomicUsize, Ordering};

bulkhead_guest::vm_main!(main);

/// Most turns of a measurement.
const MOST_RUNS: usize = 10_000;
/// Turns if the command line does not say how many.
const USUAL_RUNS: usize = 1000;
/// From arming to the deadline, in parts of a second: more than it takes to be ready.
const AHEAD: u64 = 10_000;
/// The part of a second after which all output has left the board.
const SILENCE: u64 = 20;

/// Turns of a measurement.
static RUNS: AtomicUsize = AtomicUsize::new(USUAL_RUNS);
/// The ticks of each turn.
static TICKS: spin::Mutex<[u32; MOST_RUNS]> = spin::Mutex::new([0; MOST_RUNS]);

fn main(machine: Machine) {
    let runs = arguments::value(machine.bootargs(), "runs").and_then(|runs| runs.parse().ok());
    RUNS.store(runs.unwrap_or(USUAL_RUNS).clamp(2, MOST_RUNS), Ordering::Relaxed);
    exception::set_interrupt_handler(arrival::on_interrupt);
    gic::init_distributor();
    gic::init_cpu();
    gic::enable(Timer::Virtual.line());
    for key in ["class", "board"] {
        let word = arguments::value(machine.bootargs(), key).unwrap_or("unknown");
        println!("calibrate {key} {word}");
    }
    println!("calibrate counter-hz {} 0 0", frequency());
    println!("calibrate runs {} 0 0", RUNS.load(Ordering::Relaxed));
    println!("calibrate cold-bytes {} 0 0", cold::BYTES);
    measure("interrupt", || timer(false));
    measure("event", || timer(true));
    pair::run_on_one();
    decision::run();
    println!("calibrate done 0 0 0");
}

/// Prepares a walk of the policies, of which the longest call counts.
fn prepare() {
    cold::forget();
}

/// Shows a figure of which each turn is the same.
fn show(name: &str, ticks: u64) {
    println!("calibrate {name} {ticks} {ticks} {ticks}");
}

/// Prints the worst turn, the median, and the least.
fn measure(name: &str, mut turn: impl FnMut() -> u64) {
    be_silent();
    let mut all = TICKS.lock();
    let ticks = &mut all[..RUNS.load(Ordering::Relaxed)];
    for (number, ticks) in ticks.iter_mut().enumerate() {
        if number % 2 == 0 {
            cold::forget();
        }
        *ticks = u32::try_from(turn()).unwrap_or(u32::MAX);
    }
    ticks.sort_unstable();
    let (least, median, worst) = (ticks[0], ticks[ticks.len() / 2], ticks[ticks.len() - 1]);
    println!("calibrate {name} {worst} {median} {least}");
}

/// Waits until the hypervisor has sent all output, which it does in the time of the vCPU that runs.
fn be_silent() {
    let until = Timer::Virtual.now() + frequency() / SILENCE;
    while Timer::Virtual.now() < until {
        core::hint::spin_loop();
    }
}

/// Returns how late the interrupt of the timer comes. `idle`: the pCPU is with another partition meanwhile.
fn timer(idle: bool) -> u64 {
    arrival::forget();
    let deadline = Timer::Virtual.now() + frequency() / AHEAD;
    Timer::Virtual.arm(deadline);
    arrival::wait(idle).saturating_sub(deadline)
}
