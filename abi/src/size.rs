// SPDX-License-Identifier: Apache-2.0
//! The sizes of a class's tables.
//!
//! Microcontrollers have a few hundred kilobytes of memory for everybody, so the limits of the hypervisor
//! built for them are lower. Their class binaries select the feature `small-tables`. Each limit is one
//! constant where it belongs, of two values. The host tool serves all classes: its own tables are the large
//! ones, and it takes the limits of a class by the [`Tables`] of that class. The abilities of a class never
//! depend on the size of its tables.

/// The size of the tables of a class binary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tables {
    /// For a microcontroller.
    Small,
    /// For everything else.
    Large,
}

impl Tables {
    /// Returns the limit for tables of this size.
    #[must_use]
    pub const fn limit(self, small: usize, large: usize) -> usize {
        match self {
            Self::Small => small,
            Self::Large => large,
        }
    }
}

/// The size of the tables of this build.
pub const TABLES: Tables = if IS_SMALL { Tables::Small } else { Tables::Large };

/// True if the tables of this build are small.
pub const IS_SMALL: bool = cfg!(feature = "small-tables");

/// True if this build has ports and locks. A class binary with small tables has them only as a variant, which
/// takes more memory: the feature `messages`.
pub const HAS_MESSAGES: bool = !IS_SMALL || cfg!(feature = "messages");

/// A number that the places of a class's longest tables have.
#[cfg(feature = "small-tables")]
pub type TablePlace = u8;
/// A number that the places of a class's longest tables have.
#[cfg(not(feature = "small-tables"))]
pub type TablePlace = u16;

/// A register of the class's guests, as far as reports show it.
#[cfg(feature = "small-tables")]
pub type Register = u32;
/// A register of the class's guests, as far as reports show it.
#[cfg(not(feature = "small-tables"))]
pub type Register = u64;

/// Returns the limit for the tables of this build.
#[must_use]
pub const fn limit(small: usize, large: usize) -> usize {
    TABLES.limit(small, large)
}
