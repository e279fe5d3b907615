// SPDX-License-Identifier: Apache-2.0
//! A bare-metal program for Armv7-M that does what a broken or malicious one could do to the partition it is in and
//! to those it is not in, at random: stack pointers anywhere, wrong exception returns, vector tables of garbage, its
//! own memory protection unit reprogrammed, code changed or jumped into that is not its own, registers of
//! the processor written in every size, undefined instructions of every kind.
//!
//! Each attack ends in one of three ways: it has no effect; it is a fault, whose handler drops everything
//! and starts anew with the next attack; or the processor locks up, and the partition is restarted if the
//! manifest says so. Seed and counts are in RAM that a warm restart keeps, so that no life is like the one before.
//! What must be true is seen from outside: its neighbours are as they are without it.
#![no_std]
#![no_main]

mod attacks;
#[path = "../../mcu-suite/src/console.rs"]
mod console;
#[allow(dead_code, reason = "shared with the suite, which uses all of it")]
#[path = "../../mcu-suite/src/cpu.rs"]
mod cpu;
mod recovery;
#[path = "../../mcu-suite/src/reset.rs"]
mod reset;

use console::print;
use cpu::{load, store};

/// Attacks of a line of output.
const GROUP: u32 = 64;

/// Between the process stack and the scratch area, where nothing else writes.
const SEED: u32 = attacks::RAM + 0x8800;
const ATTACKS: u32 = SEED + 4;
const FAULTS: u32 = SEED + 8;
const LIVES: u32 = SEED + 12;
const FIRST_SEED: u32 = 0x9E37_79B9;

/// A random number (xorshift32).
pub fn draw() -> u32 {
    let mut state = load(SEED);
    state ^= state << 13;
    state ^= state >> 17;
    state ^= state << 5;
    store(SEED, state);
    state
}

/// A random number below `limit`.
pub fn below(limit: u32) -> u32 {
    (draw() >> 8) % limit
}

/// Called after a reset.
#[unsafe(no_mangle)]
extern "C" fn guest_main() -> ! {
    console::start();
    if load(SEED) == 0 {
        store(SEED, FIRST_SEED);
    }
    count(LIVES);
    attack_for_ever()
}

/// Called after a fault, on a fresh main stack.
#[unsafe(no_mangle)]
extern "C" fn hostile_again() -> ! {
    count(FAULTS);
    attack_for_ever()
}

fn attack_for_ever() -> ! {
    loop {
        recovery::restore();
        let attacks = count(ATTACKS);
        if attacks.is_multiple_of(GROUP) {
            print!(
                "hostile: {} attacks, {} faults, {} lives\n",
                attacks,
                load(FAULTS),
                load(LIVES)
            );
        }
        attacks::one();
    }
}

/// Counts one more.
fn count(counter: u32) -> u32 {
    let number = load(counter) + 1;
    store(counter, number);
    number
}

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    hostile_again()
}
