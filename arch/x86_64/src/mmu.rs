// SPDX-License-Identifier: Apache-2.0
//! The hypervisor's own translation ([`own_map`]).
//!
//! `entry` starts with a map of the first 4 GiB in which everything is allowed. [`build`] replaces it before
//! anything else.

use crate::stacks::{GUARD_SIZE, STACK_SIZE, STACKS};
use crate::{sysreg, tables};
use bulkhead_abi::size::own;
use bulkhead_arch_api::{HostPhys, MAX_PCPUS};
use bulkhead_arch_paging::long_mode::Hypervisor;
use bulkhead_arch_paging::{MapError, OWN_TABLES_X86_64, PAGE_SIZE, TableMemory};
use bulkhead_arch_translating::own_map::{self, DATA, OwnMap, Stacks, next_table};
use bulkhead_image::Image;
use core::cell::UnsafeCell;
use core::sync::atomic::AtomicUsize;

/// The page that other pCPUs start in (a start-up IPI can name only pages below 1 MiB). No RAM of a board
/// file is there.
pub(crate) const TRAMPOLINE: u64 = 0x8000;

/// Tables: one root, and for each of trampoline, binary, image, RAM ends and devices up to three levels. The
/// host tool counts the tables of a class binary for one system (`manifest/src/compile/own_map.rs`).
const TABLE_COUNT: usize = own("translation", OWN_TABLES_X86_64);

/// The tables, the root first.
#[repr(C, align(4096))]
pub(crate) struct Tables(UnsafeCell<[[u64; 512]; TABLE_COUNT]>);

// SAFETY: written on the boot pCPU before others are started, by address only; read by hardware.
unsafe impl Sync for Tables {}

#[unsafe(link_section = ".tables")]
pub(crate) static TABLES: Tables = Tables(UnsafeCell::new([[0; 512]; TABLE_COUNT]));

/// The number of tables in use.
static USED: AtomicUsize = AtomicUsize::new(1);

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
        // The tables are zero as loaded, and are never given back.
        let next = next_table(&USED, TABLE_COUNT)?;
        Some(HostPhys(Own::root() + next as u64 * PAGE_SIZE))
    }
}

/// The hypervisor's own tree.
struct Own;

impl OwnMap for Own {
    type Format = Hypervisor;
    type Memory = Pool;

    fn memory() -> Pool {
        Pool
    }

    fn root() -> u64 {
        (&raw const TABLES) as u64
    }

    /// Looks at CPUID leaf 8000_0008, EAX bits 7:0 (AMD APM volume 3, section E.4.7).
    fn end_of(from: HostPhys, size: u64) -> Result<u64, MapError> {
        let [sizes, ..] = sysreg::cpuid(0x8000_0008, 0);
        let end = from.0.saturating_add(size);
        match end.checked_shr(sizes & 0xFF) {
            Some(0) => Ok(end),
            _ => Err(MapError::BadRange),
        }
    }
}

/// Fills the tables with the mappings that the hypervisor itself needs, and switches to them.
pub(crate) fn build() -> Result<(), MapError> {
    own_map::map::<Own>(TRAMPOLINE, TRAMPOLINE + PAGE_SIZE, DATA)?;
    own_map::map_binary::<Own>(&Stacks {
        first: (&raw const STACKS) as u64,
        count: MAX_PCPUS as u64,
        size: (GUARD_SIZE + STACK_SIZE) as u64,
        guard: GUARD_SIZE as u64,
    })?;
    // SAFETY: code, data, the stack in use and the image are mapped as before, with fewer rights.
    unsafe { sysreg::load_root(Own::root()) }
    Ok(())
}

/// Maps RAM and devices of the board, but for its controllers. See [`own_map::map_board`].
pub(crate) fn map_board(image: &Image<'_>) -> Result<(), MapError> {
    own_map::map_board::<Own>(image)
}

/// Maps device registers. See [`own_map::map_device`].
pub(crate) fn map_device(from: HostPhys, size: u64) -> Result<(), MapError> {
    own_map::map_device::<Own>(from, size)
}
