// SPDX-License-Identifier: Apache-2.0
//! Blocks of a memory protection controller (MPC). A word of its look-up table has a bit for each of 32
//! blocks: 1 says Non-secure (Arm DDI 0571G, section 3.10.2, BLK_LUT).

use core::ops::Range;

/// A word of the look-up table of a controller, and the bits that belong to some memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Word {
    /// The number of the word (BLK_IDX).
    pub index: u32,
    /// The bits.
    pub bits: u32,
}

/// Blocks that follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// The first block.
    first: u32,
    /// The block after the last one.
    end: u32,
}

impl Run {
    /// No block.
    pub const NONE: Self = Self { first: 0, end: 0 };

    /// Takes the blocks of the bytes from `first` to `last` of the memory that a controller guards, both
    /// counted from the start of this memory. `shift` is the logarithm of the size of a block (BLK_CFG + 5).
    /// A block of which only some bytes are named is left out: so nothing that was not named becomes
    /// Non-secure.
    #[must_use]
    pub const fn of(first: u32, last: u32, shift: u32) -> Self {
        let inside = 1_u32.wrapping_shl(shift).wrapping_sub(1);
        let is_late = first & inside != 0;
        let is_whole = last & inside == inside;
        Self {
            first: first.wrapping_shr(shift).saturating_add(is_late as u32),
            end: last.wrapping_shr(shift).saturating_add(is_whole as u32),
        }
    }

    /// Returns the numbers of the words, if the run has all blocks of each.
    #[must_use]
    pub fn whole_words(self) -> Option<Range<u32>> {
        let Self { first, end } = self;
        ((first | end) & 31 == 0).then_some(first >> 5..end >> 5)
    }

    /// Returns the words with these blocks. Bounded by the number of words.
    pub fn words(self) -> impl Iterator<Item = Word> {
        let Self { first, end } = self;
        let words = first >> 5..end.saturating_add(31) >> 5;
        words.map_while(move |index| {
            let start = first.saturating_sub(index << 5);
            let end = end.saturating_sub(index << 5).min(32);
            (start < end).then_some(Word {
                index,
                bits: below(end) & !below(start),
            })
        })
    }
}

/// Returns the lowest bits, `count` of them.
const fn below(count: u32) -> u32 {
    match 1_u32.checked_shl(count) {
        Some(bit) => bit.wrapping_sub(1),
        None => u32::MAX,
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use proptest::prelude::*;
    use std::vec::Vec;

    #[test]
    fn whole_words_are_those_with_all_blocks() {
        for (first, last) in [
            (0x1_0000, 0x1_FFFF),
            (0x1_0000, 0x1_FBFF),
            (0x1_0400, 0x1_FFFF),
            (0x1_0000, 0x10_FFFF),
        ] {
            let run = Run::of(first, last, 10);
            let words: Vec<u32> = run.words().map(|word| word.index).collect();
            let is_full = run.words().all(|word| word.bits == u32::MAX);
            let whole = run.whole_words().map(|words| words.collect());
            assert_eq!(whole, is_full.then_some(words), "{first:#x} to {last:#x}");
        }
    }

    #[test]
    fn a_block_of_64_kib_is_two_words() {
        let all: Vec<Word> = Run::of(0x1_0000, 0x1_FFFF, 10).words().collect();
        let full = |index| Word {
            index,
            bits: u32::MAX,
        };
        assert_eq!(all, [full(2), full(3)]);
    }

    #[test]
    fn a_part_of_a_block_is_left_out() {
        assert_eq!(
            Run::of(0x200, 0x7FF, 10).words().collect::<Vec<_>>(),
            [Word { index: 0, bits: 2 }]
        );
        assert_eq!(Run::of(0x400, 0x7FE, 10).words().count(), 0);
        assert_eq!(Run::of(0x410, 0x420, 10).words().count(), 0);
    }

    proptest! {
        #[test]
        fn each_block_has_its_bit(first in 0_u32..300, count in 1_u32..300) {
            let (start, last) = (first << 10, ((first + count) << 10) - 1);
            let mut found = std::vec![0_u32; 20];
            for word in Run::of(start, last, 10).words() {
                found[word.index as usize] |= word.bits;
            }
            for block in 0..640 {
                let bit = found[block as usize / 32] >> (block % 32) & 1;
                prop_assert_eq!(bit == 1, (first..first + count).contains(&block));
            }
        }
    }
}
