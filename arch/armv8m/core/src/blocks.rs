// SPDX-License-Identifier: Apache-2.0
//! Blocks of a memory protection controller (MPC). A word of its look-up table has a bit for each of 32
//! blocks: 1 says Non-secure (Arm DDI 0571G, section 3.10.2, BLK_LUT).

/// A word of the look-up table of a controller, and the bits that belong to some memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Word {
    /// The number of the word (BLK_IDX).
    pub index: u32,
    /// The bits.
    pub bits: u32,
}

/// Returns the words for the bytes from `first` to `last` of the memory that a controller guards, both
/// counted from the start of this memory. `shift` is the logarithm of the size of a block (BLK_CFG + 5). A
/// block of which only some bytes are named is left out: so nothing that was not named becomes Non-secure.
/// Bounded by the number of words.
pub fn words(first: u32, last: u32, shift: u32) -> impl Iterator<Item = Word> {
    let inside = 1_u32.wrapping_shl(shift).wrapping_sub(1);
    let from = first
        .wrapping_shr(shift)
        .saturating_add(u32::from(first & inside != 0));
    // One more than the last block.
    let to = last
        .wrapping_shr(shift)
        .saturating_add(u32::from(last & inside == inside));
    let (low, high) = (from >> 5, to.saturating_add(31) >> 5);
    (low..high.max(low)).filter_map(move |index| {
        let start = from.max(index << 5).wrapping_sub(index << 5);
        let end = to.saturating_sub(index << 5).min(32);
        let bits = below(end) & !below(start);
        (bits != 0).then_some(Word { index, bits })
    })
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
    fn a_block_of_64_kib_is_two_words() {
        let all: Vec<Word> = words(0x1_0000, 0x1_FFFF, 10).collect();
        let full = |index| Word {
            index,
            bits: u32::MAX,
        };
        assert_eq!(all, [full(2), full(3)]);
    }

    #[test]
    fn a_part_of_a_block_is_left_out() {
        assert_eq!(
            words(0x200, 0x7FF, 10).collect::<Vec<_>>(),
            [Word { index: 0, bits: 2 }]
        );
        assert_eq!(words(0x400, 0x7FE, 10).count(), 0);
        assert_eq!(words(0x410, 0x420, 10).count(), 0);
    }

    proptest! {
        #[test]
        fn each_block_has_its_bit(first in 0_u32..300, count in 1_u32..300) {
            let (start, last) = (first << 10, ((first + count) << 10) - 1);
            let mut found = std::vec![0_u32; 20];
            for word in words(start, last, 10) {
                found[word.index as usize] |= word.bits;
            }
            for block in 0..640 {
                let bit = found[block as usize / 32] >> (block % 32) & 1;
                prop_assert_eq!(bit == 1, (first..first + count).contains(&block));
            }
        }
    }
}
