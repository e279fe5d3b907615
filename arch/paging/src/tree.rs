// SPDX-License-Identifier: Apache-2.0
//! Mapping, protecting and translating.

use crate::format::{Attributes, Entry, Format};
use crate::geometry::{ENTRIES, Geometry, LAST_LEVEL, PAGE_SIZE, span_of};
use crate::memory::TableMemory;
use bulkhead_arch_api::{HostPhys, Permissions};
use core::marker::PhantomData;

/// First output address that an entry cannot hold.
const OUTPUT_LIMIT: u64 = 1 << 48;

/// A stretch of input addresses and where it leads. All numbers are multiples of the page size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mapping {
    /// First input address: a guest-physical one for stage 2, a virtual one for stage 1.
    pub input: u64,
    /// First address on the bus.
    pub output: HostPhys,
    /// Bytes.
    pub size: u64,
    /// The attributes of the stretch.
    pub attributes: Attributes,
}

/// Where an input address leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Translation {
    /// The address on the bus.
    pub output: HostPhys,
    /// Bytes from here to the end of the block or page: the same answer holds for all of them.
    pub contiguous: u64,
    /// The attributes of the mapping.
    pub attributes: Attributes,
}

/// Why a tree was not changed as asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MapError {
    /// No memory left for tables.
    OutOfTables,
    /// Not whole pages, nothing at all, or beyond what input or output addresses can be.
    BadRange,
    /// The input address is mapped already.
    Overlap(u64),
}

/// The treatment of addresses that are mapped already.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mapped {
    Refuse,
    Keep,
}

/// An entry and where it is.
#[derive(Clone, Copy)]
struct EntryPosition {
    table: HostPhys,
    level: u8,
    index: usize,
}

/// A tree of translation tables in a [`TableMemory`]. The value itself is only a name for it.
#[derive(Debug)]
pub struct Tree<F> {
    root: HostPhys,
    geometry: Geometry,
    format: PhantomData<fn() -> F>,
}

impl<F> Clone for Tree<F> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<F> Copy for Tree<F> {}

impl<F: Format> Tree<F> {
    /// Returns the tree with this root: [`Geometry::root_tables`] tables side by side, all zero for an empty
    /// tree.
    #[must_use]
    pub const fn new(root: HostPhys, geometry: Geometry) -> Self {
        Self {
            root,
            geometry,
            format: PhantomData,
        }
    }

    /// Returns the root, for the register that tells the CPU.
    #[must_use]
    pub const fn root(&self) -> HostPhys {
        self.root
    }

    /// Returns the size and first level.
    #[must_use]
    pub const fn geometry(&self) -> Geometry {
        self.geometry
    }

    /// Maps a stretch of which nothing is mapped yet. Bounded by the blocks and pages it takes.
    ///
    /// # Errors
    /// [`MapError`]; what lies before the place of the error may then be mapped.
    pub fn map<M: TableMemory>(&self, memory: &mut M, mapping: &Mapping) -> Result<(), MapError> {
        self.add(memory, mapping, Mapped::Refuse)
    }

    /// Maps what of the stretch is not mapped yet, and leaves what is mapped as it is. Bounded like
    /// [`Tree::map`].
    ///
    /// # Errors
    /// [`MapError::OutOfTables`] or [`MapError::BadRange`]; part of the stretch may then be mapped.
    pub fn fill<M: TableMemory>(&self, memory: &mut M, mapping: &Mapping) -> Result<(), MapError> {
        self.add(memory, mapping, Mapped::Keep)
    }

    fn add<M: TableMemory>(&self, memory: &mut M, mapping: &Mapping, mapped: Mapped) -> Result<(), MapError> {
        let end = self.end_of(mapping.input, mapping.size)?;
        let output_end = mapping
            .output
            .0
            .checked_add(mapping.size)
            .ok_or(MapError::BadRange)?;
        if output_end > OUTPUT_LIMIT || !mapping.output.0.is_multiple_of(PAGE_SIZE) {
            return Err(MapError::BadRange);
        }
        let mut at = mapping.input;
        while at < end {
            let done = at.saturating_sub(mapping.input);
            let output = HostPhys(mapping.output.0.saturating_add(done));
            let level = largest_block::<F>(at | output.0, end.saturating_sub(at));
            let (place, entry) = self.descend(memory, at, level)?;
            at = match (entry, mapped) {
                (Entry::Invalid, _) => {
                    let leaf = Mapping {
                        input: at,
                        output,
                        size: end.saturating_sub(at),
                        attributes: mapping.attributes,
                    };
                    let next = self.add_leaves(memory, place, &leaf);
                    if next == at {
                        return Err(MapError::Overlap(at));
                    }
                    next
                }
                (_, Mapped::Refuse) => return Err(MapError::Overlap(at)),
                (_, Mapped::Keep) => self.skip_leaves(memory, place, at, end),
            };
        }
        Ok(())
    }

