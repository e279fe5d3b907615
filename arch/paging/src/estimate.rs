// SPDX-License-Identifier: Apache-2.0
//! Estimates the number of tables that a tree will need, before there is one.

use crate::format::Format;
use crate::geometry::{Geometry, LAST_LEVEL, span_of};
use crate::tree::Mapping;

/// Tables that a tree with these mappings needs at most, its root included. Exact for a single mapping; two
/// mappings that share a table have it counted for each.
///
/// A mapping needs a table below every entry that it touches and that cannot be a block: those at its two
/// ends, which it covers in part, or all of them, if input and output are not aligned to each other.
pub fn tables_needed<'m, F: Format>(
    geometry: Geometry,
    mappings: impl IntoIterator<Item = &'m Mapping>,
) -> u64 {
    let below_root = mappings
        .into_iter()
        .map(|mapping| of_mapping::<F>(geometry, mapping));
    below_root.fold(geometry.root_tables(), u64::saturating_add)
}

fn of_mapping<F: Format>(geometry: Geometry, mapping: &Mapping) -> u64 {
    let levels = geometry.start_level()..LAST_LEVEL;
    levels
        .map(|level| of_level::<F>(level, mapping))
        .fold(0, u64::saturating_add)
}

/// Entries of `level` that lead to tables.
fn of_level<F: Format>(level: u8, mapping: &Mapping) -> u64 {
    let span = span_of(level);
    let end = mapping.input.saturating_add(mapping.size);
    let (first, behind) = (index_of(mapping.input, level), index_behind(end, level));
    let touched = behind.saturating_sub(first);
    let aligned_to_each_other = (mapping.input ^ mapping.output.0).is_multiple_of(span);
    if !F::has_blocks(level) || !aligned_to_each_other {
        return touched;
    }
    let (first_whole, behind_whole) = (index_behind(mapping.input, level), index_of(end, level));
    touched.saturating_sub(behind_whole.saturating_sub(first_whole))
}

/// Returns the number of the entry of `level` that covers `address`, counted from address 0.
const fn index_of(address: u64, level: u8) -> u64 {
    address >> span_of(level).trailing_zeros()
}

/// Returns the number of the first entry of `level` that covers nothing below `address`.
const fn index_behind(address: u64, level: u8) -> u64 {
    index_of(address.saturating_add(span_of(level).saturating_sub(1)), level)
}
