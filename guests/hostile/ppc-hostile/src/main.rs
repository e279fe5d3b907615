// SPDX-License-Identifier: Apache-2.0
//! A VM of class `ppc405` that does what a broken or malicious kernel could do, one family at a time.
//!
//! An operation of the tame families is one instruction with random registers, which always gets out again:
//! by an interrupt of its own, by the system call after it, or by the timer. The family `wild` leaves
//! nothing out: any word with any registers in any mode. It destroys itself now and then. The manifest's
//! watchdog and health actions start it again, and the number of its starts is the seed of the next life.
//!
//! Bootargs: `family=NAME` (`all`: every tame one), `count=N`, operations of each family (1000). The program
//! prints `hostile: NAME done N, raised M`, and a line for some lives of the wild family.
#![no_std]
#![no_main]

mod attack;
#[path = "../../../suites/ppc-suite/src/executor.rs"]
mod executor;

use bulkhead_guest::powerpc::{Machine, cpu};
use bulkhead_guest::random::Random;
use bulkhead_guest::{arguments, hypercall, println};

bulkhead_guest::powerpc_main!(main);

/// An operation of a family: returns the vector that it ended at.
type Operation = fn(&mut Random) -> u32;

/// The tame families.
const FAMILIES: [(&str, Operation); 6] = [
    ("problem", attack::any_word),
    ("privileged", attack::privileged),
    ("dcr", attack::device_register),
    ("memory", attack::memory),
    ("tlb", attack::translation),
    ("timers", attack::timers),
];

/// The vector of a system call, by which an instruction ends that nothing hinders.
const SYSTEM_CALL: u32 = 0xC00;

fn main(machine: Machine) {
    cpu::write_spr::<982>(executor::vectors());
    let line = machine.bootargs();
    let family = arguments::value(line, "family").unwrap_or("all");
    let count = arguments::number(line, "count", 1000);
    let life: u64 = hypercall::partition_status(hypercall::SELF).map_or(0, |status| status.restarts.into());
    let mut random = Random::new(life);
    if family == "wild" {
        if life == 0 || life.is_power_of_two() {
            println!("hostile: life {life}");
        }
        for _ in 0..count {
            attack::wild(&mut random);
            let _ = hypercall::partition_kick(hypercall::SELF);
        }
    }
    for (name, operation) in FAMILIES {
        if family == "all" || family == name {
            let mut raised = 0_u64;
            for _ in 0..count {
                attack::mend();
                raised += u64::from(operation(&mut random) != SYSTEM_CALL);
            }
            println!("hostile: {name} done {count}, raised {raised}");
        }
    }
    println!("hostile: end");
}
