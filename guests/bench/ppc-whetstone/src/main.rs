// SPDX-License-Identifier: Apache-2.0
//! Measures a synthetic program with the modules that Curnow and Wichmann published as Whetstone, on the bare
//! board and as a VM of a PowerPC 405, while the timer interrupts it at the rate of an operating system.
//!
//! The program is written anew by its published description. The processor has no floating-point unit, so
//! numbers are added and multiplied in software.
#![no_std]
#![no_main]
#![forbid(unsafe_code)]

mod functions;
mod modules;

use bulkhead_guest::powerpc::{Machine, cpu};
use bulkhead_guest::println;

bulkhead_guest::powerpc_main!(main);

/// Instructions in a tick of the time base.
const INSTRUCTIONS: u32 = 3;
/// Timer control and status, and the timer (IBM PowerPC 405 user's manual, chapter 11). It interrupts, and
/// starts anew by itself.
const CONTROL: u32 = 986;
const STATUS: u32 = 984;
const TIMER: u32 = 987;
const PERIODIC: u32 = 0x0440_0000;
/// Passes of a hundred thousand Whetstone instructions. A pass takes less than a period.
const PASSES: u32 = 10;
/// Ticks between its interrupts: 4 ms, as Linux has it.
const PERIOD: u32 = 1_333_333;

fn main(_machine: Machine) {
    cpu::write_spr::<CONTROL>(PERIODIC);
    cpu::write_spr::<TIMER>(PERIOD);
    let start = cpu::ticks();
    let is_right = (0..PASSES).fold(true, |good, _| {
        // The handler returns with interrupts masked.
        cpu::write_spr::<STATUS>(u32::MAX);
        cpu::enable_interrupts();
        modules::all() & good
    });
    let took = cpu::ticks().wrapping_sub(start);
    cpu::disable_interrupts();
    cpu::write_spr::<CONTROL>(0);
    if !is_right {
        println!("bench failed: Whetstone has other values");
        return;
    }
    println!("bench whetstone {}", u64::from(took) * u64::from(INSTRUCTIONS));
    println!("bench done");
}
