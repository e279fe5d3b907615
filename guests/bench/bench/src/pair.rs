// SPDX-License-Identifier: Apache-2.0
//! Measurements with two CPUs. Results are sums over both: the emulator runs one CPU at a time, and the
//! counter counts both.
//!
//! CPU 0 measures and waits idle for CPU 1. CPU 1 does what [`ORDER`] says and wakes CPU 0 when it is done.

use crate::arrival::{self, SGI_MEASURED, SGI_WAKE};
use crate::measure;
use bulkhead_guest::vm::psci::{Conduit, affinity, code, code_of, function};
use bulkhead_guest::vm::timer::Timer;
use bulkhead_guest::vm::{cpu, gic, smp};
use core::sync::atomic::{AtomicU64, Ordering};

/// The next order for CPU 1. Zero if CPU 1 has done the last one.
static ORDER: AtomicU64 = AtomicU64::new(0);
/// When CPU 1 was where it was sent.
static THERE: AtomicU64 = AtomicU64::new(0);

/// True if CPU 1 waits for orders.
static PARKED: AtomicU64 = AtomicU64::new(0);

const DONE: u64 = 0;
const WAIT_BUSY: u64 = 1;
const WAIT_IDLE: u64 = 2;
const SLEEP: u64 = 3;

/// Turns of CPU 0 in which CPU 1 must get ready; more than it takes.
const HEAD_START: u64 = 20_000;

/// Tells whether there is a CPU 1.
pub fn is_there() -> bool {
    code_of(Conduit::Hvc, function::AFFINITY_INFO, [1, 0, 0]) == affinity::OFF
}

/// Measures with two CPUs.
pub fn run() {
    gic::enable(SGI_WAKE);
    measure("cpu-on", cpu_on);
    if !start_server() {
        return;
    }
    measure("sgi-other-busy", || sgi_to_other(WAIT_BUSY));
    measure("sgi-other-idle", || sgi_to_other(WAIT_IDLE));
}

/// Measures two vCPUs of one pCPU: from the wait of one to the next instruction of the other, which is ready.
pub fn run_on_one() {
    gic::enable(SGI_WAKE);
    if start_server() {
        measure("switch", switch);
    }
}

/// Starts CPU 1 and waits until it waits for orders.
fn start_server() -> bool {
    THERE.store(0, Ordering::Release);
    if smp::start(1, serve, 0) != code::SUCCESS {
        bulkhead_guest::println!("bench failed: the second CPU does not start");
        return false;
    }
    idle_until(|| THERE.load(Ordering::Acquire) != 0);
    true
}

/// Waits idle until `done`, interrupts masked.
fn idle_until(mut done: impl FnMut() -> bool) {
    while !done() {
        cpu::wait_for_interrupt();
        let interrupt = gic::acknowledge();
        if interrupt < gic::FIRST_SPECIAL {
            gic::end(interrupt);
        }
    }
}

fn cpu_on() -> u64 {
    THERE.store(0, Ordering::Release);
    let start = Timer::Virtual.now();
    smp::start(1, note_and_end, 0);
    idle_until(|| THERE.load(Ordering::Acquire) != 0);
    while code_of(Conduit::Hvc, function::AFFINITY_INFO, [1, 0, 0]) != affinity::OFF {
        cpu::relax();
    }
    THERE.load(Ordering::Acquire) - start
}

/// Program of CPU 1: notes that it runs, and ends.
fn note_and_end(_: u64) {
    let now = Timer::Virtual.now();
    gic::init_cpu();
    THERE.store(now, Ordering::Release);
    gic::send(SGI_WAKE, 1);
}

fn order(what: u64) {
    ORDER.store(what, Ordering::Release);
    gic::send(SGI_WAKE, 2);
}

fn sgi_to_other(how: u64) -> u64 {
    arrival::forget();
    order(how);
    // CPU 1 is to wait already when the interrupt is sent.
    let ready = Timer::Virtual.now() + HEAD_START;
    while Timer::Virtual.now() < ready {
        cpu::relax();
    }
    let start = Timer::Virtual.now();
    gic::send(SGI_MEASURED, 2);
    idle_until(|| ORDER.load(Ordering::Acquire) == DONE);
    arrival::wait(true) - start
}

/// Lets CPU 1 get to its wait, if this vCPU has preempted it on the way.
fn park_other() {
    while PARKED.load(Ordering::Acquire) == 0 {
        Timer::Virtual.arm(Timer::Virtual.now() + HEAD_START);
        cpu::wait_for_interrupt();
        Timer::Virtual.disarm();
        let interrupt = gic::acknowledge();
        if interrupt < gic::FIRST_SPECIAL {
            gic::end(interrupt);
        }
    }
}

fn switch() -> u64 {
    park_other();
    THERE.store(0, Ordering::Release);
    // The other vCPU becomes ready, but this vCPU goes on: they are equals, or this one is more urgent.
    order(SLEEP);
    let start = Timer::Virtual.now();
    idle_until(|| THERE.load(Ordering::Acquire) != 0);
    THERE.load(Ordering::Acquire) - start
}

/// Program of CPU 1: carries out orders.
fn serve(_: u64) {
    gic::init_cpu();
    gic::enable(SGI_WAKE);
    gic::enable(SGI_MEASURED);
    THERE.store(Timer::Virtual.now(), Ordering::Release);
    gic::send(SGI_WAKE, 1);
    loop {
        while ORDER.load(Ordering::Acquire) == DONE {
            PARKED.store(1, Ordering::Release);
            cpu::wait_for_interrupt();
            let now = Timer::Virtual.now();
            PARKED.store(0, Ordering::Release);
            let interrupt = gic::acknowledge();
            if interrupt < gic::FIRST_SPECIAL {
                gic::end(interrupt);
            }
            if ORDER.load(Ordering::Acquire) == SLEEP {
                THERE.store(now, Ordering::Release);
            }
        }
        match ORDER.load(Ordering::Acquire) {
            WAIT_BUSY => drop(arrival::wait(false)),
            WAIT_IDLE => drop(arrival::wait(true)),
            _ => {}
        }
        ORDER.store(DONE, Ordering::Release);
        gic::send(SGI_WAKE, 1);
    }
}
