// SPDX-License-Identifier: Apache-2.0
//! The memory of a system against a firmware's map of memory.

use crate::Range;

/// The first memory that a system cannot have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault<K> {
    /// The firmware keeps the memory.
    Kept(Range, K),
    /// The map does not know the memory.
    Missing(Range),
}

/// Looks whether a map covers a range with memory that is free. `map` gives stretches of memory in any order,
/// each with its kind, and `is_free` tells the kinds. Time grows with the square of the stretches: each turn
/// goes on after a stretch.
///
/// # Errors
/// [`Fault`], with the part of the range that it is about.
pub fn covered<K: Copy>(
    needed: Range,
    map: impl ExactSizeIterator<Item = (Range, K)> + Clone,
    is_free: impl Fn(K) -> bool,
) -> Result<(), Fault<K>> {
    let mut left = needed;
    for _ in 0..=map.len() {
        if left.length == 0 {
            return Ok(());
        }
        let first = Range { length: 1, ..left };
        let holds = |(stretch, _): &(Range, K)| stretch.overlaps(first);
        let (stretch, kind) = map.clone().find(holds).ok_or(Fault::Missing(left))?;
        let end = stretch.end().min(left.end());
        let (part, rest) = (end - left.base, left.end() - end);
        if !is_free(kind) {
            return Err(Fault::Kept(Range { length: part, ..left }, kind));
        }
        left = Range {
            base: end,
            length: rest,
        };
    }
    Err(Fault::Missing(left))
}
