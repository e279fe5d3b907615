// SPDX-License-Identifier: Apache-2.0
//! The measurements of a system that runs.

#[cfg(doc)]
use crate::Operation;

/// The things that [`Operation::PartitionMeasure`] measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Measurement {
    /// The programs and data that the partition is started with: the digests of its payloads, in their order,
    /// and then of its stretches of code memory. Each is appended to the measurement so far, which starts as
    /// 32 zeros, and SHA-256 of both is the next.
    Partition = 0,
    /// The tables of the system image.
    System = 1,
    /// The class binary.
    ClassBinary = 2,
}

impl Measurement {
    /// Returns the measurement with this number, if there is one.
    #[must_use]
    pub const fn from_number(number: u64) -> Option<Self> {
        match number {
            0 => Some(Self::Partition),
            1 => Some(Self::System),
            2 => Some(Self::ClassBinary),
            _ => None,
        }
    }
}