    /// Fills entries of one table from `place` on, as long as they are 0, for whole entries of the stretch.
    /// The first is known to be invalid and to fit. Returns the first address that is left to do.
    ///
    /// No entry after the first could be part of a larger block: that starts with the first entry of a
    /// table.
    fn add_leaves<M: TableMemory>(&self, memory: &mut M, place: EntryPosition, mapping: &Mapping) -> u64 {
        let span = span_of(place.level);
        let wanted = mapping.size.checked_div(span).unwrap_or(0);
        // Root tables side by side count as one; each of its parts is a table of its own here.
        let room = ENTRIES.saturating_sub(place.index % ENTRIES);
        let count = usize::try_from(wanted).unwrap_or(usize::MAX).min(room);
        let first = F::leaf(place.level, mapping.output, mapping.attributes);
        // An entry that is invalid without being 0 belongs to no mapping: it is in the way.
        let done = memory.fill(place.table, place.index, count, first, span);
        mapping.input.saturating_add(span.saturating_mul(done as u64))
    }

    /// Goes past the leaf at `place`, which covers `input`, and those that follow it in the same table, as
    /// far as `end`.
    fn skip_leaves<M: TableMemory>(&self, memory: &M, place: EntryPosition, input: u64, end: u64) -> u64 {
        let span = span_of(place.level);
        let mut at = end_of_entry(input, place.level);
        let behind = place.index.saturating_add(1);
        for index in behind..behind.next_multiple_of(ENTRIES) {
            let entry = memory.read(place.table, index);
            // At the last level, where there are many, what is not invalid is a leaf.
            let is_leaf = entry != 0
                && (place.level == LAST_LEVEL || matches!(F::decode(place.level, entry), Entry::Leaf(..)));
            if at >= end || !is_leaf {
                break;
            }
            at = at.saturating_add(span);
        }
        at
    }

    /// Returns the entry of `input` at `level`, or the one in its way: a leaf further up, or a table at
    /// `level` in which smaller pieces are mapped, followed down to the first entry that is none. Makes the
    /// tables on the way.
    fn descend<M: TableMemory>(
        &self,
        memory: &mut M,
        input: u64,
        level: u8,
    ) -> Result<(EntryPosition, Entry), MapError> {
        let mut place = self.first(input);
        loop {
            let entry = F::decode(place.level, memory.read(place.table, place.index));
            let table = match entry {
                Entry::Table(table) => table,
                Entry::Invalid if place.level < level => {
                    let table = memory.allocate().ok_or(MapError::OutOfTables)?;
                    memory.write(place.table, place.index, F::table(table));
                    table
                }
                Entry::Invalid | Entry::Leaf(..) => return Ok((place, entry)),
            };
            place = self.below(place, table, input);
        }
    }

    /// Changes the rights to what is mapped of a stretch, as far as it is whole blocks and pages. Returns
    /// when every CPU obeys. Only the rights of a leaf change, so it need not be taken away first (Arm DDI
    /// 0487 D8, "Using break-before-make when updating translation table entries"). Bounded by the blocks and
    /// pages of the stretch.
    ///
    /// # Errors
    /// [`MapError::BadRange`]: nothing has changed.
    pub fn protect<M: TableMemory>(
        &self,
        memory: &mut M,
        input: u64,
        size: u64,
        permissions: Permissions,
    ) -> Result<(), MapError> {
        let end = self.end_of(input, size)?;
        let (mut at, mut changed, mut last) = (input, 0_u64, input);
        while at < end {
            let (place, entry) = self.find(memory, at);
            let entry_end = end_of_entry(at, place.level);
            if let Entry::Leaf(output, attributes) = entry {
                let start = entry_end.saturating_sub(span_of(place.level));
                if start >= input && entry_end <= end {
                    let new = Attributes {
                        permissions,
                        ..attributes
                    };
                    memory.write(place.table, place.index, F::leaf(place.level, output, new));
                    changed = changed.saturating_add(1);
                    last = start;
                }
            }
            at = entry_end;
        }
        match changed {
            0 => {}
            1 => memory.forget(last, size),
            _ => memory.forget_several(input, size),
        }
        Ok(())
    }

