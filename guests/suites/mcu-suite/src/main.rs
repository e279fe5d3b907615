// SPDX-License-Identifier: Apache-2.0
//! A bare-metal program for Armv7-M that looks at the processor from inside and prints what it sees.
//!
//! It knows nothing of a hypervisor and judges nothing: the same binary prints the same text on the bare chip
//! and in a partition, and comparing the two texts is the test. In five parts:
//! - `registers`: every register of the system control space, written with patterns and read back;
//! - `exceptions`: each way into and out of an exception, with the frames and the stack pointers;
//! - `blocks`: random straight-line code, made when this package is built, run on random registers;
//! - `storm`: random sequences of what makes, masks, nests and ends exceptions;
//! - `transfers`: loads and stores of several registers and of odd sizes, with what faults there are.
//!
//! The last part comes after the storms, so that what those print does not depend on it.
//!
//! The suite ends with `suite: done`, and goes on with more of `blocks` and `storm` for ever.
//!
//! Values that depend on time are not printed, nor values that the architecture leaves open.
#![no_std]
#![no_main]

mod blocks;
mod console;
mod cpu;
mod entry;
mod exceptions;
mod registers;
mod reset;
mod storm;
mod system;
mod transfers;

use console::print;

/// Rounds of a line of output.
const GROUP: u32 = 50;

/// A small generator of numbers (xorshift32), the same everywhere.
pub struct Random(u32);

impl Random {
    /// Returns a generator with a seed.
    pub const fn new(seed: u32) -> Self {
        Self(seed | 1)
    }

    /// Draws the next number.
    pub fn draw(&mut self) -> u32 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 17;
        self.0 ^= self.0 << 5;
        self.0
    }

    /// Draws the next number below `limit`.
    pub fn below(&mut self, limit: u32) -> u32 {
        self.draw() % limit
    }
}

/// A digest of what is seen (FNV-1a of words).
#[derive(Clone, Copy)]
pub struct Digest(pub u32);

impl Digest {
    /// The digest of nothing.
    pub const EMPTY: Self = Self(0x811C_9DC5);

    /// Adds a word.
    pub fn add(&mut self, word: u32) {
        self.0 = (self.0 ^ word).wrapping_mul(0x0100_0193);
        self.0 ^= self.0 >> 15;
    }
}

/// Called by the reset code with RAM set up, on the main stack.
#[unsafe(no_mangle)]
extern "C" fn guest_main() -> ! {
    console::start();
    print!("suite: start\n");
    registers::run();
    exceptions::run();
    blocks::run();
    storm::run();
    transfers::run();
    print!("suite: done\n");
    more()
}

/// Random code and storms for as long as anybody looks: 2304 instructions and 2400 operations a round.
fn more() -> ! {
    let mut digest = Digest::EMPTY;
    for round in 0.. {
        blocks::more(round, &mut digest);
        let storms = storm::more(round);
        if round % GROUP == GROUP - 1 {
            print!("more: {} rounds, {:08x} {:08x}\n", round + 1, digest.0, storms);
        }
    }
    loop {
        cpu::wait();
    }
}

#[panic_handler]
fn panic(info: &core::panic::PanicInfo<'_>) -> ! {
    print!("suite: panic: {}\n", info);
    loop {
        cpu::wait();
    }
}
