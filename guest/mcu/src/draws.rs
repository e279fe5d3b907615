// SPDX-License-Identifier: Apache-2.0
//! Numbers for programs that do anything: always the same ones, so that a run repeats.

/// Numbers drawn one after the other (xorshift).
#[derive(Debug)]
pub struct Draws(u32);

impl Draws {
    /// The beginning of the numbers.
    pub const FIRST: Self = Self(0x9E37_79B9);

    /// Draws any number.
    pub fn any(&mut self) -> u32 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 17;
        self.0 ^= self.0 << 5;
        self.0
    }

    /// Draws a number below `limit`, which is not 0.
    pub fn below(&mut self, limit: u32) -> u32 {
        self.any() % limit
    }

    /// Draws the receiver of a frame: all, an unknown address, or a neighbour, whose address ends with the
    /// next or the next but one lower number.
    pub fn receiver(&mut self, own: [u8; 6]) -> [u8; 6] {
        let [a, b, c, d, e, f] = own;
        match self.below(4) {
            0 => [0xFF; 6],
            1 => [2, 9, 9, 9, 9, 9],
            neighbour => [a, b, c, d, e, f.wrapping_sub(neighbour as u8 - 1)],
        }
    }
}