    /// Returns where an input address leads, if anywhere. At most four reads.
    #[must_use]
    pub fn translate<M: TableMemory>(&self, memory: &M, input: u64) -> Option<Translation> {
        if input >= self.geometry.input_limit() {
            return None;
        }
        let (place, entry) = self.find(memory, input);
        Self::found(place, entry, input)
    }

    /// Returns what an entry that decides about `input` says about it.
    #[inline(always)]
    fn found(place: EntryPosition, entry: Entry, input: u64) -> Option<Translation> {
        let Entry::Leaf(output, attributes) = entry else {
            return None;
        };
        let contiguous = end_of_entry(input, place.level).saturating_sub(input);
        let within = span_of(place.level).saturating_sub(contiguous);
        Some(Translation {
            output: HostPhys(output.0.saturating_add(within)),
            contiguous,
            attributes,
        })
    }

    /// Translates as [`Tree::translate`] does, but says how far the answer holds over several pages, if they
    /// are entries of one table and side by side on the bus as well. At most four reads, and one more for
    /// each page of `length`.
    #[must_use]
    pub fn translate_run<M: TableMemory>(&self, memory: &M, input: u64, length: u64) -> Option<Translation> {
        if input >= self.geometry.input_limit() {
            return None;
        }
        let (place, entry) = self.find(memory, input);
        let mut found = Self::found(place, entry, input)?;
        let span = span_of(place.level);
        let mut expected = memory.read(place.table, place.index);
        let behind = place.index.saturating_add(1);
        for index in behind..behind.next_multiple_of(ENTRIES) {
            expected = expected.wrapping_add(span);
            if found.contiguous >= length || memory.read(place.table, index) != expected {
                break;
            }
            found.contiguous = found.contiguous.saturating_add(span);
        }
        Some(found)
    }

    /// Returns the entry that decides about `input`: never one that leads to a table.
    fn find<M: TableMemory>(&self, memory: &M, input: u64) -> (EntryPosition, Entry) {
        let mut place = self.first(input);
        loop {
            match F::decode(place.level, memory.read(place.table, place.index)) {
                Entry::Table(table) => place = self.below(place, table, input),
                entry => return (place, entry),
            }
        }
    }

    #[inline(always)]
    fn first(&self, input: u64) -> EntryPosition {
        let level = self.geometry.start_level();
        EntryPosition {
            table: self.root,
            level,
            index: self.geometry.index(level, input),
        }
    }

    /// Returns the entry of `input` in the table that `place` leads to. No format has tables below the last
    /// level.
    #[inline(always)]
    fn below(&self, place: EntryPosition, table: HostPhys, input: u64) -> EntryPosition {
        let level = place.level.saturating_add(1).min(LAST_LEVEL);
        EntryPosition {
            table,
            level,
            index: self.geometry.index(level, input),
        }
    }

    /// Returns the end of a stretch of whole pages that the tree can map.
    fn end_of(&self, input: u64, size: u64) -> Result<u64, MapError> {
        let end = input.checked_add(size).ok_or(MapError::BadRange)?;
        let whole = input.is_multiple_of(PAGE_SIZE) && size.is_multiple_of(PAGE_SIZE);
        if size == 0 || !whole || end > self.geometry.input_limit() {
            return Err(MapError::BadRange);
        }
        Ok(end)
    }
}

/// Returns the level of the largest block that fits: `address` is aligned to it, and it is no larger than
/// `size`.
fn largest_block<F: Format>(address: u64, size: u64) -> u8 {
    let fits =
        |level: u8| F::has_blocks(level) && address.is_multiple_of(span_of(level)) && size >= span_of(level);
    (0..LAST_LEVEL).find(|level| fits(*level)).unwrap_or(LAST_LEVEL)
}

/// Returns the first address after the entry of `level` that covers `input`.
#[inline(always)]
fn end_of_entry(input: u64, level: u8) -> u64 {
    let last_byte = span_of(level).saturating_sub(1);
    (input | last_byte).saturating_add(1)
}
