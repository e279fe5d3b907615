// SPDX-License-Identifier: Apache-2.0
//! EL2's own translation ([`own_map`]). [`build`] runs with the MMU off, before anything else.

use crate::stacks::{GUARD_SIZE, STACK_SIZE, STACKS};
use crate::sysreg::{instruction, read_register};
use crate::{cache, layout, tables};
use bulkhead_abi::size::own;
use bulkhead_arch_api::{HostPhys, MAX_PCPUS};
use bulkhead_arch_paging::vmsa::HypervisorStage1;
use bulkhead_arch_paging::{MapError, OWN_TABLES_AARCH64, PAGE_SIZE, TableMemory};
use bulkhead_arch_translating::own_map::{self, OwnMap, Stacks, next_table};
use bulkhead_image::Image;
use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicUsize, Ordering};

/// MAIR_EL2 for the attributes that the table format uses.
pub(crate) const MAIR: u64 = HypervisorStage1::MAIR;
/// TCR_EL2 without PS (Arm DDI 0487 D19.2.133): T0SZ 16, walks inner-shareable write-back, 4 KiB granule,
/// RES1.
pub(crate) const TCR: u64 = 16 | 1 << 8 | 1 << 10 | 3 << 12 | 1 << 23 | 1 << 31;

/// Tables: one root, and for each of binary, image, RAM ends and devices up to three levels. The host tool
/// counts the tables of a class binary for one system (`manifest/src/compile/own_map.rs`).
const TABLE_COUNT: usize = own("translation", OWN_TABLES_AARCH64);

/// The tables, the root first.
#[repr(C, align(4096))]
pub(crate) struct Tables(UnsafeCell<[[u64; 512]; TABLE_COUNT]>);

// SAFETY: written on the boot pCPU before others are started, by address only;
// read by hardware.
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

    fn fill(&mut self, table: HostPhys, index: usize, limit: usize, entry: u64, step: u64) -> usize {
        // SAFETY: as for `write`, and the run ends with the table.
        unsafe { tables::fill(table, index, limit, entry, step) }
    }

    fn allocate(&mut self) -> Option<HostPhys> {
        // The tables are zero as loaded, and are never given back.
        let next = next_table(&USED, TABLE_COUNT)?;
        Some(HostPhys((&raw const TABLES) as u64 + next as u64 * PAGE_SIZE))
    }
}

/// EL2's own tree.
struct Own;

impl OwnMap for Own {
    type Format = HypervisorStage1;
    type Memory = Pool;

    fn memory() -> Pool {
        Pool
    }

    fn root() -> u64 {
        (&raw const TABLES) as u64
    }

    /// Looks at the field ID_AA64MMFR0_EL1.PARange (Arm DDI 0487, section D19.2.64).
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

    fn settle() {
        instruction!("dsb ish");
        instruction!("isb");
    }
}

/// Fills the tables with the mappings that the hypervisor itself needs. Runs with the MMU off: no atomic
/// read-modify-write, no unaligned access.
pub(crate) fn build() -> Result<(), MapError> {
    own_map::map_binary::<Own>(&Stacks {
        first: (&raw const STACKS) as u64,
        count: MAX_PCPUS as u64,
        size: (GUARD_SIZE + STACK_SIZE) as u64,
        guard: GUARD_SIZE as u64,
    })?;
    // Older lines of the caches must not hide bytes that were written past the caches.
    let constants = layout::constants();
    cache::invalidate(constants, layout::constants_end() - constants);
    let used = USED.load(Ordering::Relaxed) as u64 * PAGE_SIZE;
    cache::invalidate((&raw const TABLES) as u64, used);
    cache::invalidate((&raw const USED) as u64, size_of::<AtomicUsize>() as u64);
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
