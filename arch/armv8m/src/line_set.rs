// SPDX-License-Identifier: Apache-2.0
//! Sets of interrupt lines: a bit each, in words as the interrupt controller has them.

use crate::sysreg::MAX_LINES;

/// Words of the controller's banks of registers.
pub(crate) const WORDS: usize = MAX_LINES as usize / 32;

/// A set of lines.
pub(crate) type Lines = [u32; WORDS];

/// Returns the word that has a line.
pub(crate) fn word_of(line: u32) -> usize {
    line as usize >> 5
}

/// Returns the bit of a line in its word.
pub(crate) fn bit_of(line: u32) -> u32 {
    1_u32.wrapping_shl(line)
}

/// Tells whether the set has this line.
pub(crate) fn has(lines: &Lines, line: u32) -> bool {
    lines
        .get(word_of(line))
        .is_some_and(|word| word & bit_of(line) != 0)
}

/// Puts a line into the set, or takes it out.
pub(crate) fn set(lines: &mut Lines, line: u32, is_in: bool) {
    if let Some(word) = lines.get_mut(word_of(line)) {
        *word = if is_in {
            *word | bit_of(line)
        } else {
            *word & !bit_of(line)
        };
    }
}

/// Tells whether there is no line in the set.
pub(crate) fn is_empty(lines: &Lines) -> bool {
    let [a, b, c, d] = *lines;
    a | b | c | d == 0
}

/// Puts a line into the set.
pub(crate) fn insert(lines: &mut Lines, line: u32) {
    set(lines, line, true);
}

/// Takes a line out of the set.
pub(crate) fn remove(lines: &mut Lines, line: u32) {
    set(lines, line, false);
}

/// Returns the line with the lowest number. Bounded by the number of words.
pub(crate) fn lowest(lines: &Lines) -> Option<u32> {
    let (index, word) = (0_u32..).zip(lines).find(|(_, word)| **word != 0)?;
    Some(32 * index + word.trailing_zeros())
}
