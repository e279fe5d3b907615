// SPDX-License-Identifier: Apache-2.0
//! Operations that may destroy the program: random code in every mode, and random tables.

use crate::tame;
use bulkhead_guest::pc::{apic, attempt, smp};
use bulkhead_guest::println;
use bulkhead_guest::random::Random;

/// Bytes of a piece of code, and where it is: RAM of this program alone. The page below 1 MiB is for the
/// other processor, in real mode.
const BYTES: u64 = 64;
const CODE: u64 = 0x1E_0000;
const REAL: u64 = 0x1_1000;
/// Ticks after which a piece of code is interrupted, if it has not masked interrupts.
const SLICE: u64 = 20_000;
/// The vector of that, and of the interrupt command for the other processor: INIT, start-up.
const VECTOR: u8 = 0x51;
const INIT: u32 = 0x4500;
const STARTUP: u32 = 0x4600;
/// Operations for a line.
const LINE: u64 = 256;

/// Makes so many operations, unless one of them ends this life.
pub fn run(random: &mut Random, life: u64, count: u64) {
    if life.is_power_of_two() || life == 0 {
        println!("hostile: life {life}");
    }
    let mut raised = 0_u64;
    for number in 1..=count {
        raised += u64::from(one(random));
        tame::mend();
        if number % LINE == 0 {
            println!("hostile: wild done {number}, raised {raised}");
        }
    }
    println!("hostile: end");
}

fn one(random: &mut Random) -> bool {
    match random.below(16) {
        0..=7 => code(random, attempt::CODE_64),
        8..=11 => code(random, attempt::CODE_32),
        12..=14 => {
            real(random);
            false
        }
        _ => table(random),
    }
}

fn fill(random: &mut Random, at: u64) {
    for offset in (0..BYTES).step_by(8) {
        let _ = attempt::store(at + offset, 8, random.draw());
    }
}

/// Executes random bytes.
fn code(random: &mut Random, selector: u64) -> bool {
    fill(random, CODE);
    apic::set_deadline(VECTOR, bulkhead_guest::pc::cpu::counter() + SLICE);
    attempt::run(CODE, selector, random.draw()).is_err()
}

/// Lets the other processor execute random bytes in real mode.
fn real(random: &mut Random) {
    fill(random, REAL);
    apic::command(1, INIT);
    apic::command(1, STARTUP | (REAL >> 12) as u32);
    smp::pause(SLICE);
}

/// Loads a random descriptor table or selector.
fn table(random: &mut Random) -> bool {
    let mut bytes = [0; 10];
    for byte in &mut bytes {
        *byte = random.draw() as u8;
    }
    let done = match random.below(4) {
        0 => attempt::load_table(true, &bytes),
        1 => attempt::load_table(false, &bytes),
        2 => attempt::load_selector(true, random.draw() as u16),
        _ => attempt::load_selector(false, random.draw() as u16),
    };
    done.is_err()
}
