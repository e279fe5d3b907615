// SPDX-License-Identifier: Apache-2.0
//! The price a VM of class `x86_64` pays for each service of the hypervisor, in ticks of the counter.
//!
//! The same file runs on the bare PC. On an emulator with one instruction a tick, the difference of the two
//! runs is the number of instructions that the hypervisor adds. Each line is `bench NAME TICKS`: the median
//! of [`REPEATS`] turns. The turns before these warm up and are not counted.
//!
//! Bootargs: `part=single` (one CPU), `part=pair` (two CPUs), `part=switch` (two vCPUs on one pCPU). Without
//! `part`, as on the bare PC, the program measures what its CPUs can do.
#![no_std]
#![no_main]
#![forbid(unsafe_code)]

mod arrival;
mod pair;
mod single;

use bulkhead_guest::pc::{Machine, apic, cpu, exception};
use bulkhead_guest::{arguments, println};

bulkhead_guest::pc_main!(main);

/// Turns that are counted, and turns before them. The program `x86-bench-first` has the very first turn.
const REPEATS: usize = if cfg!(feature = "first") { 1 } else { 9 };
const WARM_UP: usize = if cfg!(feature = "first") { 0 } else { 3 };
/// The hypervisor's signature in leaf 0x4000_0000 of CPUID: its first word, "KVMK".
const SIGNATURE: u32 = 0x4B4D_564B;

fn main(machine: Machine) {
    exception::install(arrival::on_interrupt);
    apic::enable();
    show("reset", machine.started());
    let [_, word, ..] = cpu::cpuid(0x4000_0000, 0);
    let is_bare = word != SIGNATURE;
    match arguments::value(machine.bootargs(), "part") {
        Some("single") => single::run(is_bare),
        Some("pair") => pair::run(),
        Some("switch") => pair::run_on_one(),
        _ => {
            single::run(is_bare);
            pair::run();
        }
    }
    println!("bench done");
}

/// Prints a result.
fn show(name: &str, ticks: u64) {
    println!("bench {name} {ticks}");
}

/// Takes the median of several turns of `turn` and prints it.
fn measure(name: &str, mut turn: impl FnMut() -> u64) {
    let mut results = [0; REPEATS];
    let mut before = WARM_UP;
    while before > 0 {
        turn();
        before -= 1;
    }
    for result in &mut results {
        *result = turn();
    }
    results.sort_unstable();
    show(name, results[REPEATS / 2]);
}

/// Returns the ticks that `action` takes.
#[inline(always)]
fn ticks_of(action: impl FnOnce()) -> u64 {
    let start = cpu::counter();
    action();
    cpu::counter() - start
}
