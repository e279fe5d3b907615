// SPDX-License-Identifier: Apache-2.0
//! A stretch of an address space, never empty and never wrapped.

use crate::error::Fault;

/// The addresses from `start` up to, not including, `end`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    pub start: u64,
    pub end: u64,
}

impl Span {
    /// `size` bytes from `start` on.
    pub fn new(start: u64, size: u64) -> Result<Self, Fault> {
        if size == 0 {
            return Err(Fault::Empty);
        }
        let end = start.checked_add(size).ok_or(Fault::Overflow)?;
        Ok(Self { start, end })
    }

    /// Like [`Span::new`], for whole granules.
    pub fn granules(start: u64, size: u64, granule: u64) -> Result<Self, Fault> {
        let span = Self::new(start, size)?;
        if !start.is_multiple_of(granule) || !size.is_multiple_of(granule) {
            return Err(Fault::Unaligned);
        }
        Ok(span)
    }

    /// Whether an address is in both.
    pub const fn overlaps(self, other: Self) -> bool {
        self.start < other.end && other.start < self.end
    }

    /// Whether all of `other` is in `self`.
    pub const fn covers(self, other: Self) -> bool {
        self.start <= other.start && other.end <= self.end
    }

    /// Whether `address` is in `self`.
    pub const fn contains(self, address: u64) -> bool {
        self.start <= address && address < self.end
    }
}
