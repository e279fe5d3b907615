// SPDX-License-Identifier: Apache-2.0
//! Writes a plan.

use crate::{ALIGNMENT, Header, MAGIC, Piece, PieceRecord, Range, RangeRecord};
use alloc::vec::Vec;
use zerocopy::IntoBytes;

/// Returns the plan with these pieces, for a system that uses the memory of `ranges`. A place that is not a
/// multiple of [`ALIGNMENT`], or more than [`crate::MAX_RECORDS`], makes a plan that no loader takes.
#[must_use]
pub fn write(entry: u64, pieces: &[Piece<'_>], ranges: &[Range]) -> Vec<u8> {
    let header = Header {
        magic: MAGIC,
        entry: entry.into(),
        pieces: (pieces.len() as u32).into(),
        ranges: (ranges.len() as u32).into(),
    };
    let records = size_of::<Header>()
        + pieces.len() * size_of::<PieceRecord>()
        + ranges.len() * size_of::<RangeRecord>();
    let mut plan = Vec::new();
    let mut bytes = Vec::new();
    plan.extend_from_slice(header.as_bytes());
    for piece in pieces {
        pad(&mut bytes);
        let record = PieceRecord {
            to: piece.memory.base.into(),
            memory: up(piece.memory.length).into(),
            from: (up(records as u64) + bytes.len() as u64).into(),
            length: up(piece.bytes.len() as u64).into(),
        };
        plan.extend_from_slice(record.as_bytes());
        bytes.extend_from_slice(piece.bytes);
    }
    for range in ranges {
        let record = RangeRecord {
            base: range.base.into(),
            length: range.length.into(),
        };
        plan.extend_from_slice(record.as_bytes());
    }
    pad(&mut plan);
    pad(&mut bytes);
    plan.extend_from_slice(&bytes);
    plan
}

/// Returns the number, rounded up to a multiple of [`ALIGNMENT`].
fn up(number: u64) -> u64 {
    number.next_multiple_of(ALIGNMENT)
}

fn pad(bytes: &mut Vec<u8>) {
    bytes.resize(bytes.len().next_multiple_of(ALIGNMENT as usize), 0);
}
