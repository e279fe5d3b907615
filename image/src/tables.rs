// SPDX-License-Identifier: Apache-2.0
//! Where tables and payloads are: the one layout that follows from the counts.

use crate::error::ImageError;
use crate::layout::{END_MARK, Header, PAYLOAD_ALIGN, Start};
use crate::limits::{CORE, SHAPES, TABLE_ALIGN};
use bulkhead_abi::parts::{PARTS, Part, Parts};
use zerocopy::{FromBytes, Immutable, KnownLayout};

/// The name of a part that no variant has. A tool of this version asks for no other one.
const UNNAMED: &str = if cfg!(feature = "writer") {
    "?"
} else {
    Part::OwnPolicy.name()
};

/// Checks that this hypervisor has the parts that the system uses, that every table has a possible number of
/// records and starts where the one before it ends; `tables` end with the last. On the host, the tables of a
/// part that the image does not name are empty.
pub(crate) fn check_directory(tables: &[u8], header: &Header) -> Result<(), ImageError> {
    // Without a board record, the table of the board is the first one that is refused.
    let parts = Start::ref_from_prefix(tables).map_or(0, |(start, _)| start.board.parts.get());
    if !PARTS.covers(Parts(parts)) {
        return Err(ImageError::Lacks {
            part: Parts(parts).first_lacking().unwrap_or(UNNAMED),
        });
    }
    let parts = if cfg!(feature = "writer") {
        parts | 1 << CORE
    } else {
        u32::MAX
    };
    let mut end = size_of::<Header>() as u64;
    for (shape, section) in SHAPES.iter().zip(&header.sections) {
        let (table, found) = (shape.table, section.count.get());
        let max = if parts & 1 << shape.part == 0 {
            0
        } else {
            shape.max
        };
        if !(u32::from(shape.min)..=u32::from(max)).contains(&found) {
            return Err(ImageError::Count { table, found });
        }
        let start = end.next_multiple_of(TABLE_ALIGN);
        if u64::from(section.offset.get()) != start {
            return Err(ImageError::Misplaced(table));
        }
        end = start.saturating_add(u64::from(found).saturating_mul(shape.record_len.into()));
    }
    if end == tables.len() as u64 {
        Ok(())
    } else {
        Err(ImageError::Lengths)
    }
}

/// Returns the records of a table; `None` unless [`check_directory`] has passed.
pub(crate) fn records<'a, R>(tables: &'a [u8], header: &Header, index: usize) -> Option<&'a [R]>
where
    R: FromBytes + Immutable,
    [R]: KnownLayout<PointerMetadata = usize>,
{
    let section = header.sections.get(index)?;
    let bytes = tables.get(section.offset.get() as usize..)?;
    let (records, _) = <[R]>::ref_from_prefix_with_elems(bytes, section.count.get() as usize).ok()?;
    Some(records)
}

/// Returns where the payload after `end` starts; `None` beyond the address space.
pub(crate) fn payload_start(end: u64) -> Option<u64> {
    end.checked_next_multiple_of(PAYLOAD_ALIGN)
}

/// Returns the number of bytes of an image whose last payload (or table) ends at `end`; `None` beyond the
/// address space.
pub(crate) fn total_len(end: u64) -> Option<u64> {
    end.checked_next_multiple_of(TABLE_ALIGN)?
        .checked_add(END_MARK.len() as u64)
}

/// Returns the bytes from `start` up to, not including, `end`, if they exist.
pub(crate) fn slice(bytes: &[u8], start: u64, end: u64) -> Option<&[u8]> {
    bytes.get(usize::try_from(start).ok()?..usize::try_from(end).ok()?)
}
