// SPDX-License-Identifier: Apache-2.0
//! Spaces of partitions: regions become mappings of a tree, and stretches of memory are found in it.

use bulkhead_arch_api::{BuildError, CopyError, GuestPhys, MemoryKind, Region};
use bulkhead_arch_paging::{Attributes, Format, MapError, Mapping, TableMemory, Translation, Tree};

fn build_error(error: MapError, region: &Region) -> BuildError {
    match error {
        MapError::OutOfTables => BuildError::TablesExhausted,
        MapError::BadRange => BuildError::BadRegion(region.guest),
        MapError::Overlap(address) => BuildError::Overlap(GuestPhys(address)),
    }
}

/// Maps a region of a partition.
///
/// # Errors
/// [`BuildError`]; part of the region may then be mapped.
pub fn map_region<F: Format, M: TableMemory>(
    tree: &Tree<F>,
    memory: &mut M,
    region: &Region,
) -> Result<(), BuildError> {
    let mapping = Mapping {
        input: region.guest.0,
        output: region.host,
        size: region.size,
        attributes: Attributes {
            permissions: region.permissions,
            kind: region.kind,
        },
    };
    tree.map(memory, &mapping)
        .map_err(|error| build_error(error, region))
}

/// Calls `action` with what each piece of a stretch of partition memory is, bytes done and bytes of it.
///
/// # Errors
/// [`CopyError`] at the first byte that is not memory.
#[inline]
pub fn each_run<F: Format, M: TableMemory>(
    tree: Option<Tree<F>>,
    memory: &M,
    guest: GuestPhys,
    length: u64,
    mut action: impl FnMut(&Translation, u64, u64),
) -> Result<(), CopyError> {
    let tree = tree.ok_or(CopyError { address: guest })?;
    let mut done = 0;
    while done < length {
        let at = guest.offset(done).map_err(|_| CopyError { address: guest })?;
        let run = tree.translate_run(memory, at.0, length - done);
        let Some(found) = run.filter(|found| found.attributes.kind == MemoryKind::Ram) else {
            return Err(CopyError { address: at });
        };
        let bytes = found.contiguous.min(length - done);
        action(&found, done, bytes);
        done += bytes;
    }
    Ok(())
}

/// Returns the part of a buffer that a piece is about.
#[inline]
#[must_use]
pub fn part(done: u64, bytes: u64) -> core::ops::Range<usize> {
    done as usize..(done + bytes) as usize
}
