// SPDX-License-Identifier: Apache-2.0
//! The price a VM pays for each service of the hypervisor, in ticks of the counter.
//!
//! The same file runs on the bare board. On an emulator with one instruction a tick, the difference of the
//! two runs is the number of instructions that the hypervisor adds. Each line is `bench NAME TICKS`: the
//! median of [`REPEATS`] turns. The turns before these warm up and are not counted. A name that ends in
//! `-first` is the very first turn instead.
//!
//! Bootargs: `part=single` (one CPU), `part=pair` (two CPUs), `part=switch` (two vCPUs on one pCPU),
//! `part=decisions` (the policies of the scheduler, without the hypervisor around them), `part=ports`
//! (messages: its first capability is for a port of its own, its second for the port of a server),
//! `part=serve` (the server), `part=turns` and `part=stamps` (switches between partitions, and the other side
//! of them), `part=late` (a timer that preempts another partition), `part=timer` (the timer of a vCPU that
//! waits, for a pCPU with other VMs), `part=rest` and `part=rest-until` (such another VM: it waits without
//! end, or for a time that is far away). Without `part`, as on the bare board, the program measures
//! everything that its CPUs can do.
#![no_std]
#![no_main]
#![forbid(unsafe_code)]

mod arrival;
mod calls;
mod decision;
mod doorbell;
mod pair;
#[path = "../../bench-ports/src/ports.rs"]
mod ports;
mod single;
#[path = "../../bench-ports/src/turns.rs"]
mod turns;

use bulkhead_guest::arguments;
use bulkhead_guest::hypercall::Handle;
use bulkhead_guest::vm::timer::Timer;
use bulkhead_guest::vm::{Machine, exception, gic, is_hypervised};

bulkhead_guest::vm_main!(main);

/// Turns that are counted.
const REPEATS: usize = 9;
/// Turns before them.
const WARM_UP: usize = 3;

fn main(machine: Machine) {
    let line = machine.bootargs();
    match arguments::value(line, "part") {
        Some("rest") => single::rest(),
        Some("rest-until") => single::rest_until_late(),
        _ => {}
    }
    exception::set_interrupt_handler(arrival::on_interrupt);
    gic::init_distributor();
    gic::init_cpu();
    gic::enable(Timer::Virtual.line());
    show("reset", machine.started());
    // A bare board without EL2 does not know our calls.
    let bare = !exception::probe(is_hypervised).unwrap_or(false);
    match arguments::value(line, "part") {
        Some("single") => single::run(bare),
        Some("timer") => single::run_among_others(),
        Some("pair") => pair::run(),
        Some("switch") => pair::run_on_one(),
        Some("decisions") => decision::run(),
        Some("ports") => ports::measure_all(Handle(1), Handle(2)),
        Some("doorbell") => doorbell::run(&machine, true),
        Some("doorbell-near") => doorbell::run(&machine, false),
        Some("doorbell-serve") => doorbell::serve(&machine),
        Some("serve") => ports::serve(Handle(1)),
        Some("turns") => turns::measure(Handle(1)),
        Some("stamps") => turns::serve(Handle(1)),
        Some("late") => single::late(),
        _ => {
            single::run(bare);
            if pair::is_there() {
                pair::run();
            }
        }
    }
    bulkhead_guest::println!("bench done");
}

/// Prepares a walk of the policies: nothing, because an emulator has no caches.
fn prepare() {}

/// Prints a result.
fn show(name: &str, ticks: u64) {
    bulkhead_guest::println!("bench {name} {ticks}");
}

/// Prints the very first turn of `turn`, and the median of several turns.
fn measure(name: &str, mut turn: impl FnMut() -> u64) {
    let first = turn();
    let median = median(WARM_UP - 1, turn);
    bulkhead_guest::println!("bench {name}-first {first}");
    show(name, median);
}

/// Returns the median of several turns, after so many that are not counted.
fn median(before: usize, mut turn: impl FnMut() -> u64) -> u64 {
    for _ in 0..before {
        turn();
    }
    let mut results = [0; REPEATS];
    for result in &mut results {
        *result = turn();
    }
    results.sort_unstable();
    results[REPEATS / 2]
}

/// Returns the ticks that `action` takes.
#[inline(always)]
fn ticks_of(action: impl FnOnce()) -> u64 {
    let start = Timer::Virtual.now();
    action();
    Timer::Virtual.now() - start
}
