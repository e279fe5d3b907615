// SPDX-License-Identifier: Apache-2.0
//! EL2's own translation: an identity map, never writable and executable at once.
//!
//! The map is built in two steps. [`build`] runs with the MMU off, before anything else. It maps the class
//! binary by its sections, and the system image after it as long as the image's header says. Nothing of the
//! image is trusted but that length, and a false length only widens a read-only view. When the image has been
//! checked, [`map_ram`] and [`map_device`] add the board's RAM and the devices the hypervisor drives. Tables
//! come from a small static pool, so that none of this depends on the image's own memory plan. Mappings are
//! only ever added, and an entry once valid never changes, so no TLB maintenance is needed.
//!
//! Stacks: the first page of each pCPU's part stays unmapped, so an overflow is a translation fault.

use crate::stacks::{GUARD_SIZE, STACK_SIZE, STACKS};
use crate::sysreg::{instruction, read_register};
use crate::{cache, layout, tables};
use bulkhead_abi::size::own;
use bulkhead_arch_api::{HostPhys, MAX_PCPUS, MemoryKind, Permissions};
use bulkhead_arch_paging::vmsa::HypervisorStage1;
use bulkhead_arch_paging::{Attributes, Geometry, MapError, Mapping, PAGE_SIZE, TableMemory, Tree};
use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicUsize, Ordering};

/// MAIR_EL2 for the attributes that the table format uses.
pub(crate) const MAIR: u64 = HypervisorStage1::MAIR;
/// TCR_EL2 without PS (Arm DDI 0487 D19.2.133): T0SZ 16, walks inner-shareable write-back, 4 KiB granule,
/// RES1.
pub(crate) const TCR: u64 = 16 | 1 << 8 | 1 << 10 | 3 << 12 | 1 << 23 | 1 << 31;

/// Attributes of the parts of the hypervisor.
const TEXT: Attributes = attributes(false, true, MemoryKind::Ram);
const RODATA: Attributes = attributes(false, false, MemoryKind::Ram);
const DATA: Attributes = attributes(true, false, MemoryKind::Ram);
const DEVICE: Attributes = attributes(true, false, MemoryKind::Device);

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

/// Tables: one root, and for each of binary, image, RAM ends and devices up to three levels. The host tool
/// counts the tables of a class binary for one system (`manifest/src/compile/own_map.rs`).
const TABLE_COUNT: usize = own("translation", 32);

/// The tables, the root first.
#[repr(C, align(4096))]
pub(crate) struct Tables(UnsafeCell<[[u64; 512]; TABLE_COUNT]>);

// SAFETY: written on the boot pCPU before others are started, by address only;
// read by hardware.
unsafe impl Sync for Tables {}

#[unsafe(link_section = ".tables")]
pub(crate) static TABLES: Tables = Tables(UnsafeCell::new([[0; 512]; TABLE_COUNT]));

/// The number of tables in use. The code uses loads and stores only: the boot pCPU is the only writer, and
/// its MMU is off at first.
static USED: AtomicUsize = AtomicUsize::new(1);

/// Addresses of EL2, one root at level 0.
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

    fn fill(&mut self, table: HostPhys, index: usize, limit: usize, entry: u64, step: u64) -> usize {
        // SAFETY: as for `write`, and the run ends with the table.
        unsafe { tables::fill(table, index, limit, entry, step) }
    }

    fn allocate(&mut self) -> Option<HostPhys> {
        let next = USED.load(Ordering::Relaxed);
        if next >= TABLE_COUNT {
            return None;
        }
        USED.store(next + 1, Ordering::Relaxed);
        // The tables are zero as loaded, and are never given back.
        Some(HostPhys((&raw const TABLES) as u64 + next as u64 * PAGE_SIZE))
    }
}

/// Fills the tables with the mappings that the hypervisor itself needs. Runs with the MMU off: no atomic
/// read-modify-write, no unaligned access.
pub(crate) fn build() -> Result<(), MapError> {
    map(layout::log_address(), layout::load_address(), DATA)?;
    map(layout::load_address(), layout::text_end(), TEXT)?;
    map(layout::text_end(), layout::constants_end(), RODATA)?;
    map(layout::constants_end(), layout::data_end(), DATA)?;
    for pcpu in 0..MAX_PCPUS as u64 {
        let part = (&raw const STACKS) as u64 + pcpu * (GUARD_SIZE + STACK_SIZE) as u64;
        map(
            part + GUARD_SIZE as u64,
            part + (GUARD_SIZE + STACK_SIZE) as u64,
            DATA,
        )?;
    }
    map(layout::image_address(), layout::image_end(), RODATA)?;
    // Older lines of the caches must not hide bytes that were written past the caches.
    let constants = layout::constants();
    cache::invalidate(constants, layout::constants_end() - constants);
    let used = USED.load(Ordering::Relaxed) as u64 * PAGE_SIZE;
    cache::invalidate((&raw const TABLES) as u64, used);
    cache::invalidate((&raw const USED) as u64, size_of::<AtomicUsize>() as u64);
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

/// Returns the end of a stretch of the board, if the CPU has physical addresses up to there: the field
/// ID_AA64MMFR0_EL1.PARange (Arm DDI 0487, section D19.2.64).
fn end_of(from: HostPhys, size: u64) -> Result<u64, MapError> {
    const BITS: [u8; 5] = [32, 36, 40, 42, 44];
    let range = read_register!("id_aa64mmfr0_el1") & 0xF;
    let bits = BITS.get(range as usize).copied().unwrap_or(48);
    let end = from.0.saturating_add(size);
    if end >> bits > 0 {
        Err(MapError::BadRange)
    } else {
        Ok(end)
    }
}

fn tree() -> Tree<HypervisorStage1> {
    Tree::new(HostPhys((&raw const TABLES) as u64), GEOMETRY)
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

/// Maps the part of a range that is not mapped yet, and makes it visible to this CPU's table walks.
fn fill(from: u64, to: u64, attributes: Attributes) -> Result<(), MapError> {
    if from >= to {
        return Ok(());
    }
    tree().fill(&mut Pool, &identity(from, to, attributes))?;
    instruction!("dsb ish");
    instruction!("isb");
    Ok(())
}
