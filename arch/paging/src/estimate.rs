// SPDX-License-Identifier: Apache-2.0
//! Estimates the number of tables that a tree will need, before there is one.

use crate::format::Format;
use crate::geometry::{Geometry, LAST_LEVEL, span_of};
use crate::tree::Mapping;
use core::ops::Range;

/// Returns the number of tables that a tree with these mappings needs, its root included. Two mappings that
/// share a table have it counted once. The time grows with the tables, and with the square of the mappings.
///
/// A mapping needs a table below every entry that it touches and that cannot be a block: those at its two
/// ends, which it covers in part, or all of them, if input and output are not aligned to each other.
pub fn tables_needed<'m, F: Format>(
    geometry: Geometry,
    mappings: impl IntoIterator<Item = &'m Mapping> + Clone,
) -> u64 {
    let levels = geometry.start_level()..LAST_LEVEL;
    let below_root = levels.map(|level| of_level::<F>(level, mappings.clone()));
    below_root.fold(geometry.root_tables(), u64::saturating_add)
}

/// Returns the number of entries of `level` that lead to tables.
fn of_level<'m, F: Format>(level: u8, mappings: impl IntoIterator<Item = &'m Mapping> + Clone) -> u64 {
    let mut all = 0_u64;
    for (number, mapping) in mappings.clone().into_iter().enumerate() {
        for entry in split::<F>(level, mapping).into_iter().flatten() {
            let mut earlier = mappings.clone().into_iter().take(number);
            let is_counted = earlier.any(|mapping| {
                let mut parts = split::<F>(level, mapping).into_iter();
                parts.any(|part| part.contains(&entry))
            });
            all = all.saturating_add(u64::from(!is_counted));
        }
    }
    all
}

/// Returns the numbers of the entries of `level` that a mapping touches and that cannot be blocks: before
/// those that it covers whole, and after them.
fn split<F: Format>(level: u8, mapping: &Mapping) -> [Range<u64>; 2] {
    let span = span_of(level);
    let end = mapping.input.saturating_add(mapping.size);
    let (first, behind) = (index_of(mapping.input, level), index_behind(end, level));
    let aligned_to_each_other = (mapping.input ^ mapping.output.0).is_multiple_of(span);
    let (first_whole, behind_whole) = (index_behind(mapping.input, level), index_of(end, level));
    if !F::has_blocks(level) || !aligned_to_each_other || first_whole >= behind_whole {
        return [first..behind, behind..behind];
    }
    [first..first_whole, behind_whole..behind]
}

/// Returns the number of the entry of `level` that covers `address`, counted from address 0.
const fn index_of(address: u64, level: u8) -> u64 {
    address >> span_of(level).trailing_zeros()
}

/// Returns the number of the first entry of `level` that covers nothing below `address`.
const fn index_behind(address: u64, level: u8) -> u64 {
    index_of(address.saturating_add(span_of(level).saturating_sub(1)), level)
}
