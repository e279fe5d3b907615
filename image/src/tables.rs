// SPDX-License-Identifier: Apache-2.0
//! Where tables and payloads are: the one layout that follows from the counts.

use crate::error::{ImageError, Table};
use crate::layout::{END_MARK, PAYLOAD_ALIGN, Section};
use crate::limits::TABLE_ALIGN;
use zerocopy::{FromBytes, Immutable, KnownLayout};

/// Walks through the directory and hands out the tables in order.
pub(crate) struct Tables<'a> {
    bytes: &'a [u8],
    cursor: u64,
}

impl<'a> Tables<'a> {
    /// `bytes` end where the tables end; the first table starts behind `header_len`.
    pub fn new(bytes: &'a [u8], header_len: u64) -> Self {
        Self {
            bytes,
            cursor: header_len,
        }
    }

    /// The next table, of at least `min` and at most `max` records.
    pub fn take<R: FromBytes + Immutable + KnownLayout>(
        &mut self,
        table: Table,
        section: &Section,
        min: usize,
        max: usize,
    ) -> Result<&'a [R], ImageError> {
        let bytes = self.next(table, section, (min, max), size_of::<R>())?;
        <[R]>::ref_from_bytes(bytes).map_err(|_| ImageError::Lengths)
    }

    /// The bytes of the next table. Apart from [`Tables::take`], so that it exists once and not once per record.
    fn next(
        &mut self,
        table: Table,
        section: &Section,
        (min, max): (usize, usize),
        record_len: usize,
    ) -> Result<&'a [u8], ImageError> {
        let found = section.count.get();
        let count = usize::try_from(found)
            .ok()
            .filter(|count| (min..=max).contains(count))
            .ok_or(ImageError::Count { table, found })?;
        let start = self.cursor.next_multiple_of(TABLE_ALIGN);
        if u64::from(section.offset.get()) != start {
            return Err(ImageError::Misplaced(table));
        }
        let length = count.checked_mul(record_len).ok_or(ImageError::Lengths)?;
        let end = start.checked_add(length as u64).ok_or(ImageError::Lengths)?;
        let bytes = slice(self.bytes, start, end).ok_or(ImageError::Lengths)?;
        self.cursor = end;
        Ok(bytes)
    }

    /// Whether all bytes have been handed out.
    pub const fn is_finished(&self) -> bool {
        self.cursor == self.bytes.len() as u64
    }
}

/// Where the payload behind `end` starts; `None` beyond the address space.
pub(crate) fn payload_start(end: u64) -> Option<u64> {
    end.checked_next_multiple_of(PAYLOAD_ALIGN)
}

/// Bytes of an image whose last payload (or table) ends at `end`; `None` beyond the address space.
pub(crate) fn total_len(end: u64) -> Option<u64> {
    end.checked_next_multiple_of(TABLE_ALIGN)?
        .checked_add(END_MARK.len() as u64)
}

/// The bytes from `start` up to, not including, `end`, if they exist.
pub(crate) fn slice(bytes: &[u8], start: u64, end: u64) -> Option<&[u8]> {
    bytes.get(usize::try_from(start).ok()?..usize::try_from(end).ok()?)
}
