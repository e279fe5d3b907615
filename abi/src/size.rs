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

/// pCPUs a system can use. A microcontroller has one, unless its class binary has the part `second-pcpu`.
pub const MAX_PCPUS: usize = own("pcpus", limit(if HAS_SECOND { 2 } else { 1 }, 8));

/// True if this build is for a microcontroller with two pCPUs.
pub const HAS_SECOND: bool = IS_SMALL && cfg!(feature = "second-pcpu");

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

/// The tables of a class binary that is built for one system: `NAME=RECORDS`, with commas between.
const OWN_TABLES: Option<&str> = option_env!("BULKHEAD_TABLES");

/// Returns the limit of the table with this name: for a class binary that is built for one system the records
/// that the system has, and at least one, else `most`.
#[must_use]
pub const fn own(name: &str, most: usize) -> usize {
    let Some(tables) = OWN_TABLES else { return most };
    match number(tables.as_bytes(), name.as_bytes()) {
        Some(0) => 1,
        Some(records) if records < most => records,
        _ => most,
    }
}

/// Returns the number after `name=` in a list with commas.
const fn number(mut list: &[u8], name: &[u8]) -> Option<usize> {
    loop {
        if let Some(value) = value(list, name) {
            return Some(value);
        }
        // The next entry is after the next comma.
        loop {
            match list {
                [] => return None,
                [b',', rest @ ..] => {
                    list = rest;
                    break;
                }
                [_, rest @ ..] => list = rest,
            }
        }
    }
}

/// Returns the number of the first entry of a list, if the entry has this name.
const fn value(mut list: &[u8], mut name: &[u8]) -> Option<usize> {
    while let [wanted, names @ ..] = name {
        match list {
            [found, rest @ ..] if *found == *wanted => list = rest,
            _ => return None,
        }
        name = names;
    }
    let [b'=', digits @ ..] = list else { return None };
    let (mut digits, mut value) = (digits, 0);
    while let [digit @ b'0'..=b'9', rest @ ..] = digits {
        value = value * 10 + (*digit - b'0') as usize;
        digits = rest;
    }
    Some(value)
}

/// Returns the limit for the tables of this build.
#[must_use]
pub const fn limit(small: usize, large: usize) -> usize {
    TABLES.limit(small, large)
}

#[cfg(test)]
mod tests {
    use super::number;

    #[test]
    fn the_records_of_a_table_are_found_by_its_whole_name() {
        let list = b"vcpus=2,pcpus=12,ports=0";
        assert_eq!(number(list, b"vcpus"), Some(2));
        assert_eq!(number(list, b"pcpus"), Some(12));
        assert_eq!(number(list, b"ports"), Some(0));
        assert_eq!(number(list, b"cpus"), None);
        assert_eq!(number(list, b"port"), None);
        assert_eq!(number(b"", b"ports"), None);
    }
}
