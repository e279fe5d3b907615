// SPDX-License-Identifier: Apache-2.0
//! Random numbers, the same everywhere, and digests.

/// A small generator of numbers (xorshift32).
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
    /// Returns the digest of nothing.
    pub const fn new() -> Self {
        Self(0x811C_9DC5)
    }

    /// Adds a word.
    pub fn add(&mut self, word: u32) {
        self.0 = (self.0 ^ word).wrapping_mul(0x0100_0193);
    }
}
