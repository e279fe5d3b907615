// SPDX-License-Identifier: Apache-2.0
//! The format of an entry.

use bulkhead_arch_api::{HostPhys, MemoryKind, Permissions};

/// The attributes of a mapping, apart from where it leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attributes {
    /// The rights.
    pub permissions: Permissions,
    /// The kind of memory.
    pub kind: MemoryKind,
}

/// An entry, decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entry {
    /// Leads nowhere.
    Invalid,
    /// Leads to a table of the next level.
    Table(HostPhys),
    /// Leads to memory: a block, or at the last level a page.
    Leaf(HostPhys, Attributes),
}

/// The entries of one kind of table. The invalid entry is 0 in all of them, and an output address stands in
/// its entry at its own place: of two leaves side by side in both address spaces the second is larger by the
/// span of their level.
pub trait Format {
    /// Tells whether an entry of `level` can be a block. Pages always can.
    fn has_blocks(level: u8) -> bool;
    /// Returns the entry of `level` that leads to memory at `output`, which is aligned to the level's span.
    fn leaf(level: u8, output: HostPhys, attributes: Attributes) -> u64;
    /// Returns the entry that leads to a table of the next level.
    fn table(table: HostPhys) -> u64;
    /// Decodes an entry of `level`. For attributes that the format cannot express, `leaf` writes the nearest
    /// that allow less of what can be withheld, and that is what `decode` returns.
    fn decode(level: u8, entry: u64) -> Entry;
}
