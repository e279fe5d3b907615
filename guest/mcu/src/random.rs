// SPDX-License-Identifier: Apache-2.0
//! Numbers that look random and are the same in every run: xorshift (Marsaglia, 2003).

/// A generator.
#[derive(Clone, Copy, Debug)]
pub struct Random(u32);

impl Random {
    /// A generator that starts with `seed`.
    #[must_use]
    pub const fn new(seed: u32) -> Self {
        Self(if seed == 0 { 1 } else { seed })
    }

    /// The next number, never 0.
    pub fn next(&mut self) -> u32 {
        let mut x = self.0;
        x ^= x << 13;
        x ^= x >> 17;
        x ^= x << 5;
        self.0 = x;
        x
    }
}
