// SPDX-License-Identifier: Apache-2.0
//! A control loop that takes the interrupts of its CPU itself: the PIT releases a computation through the
//! 8259, which ends its interrupts by itself (AEOI), and the loop waits in HLT. The same file runs on a bare
//! PC and in a VM with `direct = true`, and neither needs anything of a hypervisor between two releases.
//!
//! Each release is late by the counter at the handler's first instruction less the time at which the PIT's
//! output rose. That time is known by the count that the PIT shows when the handler has begun: it counts down
//! from the period again.
//!
//! Bootargs: `period=TICKS` of the PIT's 1193182 Hz (1193, a millisecond); `releases=NUMBER` (1000) before
//! the report, which says the most ticks of the PIT by which one was `late`, and the most and least ticks of
//! the counter between two of them (`apart`, `close`); `load=NUMBER` of steps of computation in each release
//! (100).
#![no_std]
#![no_main]
#![forbid(unsafe_code)]

use bulkhead_guest::pc::exception::Frame;
use bulkhead_guest::pc::{Machine, apic, cpu, exception};
use bulkhead_guest::{arguments, println};
use core::sync::atomic::{AtomicU64, Ordering};

bulkhead_guest::pc_main!(main);

/// The vector of the 8259's first line.
const VECTOR: u8 = 0x40;
/// The 8259 (Intel 8259A): commands, mask.
const PIC: u16 = 0x20;
const PIC_MASK: u16 = 0x21;
/// The PIT (Intel 8254): counter 0, control.
const COUNTER: u16 = 0x40;
const CONTROL: u16 = 0x43;
/// Counter 0, low byte first, mode 2, binary; and the command that keeps its count for a read.
const RATE: u8 = 0x34;
const LATCH: u8 = 0;
/// LINT0 of the local APIC: interrupts of the 8259.
const LINT0: u32 = 0x35;
const EXTERNAL: u64 = 7 << 8;

/// Releases that the handler has seen.
static RELEASES: AtomicU64 = AtomicU64::new(0);
/// The period, and the most ticks of the PIT by which a release was late.
static PERIOD: AtomicU64 = AtomicU64::new(0);
static LATEST: AtomicU64 = AtomicU64::new(0);
/// The counter at the handler's last first instruction, and the least and most between two of them.
static LAST: AtomicU64 = AtomicU64::new(0);
static SHORTEST: AtomicU64 = AtomicU64::new(u64::MAX);
static LONGEST: AtomicU64 = AtomicU64::new(0);

fn on_interrupt(frame: &mut Frame) {
    let now = cpu::counter();
    cpu::write_port8(CONTROL, LATCH);
    let low = u64::from(cpu::read_port8(COUNTER));
    let count = u64::from(cpu::read_port8(COUNTER)) << 8 | low;
    if frame.vector != VECTOR.into() {
        println!("direct: exception {} at {:#x}", frame.vector, frame.rip);
        cpu::stop();
    }
    let late = PERIOD.load(Ordering::Relaxed).saturating_sub(count);
    LATEST.fetch_max(late, Ordering::Relaxed);
    let last = LAST.swap(now, Ordering::Relaxed);
    // The first two come when the PIT was being set.
    if RELEASES.fetch_add(1, Ordering::Release) >= 2 {
        SHORTEST.fetch_min(now - last, Ordering::Relaxed);
        LONGEST.fetch_max(now - last, Ordering::Relaxed);
    }
}

/// Sets the 8259 to end interrupts by itself, and lets the PIT alone through.
fn start(period: u64) {
    // ICW1: edges, a single 8259, ICW4 follows. ICW4: 8086 mode, automatic end.
    for (port, value) in [(PIC, 0x13), (PIC_MASK, VECTOR), (PIC_MASK, 3), (PIC_MASK, 0xFE)] {
        cpu::write_port8(port, value);
    }
    cpu::write_port8(CONTROL, RATE);
    cpu::write_port8(COUNTER, period as u8);
    cpu::write_port8(COUNTER, (period >> 8) as u8);
}

fn main(machine: Machine) {
    exception::install(on_interrupt);
    apic::enable();
    apic::write(LINT0, EXTERNAL);
    let period = arguments::number(machine.bootargs(), "period", 1193).clamp(24, 65535);
    let releases = arguments::number(machine.bootargs(), "releases", 1000);
    let load = arguments::number(machine.bootargs(), "load", 100);
    println!("direct: start, period {period} ticks of the PIT");
    PERIOD.store(period, Ordering::Relaxed);
    start(period);
    let mut value = 0_u64;
    while RELEASES.load(Ordering::Acquire) < releases {
        cpu::wait();
        for _ in 0..load {
            value = core::hint::black_box(value.wrapping_mul(5).wrapping_add(1));
        }
    }
    // The PIT still counts, but does not interrupt.
    cpu::write_port8(PIC_MASK, 0xFF);
    println!("direct: releases {releases}");
    println!("cost late {}", LATEST.load(Ordering::Relaxed));
    println!("cost apart {}", LONGEST.load(Ordering::Relaxed));
    println!("cost close {}", SHORTEST.load(Ordering::Relaxed));
}
