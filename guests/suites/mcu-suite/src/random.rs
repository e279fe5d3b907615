// SPDX-License-Identifier: Apache-2.0
//! Random numbers, digests of what is seen, and the long run that uses them.

use crate::console::print;
use crate::{blocks, cpu, storm};

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

/// Random code and storms for as long as anybody looks: 2304 instructions and 2400 operations a round.
pub fn more() -> ! {
    print!("suite: done\n");
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
