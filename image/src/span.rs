// SPDX-License-Identifier: Apache-2.0
//! A stretch of an address space, never empty and never wrapped.
//!
//! Its bounds are as wide as the addresses of the machine that checks: on a microcontroller what lies beyond
//! 4 GiB leaves the address space, and no comparison needs 64 bits.

use crate::error::Fault;

/// The addresses from `start` up to, not including, `end`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    pub start: usize,
    pub end: usize,
}

impl Span {
    /// Makes a span of `size` bytes from `start` on.
    pub fn new(start: u64, size: u64) -> Result<Self, Fault> {
        if size == 0 {
            return Err(Fault::Empty);
        }
        let (Ok(start), Ok(size)) = (usize::try_from(start), usize::try_from(size)) else {
            return Err(Fault::Overflow);
        };
        let end = start.checked_add(size).ok_or(Fault::Overflow)?;
        Ok(Self { start, end })
    }

    /// Makes a span as [`Span::new`] does, of whole granules of a power of two.
    pub fn granules(start: u64, size: u64, granule: u64) -> Result<Self, Fault> {
        let span = Self::new(start, size)?;
        if (span.start | span.end) & (granule as usize).wrapping_sub(1) != 0 {
            return Err(Fault::Unaligned);
        }
        Ok(span)
    }

    /// Tells whether an address is in both.
    pub const fn overlaps(self, other: Self) -> bool {
        self.start < other.end && other.start < self.end
    }

    /// Tells whether all of `other` is in `self`.
    pub const fn covers(self, other: Self) -> bool {
        self.start <= other.start && other.end <= self.end
    }

    /// Tells whether `address` is in `self`.
    pub fn contains(self, address: u64) -> bool {
        usize::try_from(address).is_ok_and(|address| self.start <= address && address < self.end)
    }
}
