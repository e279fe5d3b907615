// SPDX-License-Identifier: Apache-2.0
//! A hostile VM that makes its virtual interrupt controller work as hard as it can, from all of its CPUs at
//! once.
//!
//! All lines of the controller, of every CPU, are enabled, pending, and kept out by the priority mask. Then
//! each CPU changes them, word by word, in one way after another; a way is a phase ([`attack::PHASES`]). CPU
//! 0 says which phase it is and how long it lasts, and the others are in the same one. Interrupts stay masked
//! in all CPUs, so that nothing gives the hypervisor a rest. GICv3 and GICv2: what the CPU has decides.
//!
//! Bootargs: `phase=NAME` (`all`), `count=N` operations of CPU 0 in each phase (200), `laps=N` rounds of all
//! phases after which it switches itself off (0: never), `seed=N` (1). The same seed does the same. Prints
//! `gic-flood: LINES lines, CPUS CPUs`, then `gic-flood: phase NAME` at the beginning of each phase and
//! `gic-flood: lap N, OPERATIONS operations` at the end of each round, of all CPUs. The program checks
//! nothing: the tests look at its neighbours.
#![no_std]
#![no_main]
#![forbid(unsafe_code)]

mod attack;
mod lines;

use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

use attack::{Cpu, Outcome, PHASES};
use bulkhead_guest::random::Random;
use bulkhead_guest::vm::psci::{self, Conduit, code, function};
use bulkhead_guest::vm::timer::Timer;
use bulkhead_guest::vm::{Machine, cpu, gic, smp};
use bulkhead_guest::{arguments, println};

bulkhead_guest::vm_main!(main);

/// Operations after which a CPU makes all lines pending again.
const REFILL: u64 = 32;
/// Ticks of a timer that keeps its interrupt to itself. An emulator that counts instructions runs one CPU at
/// a time, until any timer's deadline. With this timer, turns are about as long as an operation, and the CPUs
/// of others do not wait for the CPUs of this guest.
const TURN: u32 = 500;

/// The phase of all CPUs.
static PHASE: AtomicUsize = AtomicUsize::new(0);
/// Operations of each CPU. Each writes its own.
static OPERATIONS: [AtomicU64; smp::MAX_CPUS] = [const { AtomicU64::new(0) }; smp::MAX_CPUS];
/// The number that the random numbers of the CPUs begin with.
static SEED: AtomicU64 = AtomicU64::new(0);

/// Returns the number of operations of the calling CPU so far, one more each time.
fn count_operation(index: usize) -> u64 {
    let Some(operations) = OPERATIONS.get(index) else {
        return 0;
    };
    let number = operations.load(Relaxed);
    operations.store(number + 1, Relaxed);
    number
}

/// Does one operation of the current phase. False: the CPU is to be switched off.
fn operate(own: &mut Cpu) -> bool {
    let number = count_operation(own.index);
    if number.is_multiple_of(REFILL) {
        lines::fill(own.lines);
    }
    Timer::Physical.count_down(TURN);
    let (_, operation) = PHASES[PHASE.load(Relaxed) % PHASES.len()];
    operation(own) == Outcome::Stay
}

/// Does what the other CPUs do until a phase switches them off. Their numbers go on where they were.
pub fn attack_for_ever(cpus: u64) {
    let index = cpu::index();
    let done = OPERATIONS
        .get(index)
        .map_or(0, |operations| operations.load(Relaxed));
    let seed = SEED.load(Relaxed) ^ (index as u64) << 32 ^ done << 40;
    let mut own = Cpu::new(Random::new(seed), index, cpus as usize);
    gic::init_cpu();
    lines::prepare(own.lines);
    while operate(&mut own) {}
}

/// Runs one phase, as CPU 0.
fn run_phase(own: &mut Cpu, number: usize, count: u64) {
    println!("gic-flood: phase {}", PHASES[number].0);
    PHASE.store(number, Relaxed);
    lines::prepare(own.lines);
    for _ in 0..count {
        operate(own);
    }
}

/// Tells whether the VM has this CPU. Of those that it does not have PSCI says so.
fn exists(index: usize) -> bool {
    psci::code_of(Conduit::Hvc, function::AFFINITY_INFO, [index as u64, 0, 0]) >= code::SUCCESS
}

fn main(machine: Machine) {
    let bootargs = machine.bootargs();
    let count = arguments::number(bootargs, "count", 200);
    let laps = arguments::number(bootargs, "laps", 0);
    let wanted = arguments::value(bootargs, "phase").unwrap_or("all");
    SEED.store(arguments::number(bootargs, "seed", 1), Relaxed);
    let only = PHASES.iter().position(|(name, _)| *name == wanted);
    if only.is_none() && wanted != "all" {
        println!("gic-flood: no phase {wanted}");
        return;
    }
    PHASE.store(only.unwrap_or(0), Relaxed);
    gic::init_distributor();
    gic::init_cpu();
    let cpus = 1 + (1..smp::MAX_CPUS).take_while(|index| exists(*index)).count();
    for index in 1..cpus {
        smp::start(index, attack_for_ever, cpus as u64);
    }
    let mut own = Cpu::new(Random::new(SEED.load(Relaxed)), 0, cpus);
    println!("gic-flood: {} lines, {cpus} CPUs", own.lines);
    let mut lap = 0;
    while laps == 0 || lap < laps {
        for number in 0..PHASES.len() {
            if only.is_none_or(|only| only == number) {
                run_phase(&mut own, number, count);
            }
        }
        lap += 1;
        let operations: u64 = OPERATIONS.iter().map(|operations| operations.load(Relaxed)).sum();
        println!("gic-flood: lap {lap}, {operations} operations");
    }
}
