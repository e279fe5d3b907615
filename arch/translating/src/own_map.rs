// SPDX-License-Identifier: Apache-2.0
//! The hypervisor's own translation: an identity map, never writable and executable at once.
//!
//! The map is built in two steps. [`map_binary`] comes before anything else. It maps the class binary by its
//! sections, and the system image after it as long as the image's header says. Nothing of the image is
//! trusted but that length, and a false length only widens a read-only view. When the image has been checked,
//! [`map_board`] and [`map_device`] add the board's RAM and the devices that the hypervisor drives. Tables
//! come from a small static pool, so that none of this depends on the image's own memory plan. Mappings are
//! only ever added, and an entry once valid never changes, so nothing has to be forgotten.
//!
//! Stacks: the first page of each pCPU's part stays unmapped, so an overflow is an exception.

use crate::layout;
use bulkhead_arch_api::{HostPhys, MemoryKind, Permissions};
use bulkhead_arch_paging::{Attributes, Format, Geometry, MapError, Mapping, PAGE_SIZE, TableMemory, Tree};
use bulkhead_image::Image;
use bulkhead_image::layout::{MAP_DEVICE, MAP_RAM};
use core::sync::atomic::{AtomicUsize, Ordering};

/// Attributes of the parts of the hypervisor.
const TEXT: Attributes = attributes(false, true, MemoryKind::Ram);
const RODATA: Attributes = attributes(false, false, MemoryKind::Ram);
/// The attributes of memory that the hypervisor writes.
pub const DATA: Attributes = attributes(true, false, MemoryKind::Ram);
const DEVICE: Attributes = attributes(true, false, MemoryKind::Device);

/// Addresses of the hypervisor, one root at level 0.
const GEOMETRY: Geometry = match Geometry::single_root(48) {
    Ok(geometry) => geometry,
    Err(_) => panic!("48 bits are what four levels reach"),
};

const fn attributes(write: bool, execute: bool, kind: MemoryKind) -> Attributes {
    Attributes {
        permissions: Permissions {
            read: true,
            write,
            execute,
        },
        kind,
    }
}

/// The hypervisor's own tree, as a class has it.
pub trait OwnMap {
    /// The entries of its tables.
    type Format: Format;
    /// The memory of its tables.
    type Memory: TableMemory;
    /// Returns the memory of its tables.
    fn memory() -> Self::Memory;
    /// Returns the first table.
    fn root() -> u64;
    /// Returns the end of a stretch of the board.
    ///
    /// # Errors
    /// [`MapError::BadRange`] if the CPU has no physical addresses up to there.
    fn end_of(from: HostPhys, size: u64) -> Result<u64, MapError>;
    /// Makes entries that were added later visible to this CPU's table walks.
    fn settle() {}
}

/// Where the stacks are: the first one, and the bytes of each with the unmapped page under it.
#[derive(Clone, Copy, Debug)]
pub struct Stacks {
    /// The address of the first part.
    pub first: u64,
    /// The number of parts.
    pub count: u64,
    /// Bytes of a part.
    pub size: u64,
    /// Bytes of it that stay unmapped.
    pub guard: u64,
}

/// Returns the number of a table that is not in use yet, and is in use from now on. There are `count`, of
/// which the first is the root. Loads and stores only: the boot pCPU is the only one that calls this, and
/// its MMU may be off.
#[inline]
pub fn next_table(used: &AtomicUsize, count: usize) -> Option<usize> {
    let next = used.load(Ordering::Relaxed);
    if next >= count {
        return None;
    }
    used.store(next + 1, Ordering::Relaxed);
    Some(next)
}

/// Fills the tables with the mappings that the hypervisor itself needs. Runs where no exception can be taken
/// yet: no atomic read-modify-write, no unaligned access.
///
/// # Errors
/// [`MapError`] if the tables do not suffice.
pub fn map_binary<O: OwnMap>(stacks: &Stacks) -> Result<(), MapError> {
    map::<O>(layout::log_address(), layout::load_address(), DATA)?;
    map::<O>(layout::load_address(), layout::text_end(), TEXT)?;
    map::<O>(layout::text_end(), layout::constants_end(), RODATA)?;
    map::<O>(layout::constants_end(), layout::data_end(), DATA)?;
    for pcpu in 0..stacks.count {
        let part = stacks.first + pcpu * stacks.size;
        map::<O>(part + stacks.guard, part + stacks.size, DATA)?;
    }
    map::<O>(layout::image_address(), layout::image_end(), RODATA)
}

/// Maps the board's RAM and devices, and the registers that the hypervisor reaches for partitions.
///
/// # Errors
/// [`MapError`]; part of the board may then be mapped.
pub fn map_board<O: OwnMap>(image: &Image<'_>) -> Result<(), MapError> {
    for record in image.map() {
        let (base, size) = (HostPhys(record.base.get()), record.size.get());
        match record.kind.get() {
            MAP_RAM => map_ram::<O>(base, size)?,
            MAP_DEVICE => map_device::<O>(base, size)?,
            _ => {}
        }
    }
    for record in image.registers() {
        map_device::<O>(HostPhys(record.host.get()), record.size.get())?;
    }
    Ok(())
}

/// Maps a stretch of the board's memory, without the binary and the image, which have their own mappings
/// and holes.
fn map_ram<O: OwnMap>(from: HostPhys, size: u64) -> Result<(), MapError> {
    let end = O::end_of(from, size)?;
    fill::<O>(from.0, end.min(layout::load_address()), DATA)?;
    fill::<O>(from.0.max(layout::image_end()), end, DATA)
}

/// Maps device registers, all of each page they touch.
///
/// # Errors
/// [`MapError`]; part of the registers may then be mapped.
pub fn map_device<O: OwnMap>(from: HostPhys, size: u64) -> Result<(), MapError> {
    let end = O::end_of(from, size)?.next_multiple_of(PAGE_SIZE);
    fill::<O>(from.0 & !(PAGE_SIZE - 1), end, DEVICE)
}

fn tree<O: OwnMap>() -> Tree<O::Format> {
    Tree::new(HostPhys(O::root()), GEOMETRY)
}

fn identity(from: u64, to: u64, attributes: Attributes) -> Mapping {
    Mapping {
        input: from,
        output: HostPhys(from),
        size: to.saturating_sub(from),
        attributes,
    }
}

/// Maps a range that nothing else may have mapped.
///
/// # Errors
/// [`MapError`]; part of the range may then be mapped.
pub fn map<O: OwnMap>(from: u64, to: u64, attributes: Attributes) -> Result<(), MapError> {
    if from >= to {
        return Ok(());
    }
    tree::<O>().map(&mut O::memory(), &identity(from, to, attributes))
}

/// Maps the part of a range that is not mapped yet.
fn fill<O: OwnMap>(from: u64, to: u64, attributes: Attributes) -> Result<(), MapError> {
    if from >= to {
        return Ok(());
    }
    tree::<O>().fill(&mut O::memory(), &identity(from, to, attributes))?;
    O::settle();
    Ok(())
}
