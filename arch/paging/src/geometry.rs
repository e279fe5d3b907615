// SPDX-License-Identifier: Apache-2.0
//! Levels, spans and indices of a tree with 4 KiB tables.
//!
//! Levels are numbered as in the Arm architecture: 3 is the level of pages, each level above covers 512 times
//! as much with an entry. A tree starts at the level that its input size needs. A stage-2 tree may instead
//! start one level further down with up to 16 tables side by side, as if they were one larger table (Arm DDI
//! 0487 chapter D8, "Concatenated translation tables"): one read less on every walk.

/// Bytes of a page, and of a table.
pub const PAGE_SIZE: u64 = 1 << PAGE_SHIFT;
/// Entries of a table.
pub const ENTRIES: usize = 1 << INDEX_BITS;
/// The level of pages.
pub const LAST_LEVEL: u8 = 3;

const PAGE_SHIFT: u32 = 12;
const INDEX_BITS: u32 = 9;
/// Bits by which concatenation can enlarge the first index.
const CONCATENATION_BITS: u32 = 4;
/// Sizes of input and output addresses without the large-address extensions (FEAT_LPA2).
const MAX_BITS: u32 = 48;

/// Returns the number of bytes that an entry of `level` covers.
#[must_use]
#[inline(always)]
pub const fn span_of(level: u8) -> u64 {
    1 << shift_of(level)
}

/// Returns the number of bits of an address below the index of `level`.
#[inline(always)]
const fn shift_of(level: u8) -> u32 {
    let below = LAST_LEVEL.saturating_sub(level) as u32;
    PAGE_SHIFT.saturating_add(INDEX_BITS.saturating_mul(below))
}

/// The input size cannot be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GeometryError {
    /// The bits asked for.
    pub input_bits: u8,
}

/// Size and first level of a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Geometry {
    input_bits: u8,
    start_level: u8,
    /// Entries of all root tables taken together, a power of two.
    root_entries: u16,
}

impl Geometry {
    /// Describes a tree with one root table, for input addresses of so many bits (22..=48).
    ///
    /// # Errors
    /// [`GeometryError`] for another number.
    pub const fn single_root(input_bits: u8) -> Result<Self, GeometryError> {
        Self::with_root_bits(input_bits, INDEX_BITS)
    }

    /// Describes a tree with up to 16 root tables side by side, for input addresses of so many bits
    /// (22..=48).
    ///
    /// | input bits | first level | root tables |
    /// |---|---|---|
    /// | 36 | 1 | 1 |
    /// | 39 | 1 | 1 |
    /// | 40 | 1 | 2 |
    /// | 43 | 1 | 16 |
    /// | 44 | 0 | 1 |
    ///
    /// # Errors
    /// [`GeometryError`] for another number.
    pub const fn concatenated_root(input_bits: u8) -> Result<Self, GeometryError> {
        Self::with_root_bits(input_bits, INDEX_BITS.saturating_add(CONCATENATION_BITS))
    }

    const fn with_root_bits(input_bits: u8, root_bits: u32) -> Result<Self, GeometryError> {
        let bits = input_bits as u32;
        // At least one level above the pages', so that there are blocks.
        if bits <= PAGE_SHIFT.saturating_add(INDEX_BITS) || bits > MAX_BITS {
            return Err(GeometryError { input_bits });
        }
        let mut start_level = LAST_LEVEL.saturating_sub(1);
        while start_level > 0 && bits > shift_of(start_level).saturating_add(root_bits) {
            start_level = start_level.saturating_sub(1);
        }
        let limit = 1_u64.wrapping_shl(bits);
        Ok(Self {
            input_bits,
            start_level,
            // At most 16 tables of 512.
            root_entries: (limit >> shift_of(start_level)) as u16,
        })
    }

    /// Returns the number of bits of an input address.
    #[must_use]
    pub const fn input_bits(self) -> u8 {
        self.input_bits
    }

    /// Returns the first input address that the tree cannot map.
    #[must_use]
    pub const fn input_limit(self) -> u64 {
        1_u64.wrapping_shl(self.input_bits as u32)
    }

    /// Returns the level of the root.
    #[must_use]
    pub const fn start_level(self) -> u8 {
        self.start_level
    }

    /// Tables side by side that make up the root. The first is aligned to their total size.
    #[must_use]
    pub const fn root_tables(self) -> u64 {
        (self.root_entries as u64).div_ceil(ENTRIES as u64)
    }

    /// Returns the index of `input` in a table of `level`; at the first level, in all root tables taken
    /// together.
    #[inline(always)]
    pub(crate) const fn index(self, level: u8, input: u64) -> usize {
        let index = (input >> shift_of(level)) as usize;
        let entries = if level == self.start_level {
            self.root_entries as usize
        } else {
            ENTRIES
        };
        // Both are powers of two.
        index & entries.saturating_sub(1)
    }
}

#[cfg(test)]
mod tests {
    use super::{Geometry, GeometryError, span_of};

    fn concatenated(bits: u8) -> (u8, u64) {
        let geometry = Geometry::concatenated_root(bits).unwrap();
        (geometry.start_level(), geometry.root_tables())
    }

    #[test]
    fn concatenation_saves_a_level_where_it_can() {
        assert_eq!(concatenated(32), (2, 4));
        assert_eq!(concatenated(34), (2, 16));
        assert_eq!(concatenated(36), (1, 1));
        assert_eq!(concatenated(39), (1, 1));
        assert_eq!(concatenated(40), (1, 2));
        assert_eq!(concatenated(43), (1, 16));
        assert_eq!(concatenated(44), (0, 1));
        assert_eq!(concatenated(48), (0, 1));
    }

    #[test]
    fn a_single_root_starts_where_its_table_suffices() {
        let start = |bits| Geometry::single_root(bits).unwrap().start_level();
        assert_eq!(
            [start(30), start(31), start(39), start(40), start(48)],
            [2, 1, 1, 0, 0]
        );
    }

    #[test]
    fn impossible_sizes_are_refused() {
        for input_bits in [0, 12, 21, 49, 64, 255] {
            assert_eq!(
                Geometry::single_root(input_bits),
                Err(GeometryError { input_bits })
            );
            assert_eq!(
                Geometry::concatenated_root(input_bits),
                Err(GeometryError { input_bits })
            );
        }
    }

    #[test]
    fn spans_are_those_of_the_architecture() {
        assert_eq!(
            [span_of(0), span_of(1), span_of(2), span_of(3)],
            [1 << 39, 1 << 30, 2 << 20, 4096]
        );
    }

    #[test]
    fn the_first_index_runs_through_all_root_tables() {
        let geometry = Geometry::concatenated_root(40).unwrap();
        assert_eq!(geometry.index(1, (1 << 40) - 1), 1023);
        assert_eq!(geometry.index(2, (1 << 40) - 1), 511);
    }
}
