// SPDX-License-Identifier: Apache-2.0
//! A control loop in a VM of class `x86_64`: the timer of the local APIC releases a control computation at
//! absolute deadlines.
//!
//! The jitter of a release is the counter at the handler's first instruction minus the deadline. The response
//! is the counter at the end of the computation minus the deadline. A release is missed if it is late by a
//! period or more. The program prints a line per second, as `control-loop` does.
//!
//! Bootargs: `period=MICROSECONDS` (1000); `report=MILLISECONDS` (1000), the length of its seconds, for runs
//! that have to be short.
#![no_std]
#![no_main]
#![forbid(unsafe_code)]

use bulkhead_guest::pc::exception::Frame;
use bulkhead_guest::pc::{Machine, apic, clock, cpu, exception};
use bulkhead_guest::{arguments, println};
use core::sync::atomic::{AtomicU64, Ordering};

bulkhead_guest::pc_main!(main);

const VECTOR: u8 = 0x41;
/// When the release came, 0 = not yet.
static ARRIVED: AtomicU64 = AtomicU64::new(0);

fn on_interrupt(frame: &mut Frame) {
    let now = cpu::counter();
    if frame.vector == VECTOR.into() {
        ARRIVED.store(now, Ordering::Release);
        apic::end();
    } else {
        println!("control: exception {} at {:#x}", frame.vector, frame.rip);
        cpu::stop();
    }
}

/// Makes one control step towards the set point, in 16.16 fixed point.
fn step(value: &mut u32) {
    const SET_POINT: u32 = 1000 << 16;
    let error = SET_POINT.wrapping_sub(*value).cast_signed();
    *value = value.wrapping_add((error / 8).cast_unsigned());
}

fn main(machine: Machine) {
    exception::install(on_interrupt);
    apic::enable();
    let rate = clock::hertz();
    let micros = arguments::number(machine.bootargs(), "period", 1000).clamp(10, 1_000_000);
    let report = arguments::number(machine.bootargs(), "report", 1000).clamp(1, 1000) * 1000;
    let period = rate / 1_000_000 * micros;
    let nanos = |ticks: u64| ticks * 1000 / (rate / 1_000_000);
    println!("control: start, period {micros} us, counter {rate} Hz");
    let (mut releases, mut missed, mut value) = (0_u64, 0_u64, 0);
    let mut deadline = cpu::counter() + period;
    for second in 1_u64.. {
        let (mut jitter_max, mut response_max) = (0, 0);
        for _ in 0..(report / micros).max(1) {
            ARRIVED.store(0, Ordering::Release);
            apic::set_deadline(VECTOR, deadline);
            while ARRIVED.load(Ordering::Acquire) == 0 {
                cpu::wait();
            }
            step(&mut value);
            let jitter = ARRIVED.load(Ordering::Acquire).saturating_sub(deadline);
            response_max = response_max.max(cpu::counter().saturating_sub(deadline));
            jitter_max = jitter_max.max(jitter);
            let skipped = jitter / period;
            missed += skipped;
            releases += u64::from(skipped == 0);
            deadline += period * skipped.max(1);
        }
        println!(
            "control: second {second}, releases {releases}, missed {missed}, jitter max {} ns, response max {} ns",
            nanos(jitter_max),
            nanos(response_max)
        );
    }
}
