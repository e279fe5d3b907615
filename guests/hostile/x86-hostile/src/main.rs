// SPDX-License-Identifier: Apache-2.0
//! A VM of class `x86_64` that does what a broken or malicious kernel could do, one family at a time.
//!
//! An operation of the tame families is one instruction. An exception that it raises goes on after it, and
//! the program mends what it needs of its machine. The family `wild` executes random bytes in 64-bit and
//! 32-bit code and, by INIT and start-up IPI of another vCPU, in real mode; it loads random descriptor
//! tables. It destroys itself now and then. The manifest's watchdog and health actions start it again, and
//! the number of its starts is the seed of the next life.
//!
//! Bootargs: `family=NAME` (`all`: every tame one), `count=N`, operations of each family (1000). The program
//! prints `hostile: NAME done N, raised M`, and a line per 256 operations of the wild family.
#![no_std]
#![no_main]
#![forbid(unsafe_code)]

mod tame;
mod wild;

use bulkhead_guest::pc::exception::Frame;
use bulkhead_guest::pc::{Machine, apic, exception, smp};
use bulkhead_guest::random::Random;
use bulkhead_guest::{arguments, hypercall, println};

bulkhead_guest::pc_main!(main);

/// An operation of a family: draws what it does, and tells whether that raised an exception.
type Operation = fn(&mut Random) -> bool;

/// The tame families.
const FAMILIES: [(&str, Operation); 9] = [
    ("msr", tame::register),
    ("ports", tame::port),
    ("cpuid", tame::cpuid),
    ("control", tame::control),
    ("apic", tame::apic),
    ("memory", tame::memory),
    ("pci", tame::pci),
    ("messages", tame::message),
    ("privileged", tame::privileged),
];

fn main(machine: Machine) {
    exception::install(on_interrupt);
    smp::load_segments();
    apic::enable();
    let line = machine.bootargs();
    let family = arguments::value(line, "family").unwrap_or("all");
    let count = arguments::number(line, "count", 1000);
    let seed = hypercall::partition_status(hypercall::SELF).map_or(0, |status| status.restarts.into());
    let mut random = Random::new(seed);
    if family == "wild" {
        wild::run(&mut random, seed, count);
        return;
    }
    for (name, operation) in FAMILIES {
        if family == "all" || family == name {
            let mut raised = 0_u64;
            for _ in 0..count {
                raised += u64::from(operation(&mut random));
                tame::mend();
            }
            println!("hostile: {name} done {count}, raised {raised}");
        }
    }
    println!("hostile: end");
}

/// Ends the interrupt: messages to itself are attacks as well.
fn on_interrupt(frame: &mut Frame) {
    if frame.vector >= 32 {
        apic::end();
    }
}
