// SPDX-License-Identifier: Apache-2.0
//! A bare-metal program for a PowerPC 405 that looks at the processor from inside and prints what it sees.
//!
//! It knows nothing of a hypervisor and judges little: the same binary prints the same text on the bare board
//! and in a partition, and comparing the two texts is the test. Its parts:
//! - `privileged`: each privileged instruction with random registers, in supervisor and in problem state;
//! - `rows`: rows of privileged instructions, up to the end of a page, and fetches by random entries;
//! - `interrupts`: the programmable interval timer and the controller, critical and not;
//! - `translation`: random entries of the translation buffer, and accesses in all modes.
#![no_std]
#![no_main]

mod executor;
mod interrupts;
mod privileged;
mod random;
mod rows;
mod translation;

use bulkhead_guest::powerpc::{Machine, cpu};
use bulkhead_guest::println;
use random::Random;

bulkhead_guest::powerpc_main!(main);

fn main(_machine: Machine) {
    cpu::write_spr::<982>(executor::vectors());
    cpu::write_spr::<986>(0);
    let mut random = Random::new(0x405E);
    privileged::in_supervisor_state(&mut random);
    privileged::in_problem_state(&mut random);
    rows::suite(&mut Random::new(0x405));
    interrupts::suite();
    translation::suite(&mut random);
    println!("suite: done");
}
