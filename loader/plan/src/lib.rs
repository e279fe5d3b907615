// SPDX-License-Identifier: Apache-2.0
//! The plan of a start: which bytes a loader puts where in the board's memory, and where it jumps.
//!
//! The host tool knows the file formats of the classes and the memory of the system. A loader on the board
//! knows neither. It finds a plan after its own code, asks the firmware about the memory of the plan, copies,
//! and jumps.
//!
//! | part of a plan | contents |
//! |---|---|
//! | header | [`MAGIC`], entry, numbers of pieces and of ranges |
//! | pieces | where the bytes are in the plan, and where they go |
//! | ranges | the memory that the system will use |
//! | bytes | the bytes of the pieces, each piece aligned to [`ALIGNMENT`] |
#![no_std]
#![forbid(unsafe_code)]

#[cfg(feature = "writer")]
extern crate alloc;

mod cover;
#[cfg(feature = "writer")]
mod writer;

pub use cover::{Fault, covered};
#[cfg(feature = "writer")]
pub use writer::write;

use core::fmt;
use zerocopy::little_endian::{U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// The first bytes of a plan, and the number of its format.
pub const MAGIC: [u8; 16] = *b"BULKHEAD START\0\x01";
/// Bytes of a piece, and its places, are multiples of this number, so that a loader copies words.
pub const ALIGNMENT: u64 = 16;
/// Most pieces, and most ranges, of a plan.
pub const MAX_RECORDS: u32 = 256;

/// The first record of a plan.
#[derive(Clone, Copy, Debug, FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned)]
#[repr(C)]
struct Header {
    magic: [u8; 16],
    entry: U64,
    pieces: U32,
    ranges: U32,
}

/// Bytes that go to a place in memory. The memory after them is cleared, up to `memory` bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned)]
#[repr(C)]
struct PieceRecord {
    to: U64,
    memory: U64,
    from: U64,
    length: U64,
}

/// Memory by bus address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    /// The first address.
    pub base: u64,
    /// The number of bytes.
    pub length: u64,
}

impl Range {
    /// Returns the first address after the range.
    #[must_use]
    pub const fn end(self) -> u64 {
        self.base.saturating_add(self.length)
    }

    /// Tells whether the ranges have an address in common.
    #[must_use]
    pub const fn overlaps(self, other: Self) -> bool {
        self.base < other.end() && other.base < self.end()
    }
}

#[derive(Clone, Copy, Debug, FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned)]
#[repr(C)]
struct RangeRecord {
    base: U64,
    length: U64,
}

/// Bytes that go to a place in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece<'a> {
    /// The place by bus address. The memory after the bytes is cleared.
    pub memory: Range,
    /// The bytes: no more than the memory.
    pub bytes: &'a [u8],
}

/// The reason why bytes are no plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlanError {
    /// There are other bytes than a plan's, or the plan of another format.
    NotAPlan,
    /// The plan ends before its last record or byte.
    Short,
    /// A record contradicts the rules of a plan.
    Record,
}

impl fmt::Display for PlanError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotAPlan => "there is no system in this file",
            Self::Short => "the system in this file is cut short",
            Self::Record => "the system in this file is damaged",
        })
    }
}

/// A plan whose records are right.
#[derive(Clone, Copy, Debug)]
pub struct Plan<'a> {
    bytes: &'a [u8],
    header: &'a Header,
    pieces: &'a [PieceRecord],
    ranges: &'a [RangeRecord],
}

impl<'a> Plan<'a> {
    /// Reads a plan. More bytes may follow it. Time grows with the records, of which there are at most
    /// [`MAX_RECORDS`] of each kind.
    ///
    /// # Errors
    /// [`PlanError`]
    pub fn read(bytes: &'a [u8]) -> Result<Self, PlanError> {
        let (header, rest) = Header::ref_from_prefix(bytes).map_err(|_| PlanError::NotAPlan)?;
        if header.magic != MAGIC {
            return Err(PlanError::NotAPlan);
        }
        let (pieces, ranges) = (header.pieces.get(), header.ranges.get());
        if pieces == 0 || pieces > MAX_RECORDS || ranges > MAX_RECORDS {
            return Err(PlanError::Record);
        }
        let (pieces, rest) = <[PieceRecord]>::ref_from_prefix_with_elems(rest, pieces as usize)
            .map_err(|_| PlanError::Short)?;
        let (ranges, _) = <[RangeRecord]>::ref_from_prefix_with_elems(rest, ranges as usize)
            .map_err(|_| PlanError::Short)?;
        let plan = Self {
            bytes,
            header,
            pieces,
            ranges,
        };
        let mut known = plan.pieces.iter();
        known.try_for_each(|record| plan.look(record))?;
        let mut ranges = plan.ranges();
        if ranges.any(|range| range.base.checked_add(range.length).is_none()) {
            return Err(PlanError::Record);
        }
        let mut pieces = plan.pieces();
        let at_entry =
            pieces.any(|piece| piece.memory.base <= plan.entry() && plan.entry() < piece.memory.end());
        at_entry.then_some(plan).ok_or(PlanError::Record)
    }

    /// Looks at the rules of one record: it is aligned, its bytes are there, and it has room for them.
    fn look(&self, record: &PieceRecord) -> Result<(), PlanError> {
        let numbers = [record.to, record.memory, record.from, record.length].map(U64::get);
        let [to, memory, _, length] = numbers;
        let aligned = numbers.iter().all(|number| number.is_multiple_of(ALIGNMENT));
        if !aligned || length > memory || to.checked_add(memory).is_none() {
            return Err(PlanError::Record);
        }
        self.bytes_of(record).map(|_| ()).ok_or(PlanError::Short)
    }

    fn bytes_of(&self, record: &PieceRecord) -> Option<&'a [u8]> {
        let from = usize::try_from(record.from.get()).ok()?;
        let length = usize::try_from(record.length.get()).ok()?;
        self.bytes.get(from..from.checked_add(length)?)
    }

    /// Returns the address at which the hypervisor begins.
    #[must_use]
    pub fn entry(&self) -> u64 {
        self.header.entry.get()
    }

    /// Returns the pieces, in the order in which they are copied.
    pub fn pieces(&self) -> impl Iterator<Item = Piece<'a>> + use<'_, 'a> {
        self.pieces.iter().map(|record| Piece {
            memory: Range {
                base: record.to.get(),
                length: record.memory.get(),
            },
            bytes: self.bytes_of(record).unwrap_or_default(),
        })
    }

    /// Returns the memory that the system will use.
    pub fn ranges(&self) -> impl Iterator<Item = Range> + use<'_, 'a> {
        self.ranges.iter().map(|record| Range {
            base: record.base.get(),
            length: record.length.get(),
        })
    }
}
