// SPDX-License-Identifier: Apache-2.0
//! A small generator of numbers that look random and repeat exactly: xorshift64* (Marsaglia 2003, Vigna
//! 2016).

/// State of the generator.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// Makes a generator whose numbers are fixed by `seed`.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        // The state must not be zero.
        Self(seed ^ 0x9E37_79B9_7F4A_7C15 | 1)
    }

    /// Draws the next 64 bits.
    pub fn draw(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    /// Draws a number below `limit` (which is not 0).
    pub fn below(&mut self, limit: u64) -> u64 {
        (self.draw() >> 16) % limit
    }
}

#[cfg(test)]
mod tests {
    use super::Random;

    #[test]
    fn repeats_exactly_and_stays_below_the_limit() {
        let mut first = Random::new(42);
        let mut second = Random::new(42);
        for _ in 0..1000 {
            assert_eq!(first.draw(), second.draw());
            assert!(first.below(7) < 7);
            second.below(7);
        }
        assert_ne!(Random::new(1).draw(), Random::new(2).draw());
    }
}
