// SPDX-License-Identifier: Apache-2.0
//! The progress of the attacks: counts that survive what the attacks do to this program's own memory.
//!
//! There are three copies, far apart, each with a check word. An attack may ruin any of them: stack pointers
//! go anywhere, and jumps into this program's own code store anything. Only copies with a right check word
//! count. A value that two of them agree on is true. If only one is left, its value is true. A jump into the
//! middle of `keep` may make a copy with a check word of other counts. If no copy is left the attacks begin
//! again. The program prints this, for a test to see.
//!
//! The draws of an attack depend on its number only. No remains of an attack make the next ones
//! alike.

use crate::cpu::{load, store};
use crate::print;
use crate::targets::RAM;

/// Between the process stack and the scratch area, after the scratch area, and below the main stack.
const COPIES: [u32; 3] = [RAM + 0x8810, RAM + 0xD400, RAM + 0xE800];
/// The numbers' state: below the counts, and set anew for each attack.
const SEED: u32 = RAM + 0x8800;
const KEY: u32 = 0x9E37_79B9;

/// The counts.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// Attacks begun.
    pub attacks: u32,
    /// Faults that ended one.
    pub faults: u32,
    /// Starts of this program.
    pub lives: u32,
}

impl Progress {
    const NONE: Self = Self {
        attacks: 0,
        faults: 0,
        lives: 0,
    };

    fn check_word(self) -> u32 {
        let mut word = KEY;
        for count in [self.attacks, self.faults, self.lives] {
            word = (word ^ count).wrapping_mul(0x0100_0193).rotate_left(13);
        }
        word
    }

    fn at(copy: u32) -> Option<Self> {
        let progress = Self {
            attacks: load(copy),
            faults: load(copy + 4),
            lives: load(copy + 8),
        };
        (load(copy + 12) == progress.check_word()).then_some(progress)
    }

    /// Returns the counts that the copies agree on.
    pub fn recall() -> Self {
        let [first, second, third] = COPIES.map(Self::at);
        let agreed = [(first, second), (first, third), (second, third)]
            .into_iter()
            .find_map(|(one, other)| one.filter(|_| one == other));
        if let Some(progress) = agreed.or(first).or(second).or(third) {
            return progress;
        }
        // A cold start finds memory of zeros, and so no copy.
        if COPIES.into_iter().any(|copy| load(copy + 12) != 0) {
            print!("hostile: counts lost\n");
        }
        Self::NONE
    }

    /// Writes all copies.
    pub fn keep(self) {
        for copy in COPIES {
            store(copy + 12, self.check_word());
            store(copy, self.attacks);
            store(copy + 4, self.faults);
            store(copy + 8, self.lives);
        }
    }

    /// Starts the numbers of the next attack.
    pub fn start_numbers(self) {
        let mixed = self.attacks.wrapping_mul(KEY) ^ self.attacks.wrapping_mul(0x85EB_CA6B).rotate_left(15);
        store(SEED, mixed | 1);
    }
}

/// Draws a random number (xorshift32).
pub fn draw() -> u32 {
    let mut state = load(SEED) | u32::from(load(SEED) == 0);
    state ^= state << 13;
    state ^= state >> 17;
    state ^= state << 5;
    store(SEED, state);
    state
}

/// Draws a random number below `limit`.
pub fn below(limit: u32) -> u32 {
    (draw() >> 8) % limit
}
