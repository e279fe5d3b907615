// SPDX-License-Identifier: Apache-2.0
//! Memory of the program that must not change: a pattern in RAM, and the program's code.

use core::sync::atomic::{AtomicU32, Ordering::Relaxed};

use crate::{code_end, compare, cpu, places, seed};

const WORDS: usize = 512;

static PATTERN: [AtomicU32; WORDS] = [const { AtomicU32::new(0) }; WORDS];
static SUM: AtomicU32 = AtomicU32::new(0);

fn pattern(index: usize) -> u32 {
    (index as u32 ^ seed()).wrapping_mul(0x9E37_79B9)
}

/// Returns a sum of the code, in which the order counts.
fn sum() -> u32 {
    let words = (places().code..code_end()).step_by(4).map(cpu::load);
    words.fold(0, |sum, word| {
        sum.rotate_left(5).wrapping_add(word).wrapping_mul(0x85EB_CA6B)
    })
}

/// Writes the pattern, and notes the sum of the code.
pub fn set_up() {
    for (index, word) in PATTERN.iter().enumerate() {
        word.store(pattern(index), Relaxed);
    }
    SUM.store(sum(), Relaxed);
}

/// Looks whether all is as it was.
pub fn check() {
    for (index, word) in PATTERN.iter().enumerate() {
        compare("memory", index, &[word.load(Relaxed)], &[pattern(index)]);
    }
    compare("code", 0, &[sum()], &[SUM.load(Relaxed)]);
}
