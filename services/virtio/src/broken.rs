// SPDX-License-Identifier: Apache-2.0
//! The rules that a driver can break.

use crate::memory::Outside;

/// A rule that the driver has broken. The device demands a reset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Broken {
    /// A part of a queue is not in the driver's memory.
    Outside(Outside),
    /// An index names no descriptor, or more chains than a queue holds.
    Index,
    /// A chain comes back to itself.
    Loop,
    /// A chain has too many segments, or too many bytes.
    TooLong,
    /// A buffer that the device reads comes after one that it writes.
    Order,
    /// A table of descriptors is not where one can be, or has a wrong size.
    Table,
    /// A request has a shape that its device does not know.
    Request,
}

impl From<Outside> for Broken {
    fn from(outside: Outside) -> Self {
        Self::Outside(outside)
    }
}
