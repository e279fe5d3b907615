// SPDX-License-Identifier: Apache-2.0
//! A VM that behaves for a while and then writes to memory that is not its own.
//!
//! Bootargs: `delay=MILLISECONDS` until it does (2000), `target=ADDRESS` where (0x80000000). It does so again
//! after every restart, because it remembers nothing.
#![no_std]
#![no_main]
#![forbid(unsafe_code)]

use bulkhead_guest::vm::{Machine, bus, timer};
use bulkhead_guest::{arguments, println};

bulkhead_guest::vm_main!(main);

/// Steps of the countdown.
const STEPS: u64 = 4;

fn main(machine: Machine) {
    let delay = arguments::number(machine.bootargs(), "delay", 2000);
    let target = arguments::number(machine.bootargs(), "target", 0x8000_0000);
    println!("rogue: started");
    for step in (1..=STEPS).rev() {
        println!("rogue: {} ms of good behaviour left", delay * step / STEPS);
        timer::sleep(delay * 1000 / STEPS);
    }
    println!("rogue: writing to {target:#x}, which is not mine");
    bus::write_u32(target, 0x0BAD_0BAD);
    println!("rogue: nobody stopped me");
}
