// SPDX-License-Identifier: Apache-2.0
//! Measurements with two CPUs. Results are sums over both: the emulator runs one CPU at a time, and the
//! counter counts both.
//!
//! CPU 0 measures and waits idle for CPU 1. CPU 1 does what [`ORDER`] says and wakes CPU 0 when it is done.

use crate::arrival::{self, MEASURED, WAKE};
use crate::measure;
use bulkhead_guest::pc::{apic, cpu, smp};
use core::sync::atomic::{AtomicU64, Ordering};

/// The next order for CPU 1, `DONE` if it has done the last one.
static ORDER: AtomicU64 = AtomicU64::new(DONE);
/// When CPU 1 was where it was sent.
static THERE: AtomicU64 = AtomicU64::new(0);
/// 1 if CPU 1 waits for orders.
static PARKED: AtomicU64 = AtomicU64::new(0);

const DONE: u64 = 0;
const WAIT_BUSY: u64 = 1;
const WAIT_IDLE: u64 = 2;
const SLEEP: u64 = 3;

/// Ticks in which CPU 1 must get ready; more than it takes.
const HEAD_START: u64 = 20_000;
/// Ticks after which there is no CPU 1.
const PATIENCE: u64 = 2_000_000;

/// Measures with two CPUs, if there are two.
pub fn run() {
    if start_server() {
        measure("ipi-other-busy", || ipi_to_other(WAIT_BUSY));
        measure("ipi-other-idle", || ipi_to_other(WAIT_IDLE));
    }
}

/// Measures two vCPUs of one pCPU: from the wait of one to the next instruction of the other, which is ready.
pub fn run_on_one() {
    if start_server() {
        measure("switch", switch);
    }
}

/// Starts CPU 1, and waits until it waits for orders.
fn start_server() -> bool {
    smp::start(1, serve);
    let end = cpu::counter() + PATIENCE;
    while THERE.load(Ordering::Acquire) == 0 {
        if cpu::counter() > end {
            return false;
        }
        nap();
    }
    true
}

/// Idles for a while, so that CPU 1 runs if it shares the pCPU.
fn nap() {
    apic::set_deadline(WAKE, cpu::counter() + HEAD_START);
    cpu::wait();
}

/// Idles until `done`, woken by CPU 1. No interrupt is let in between the look and the wait.
fn idle_until(mut done: impl FnMut() -> bool) {
    while !done() {
        cpu::wait();
    }
}

fn order(what: u64) {
    ORDER.store(what, Ordering::Release);
    apic::command(1, WAKE.into());
}

fn ipi_to_other(how: u64) -> u64 {
    arrival::forget();
    order(how);
    // CPU 1 is to wait already when the interrupt is sent.
    smp::pause(HEAD_START);
    let start = cpu::counter();
    apic::command(1, MEASURED.into());
    idle_until(|| ORDER.load(Ordering::Acquire) == DONE);
    arrival::wait(true) - start
}

fn switch() -> u64 {
    while PARKED.load(Ordering::Acquire) == 0 {
        nap();
    }
    THERE.store(0, Ordering::Release);
    // The other vCPU becomes ready, but this one goes on: they are equals.
    order(SLEEP);
    let start = cpu::counter();
    idle_until(|| THERE.load(Ordering::Acquire) != 0);
    THERE.load(Ordering::Acquire) - start
}

/// Program of CPU 1: carries out orders.
extern "C" fn serve() {
    apic::enable();
    THERE.store(cpu::counter(), Ordering::Release);
    apic::command(0, WAKE.into());
    loop {
        while ORDER.load(Ordering::Acquire) == DONE {
            PARKED.store(1, Ordering::Release);
            wait_for_order();
            PARKED.store(0, Ordering::Release);
        }
        match ORDER.load(Ordering::Acquire) {
            WAIT_BUSY => drop(arrival::wait(false)),
            WAIT_IDLE => drop(arrival::wait(true)),
            _ => {}
        }
        ORDER.store(DONE, Ordering::Release);
        apic::command(0, WAKE.into());
    }
}

/// Waits for an order. The first instructions of a CPU that wakes up are its handler's.
fn wait_for_order() {
    cpu::wait();
    if ORDER.load(Ordering::Acquire) == SLEEP {
        THERE.store(arrival::woken(), Ordering::Release);
    }
}
