// SPDX-License-Identifier: Apache-2.0
//! The hypervisor's own translation: an identity map, never writable and executable at once.
//!
//! `entry` starts with a map of the first 4 GiB in which everything is allowed. [`build`] replaces it before
//! anything else. It maps the class binary by its sections, and the system image after it as long as the
//! image's header says. When the image has been checked, [`map_ram`] and [`map_device`] add the board's RAM
//! and the devices that the hypervisor drives. Mappings are only ever added, so nothing has to be forgotten.
//!
//! Stacks: the first page of each pCPU's part stays unmapped, so an overflow is a page fault.

use crate::stacks::{GUARD_SIZE, STACK_SIZE, STACKS};
use crate::{layout, sysreg, tables};
use bulkhead_abi::size::own;
use bulkhead_arch_api::{HostPhys, MAX_PCPUS, MemoryKind, Permissions};
use bulkhead_arch_paging::long_mode::Hypervisor;
use bulkhead_arch_paging::{Attributes, Geometry, MapError, Mapping, PAGE_SIZE, TableMemory, Tree};
use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicUsize, Ordering};

const TEXT: Attributes = attributes(false, true, MemoryKind::Ram);
const RODATA: Attributes = attributes(false, false, MemoryKind::Ram);
const DATA: Attributes = attributes(true, false, MemoryKind::Ram);
const DEVICE: Attributes = attributes(true, false, MemoryKind::Device);

/// The page that other pCPUs start in (a start-up IPI can name only pages below 1 MiB). No RAM of a board
/// file is there.
pub(crate) const TRAMPOLINE: u64 = 0x8000;

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

/// Tables: one root, and for each of trampoline, binary, image, RAM ends and devices up to three levels. The
/// host tool counts the tables of a class binary for one system (`manifest/src/compile/own_map.rs`).
const TABLE_COUNT: usize = own("translation", 40);

/// The tables, the root first.
#[repr(C, align(4096))]
pub(crate) struct Tables(UnsafeCell<[[u64; 512]; TABLE_COUNT]>);

// SAFETY: written on the boot pCPU before others are started, by address only; read by hardware.
unsafe impl Sync for Tables {}

#[unsafe(link_section = ".tables")]
pub(crate) static TABLES: Tables = Tables(UnsafeCell::new([[0; 512]; TABLE_COUNT]));

/// The number of tables in use.
static USED: AtomicUsize = AtomicUsize::new(1);

const GEOMETRY: Geometry = match Geometry::single_root(48) {
    Ok(geometry) => geometry,
    Err(_) => panic!("48 bits are what four levels reach"),
};

/// [`TABLES`] as the tree's memory.
struct Pool;

impl TableMemory for Pool {
    fn read(&self, table: HostPhys, index: usize) -> u64 {
        // SAFETY: the tree only names entries of tables it got from `allocate` or of the root: inside TABLES.
        unsafe { tables::read(table, index) }
    }

    fn write(&mut self, table: HostPhys, index: usize, entry: u64) {
        // SAFETY: as for `read`; nothing refers to TABLES by reference.
        unsafe { tables::write(table, index, entry) }
    }

    fn allocate(&mut self) -> Option<HostPhys> {
        let next = USED.load(Ordering::Relaxed);
        if next >= TABLE_COUNT {
            return None;
        }
        USED.store(next + 1, Ordering::Relaxed);
        // The tables are zero as loaded, and are never given back.
        Some(HostPhys(root() + next as u64 * PAGE_SIZE))
    }
}

fn root() -> u64 {
    (&raw const TABLES) as u64
}

/// Fills the tables with the mappings that the hypervisor itself needs, and switches to them.
pub(crate) fn build() -> Result<(), MapError> {
    map(TRAMPOLINE, TRAMPOLINE + PAGE_SIZE, DATA)?;
    map(layout::log_address(), layout::load_address(), DATA)?;
    map(layout::load_address(), layout::text_end(), TEXT)?;
    map(layout::text_end(), layout::constants_end(), RODATA)?;
    map(layout::constants_end(), layout::data_end(), DATA)?;
    for pcpu in 0..MAX_PCPUS as u64 {
        let part = (&raw const STACKS) as u64 + pcpu * (GUARD_SIZE + STACK_SIZE) as u64;
        let end = part + (GUARD_SIZE + STACK_SIZE) as u64;
        map(part + GUARD_SIZE as u64, end, DATA)?;
    }
    map(layout::image_address(), layout::image_end(), RODATA)?;
    // SAFETY: code, data, the stack in use and the image are mapped as before, with fewer rights.
    unsafe { sysreg::load_root(root()) }
    Ok(())
}

/// Maps a stretch of the board's memory, without the binary and the image, which have their own mappings
/// and holes.
pub(crate) fn map_ram(from: HostPhys, size: u64) -> Result<(), MapError> {
    let end = end_of(from, size)?;
    fill(from.0, end.min(layout::load_address()), DATA)?;
    fill(from.0.max(layout::image_end()), end, DATA)
}

/// Maps device registers, all of each page they touch.
pub(crate) fn map_device(from: HostPhys, size: u64) -> Result<(), MapError> {
    let end = end_of(from, size)?.next_multiple_of(PAGE_SIZE);
    fill(from.0 & !(PAGE_SIZE - 1), end, DEVICE)
}

/// Returns the end of a stretch of the board, if the processor has physical addresses up to there: CPUID leaf
/// 8000_0008, EAX bits 7:0 (AMD APM volume 3, section E.4.7).
fn end_of(from: HostPhys, size: u64) -> Result<u64, MapError> {
    let [sizes, ..] = sysreg::cpuid(0x8000_0008, 0);
    let end = from.0.saturating_add(size);
    match end.checked_shr(sizes & 0xFF) {
        Some(0) => Ok(end),
        _ => Err(MapError::BadRange),
    }
}

fn tree() -> Tree<Hypervisor> {
    Tree::new(HostPhys(root()), GEOMETRY)
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
fn map(from: u64, to: u64, attributes: Attributes) -> Result<(), MapError> {
    if from >= to {
        return Ok(());
    }
    tree().map(&mut Pool, &identity(from, to, attributes))
}

/// Maps the part of a range that is not mapped yet.
fn fill(from: u64, to: u64, attributes: Attributes) -> Result<(), MapError> {
    if from >= to {
        return Ok(());
    }
    tree().fill(&mut Pool, &identity(from, to, attributes))
}
