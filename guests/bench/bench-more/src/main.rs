// SPDX-License-Identifier: Apache-2.0
//! A VM that measures more than `bench` does. The same file runs on the bare board.
//!
//! Bootargs: `part=calls` (messages to the server of its first capability), `part=late` (the spread of a
//! timer's latency that preempts another partition), `part=served` (registers of a virtio device that another
//! partition serves). Without `part`, as on the bare board, it is the spread while the program itself runs.
//!
//! This is a program besides `bench`: the figures of that one depend on its own instructions.
#![no_std]
#![no_main]
#![forbid(unsafe_code)]

#[path = "../../bench/src/arrival.rs"]
#[expect(dead_code, reason = "only `bench` sends interrupts by software")]
mod arrival;
#[path = "../../bench-more-ports/src/calls.rs"]
mod calls;
#[path = "../../bench-more-ports/src/spread.rs"]
mod spread;

use bulkhead_guest::hypercall::Handle;
use bulkhead_guest::vm::timer::Timer;
use bulkhead_guest::vm::{Machine, bus, exception, gic};
use bulkhead_guest::{arguments, println};
use spread::{ARRIVALS, PHASE};

bulkhead_guest::vm_main!(main);

/// From arming to the first deadline: more than it takes to be ready.
const AHEAD: u64 = 5000;
/// Ticks in which another partition is loaded; more than it takes.
const LOADED: u64 = 2_000_000;

fn main(machine: Machine) {
    exception::set_interrupt_handler(arrival::on_interrupt);
    gic::init_distributor();
    gic::init_cpu();
    gic::enable(Timer::Virtual.line());
    match arguments::value(machine.bootargs(), "part") {
        Some("calls") => calls::measure(Handle(1)),
        Some("served") => served(&machine),
        Some("late") => {
            timer(LOADED, true);
            show("late", true);
        }
        _ => {
            timer(AHEAD, false);
            show("timer-busy", false);
        }
    }
    println!("bench done");
}

/// Measures a load and a store of a register of the first virtio device (virtio 1.2, section 4.2.2).
fn served(machine: &Machine) {
    const MAGIC: u32 = 0x7472_6976;
    const FEATURES_SELECT: u64 = 0x14;
    let tree = machine.device_tree();
    let base = tree.and_then(|tree| tree.cell(&["virtio_mmio"], "reg", 1));
    let Some(base) = base.map(u64::from).filter(|base| bus::read_u32(*base) == MAGIC) else {
        println!("bench failed: no virtio device");
        return;
    };
    show_median("served-load", || {
        let _ = bus::read_u32(base);
    });
    show_median("served-store", || bus::write_u32(base + FEATURES_SELECT, 0));
}

/// Shows the median of several turns.
fn show_median(name: &str, mut turn: impl FnMut()) {
    let mut ticks = [0; 9];
    for _ in 0..3 {
        turn();
    }
    for found in &mut ticks {
        let start = Timer::Virtual.now();
        turn();
        *found = Timer::Virtual.now() - start;
    }
    ticks.sort_unstable();
    println!("bench {name} {}", ticks[4]);
}

/// Shows the spread of the timer's latency.
fn show(name: &str, idle: bool) {
    let mut ticks = [0; ARRIVALS];
    let mut ahead = AHEAD;
    for found in &mut ticks {
        *found = timer(ahead, idle);
        ahead += PHASE;
    }
    spread::show(name, &mut ticks);
}

/// Returns the latency of the timer that ends in so many ticks.
fn timer(ahead: u64, idle: bool) -> u64 {
    arrival::forget();
    let deadline = Timer::Virtual.now() + ahead;
    Timer::Virtual.arm(deadline);
    arrival::wait(idle) - deadline
}
