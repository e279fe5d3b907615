// SPDX-License-Identifier: Apache-2.0
//! A VM of class `x86_64` that behaves for a while and then writes to memory that is not its own.
//!
//! Bootargs: `delay=MILLISECONDS` until it does (2000), `target=ADDRESS` where (0x80000000). It does so again
//! after every restart, because it remembers nothing.
#![no_std]
#![no_main]
#![forbid(unsafe_code)]

use bulkhead_guest::pc::exception::Frame;
use bulkhead_guest::pc::{Machine, apic, clock, cpu, exception};
use bulkhead_guest::{arguments, println};

bulkhead_guest::pc_main!(main);

/// Steps of the countdown.
const STEPS: u64 = 4;
const VECTOR: u8 = 0x41;

fn on_interrupt(frame: &mut Frame) {
    if frame.vector == VECTOR.into() {
        apic::end();
    } else {
        println!("rogue: exception {} at {:#x}", frame.vector, frame.rip);
        cpu::stop();
    }
}

fn main(machine: Machine) {
    exception::install(on_interrupt);
    apic::enable();
    let delay = arguments::number(machine.bootargs(), "delay", 2000);
    let target = arguments::number(machine.bootargs(), "target", 0x8000_0000);
    println!("rogue: started");
    let step = clock::hertz() / 1000 * delay / STEPS;
    let mut deadline = cpu::counter();
    for left in (1..=STEPS).rev() {
        println!("rogue: {} ms of good behaviour left", delay * left / STEPS);
        deadline += step;
        clock::sleep_until(VECTOR, deadline);
    }
    println!("rogue: writing to {target:#x}, which is not mine");
    cpu::store(target, 0x0BAD_0BAD);
    println!("rogue: nobody stopped me");
}
