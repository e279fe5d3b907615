// SPDX-License-Identifier: Apache-2.0
//! EL2's own translation: an identity map, never writable and executable at once.
//!
//! Built in two steps. [`build`] runs with the MMU off, before anything else, and maps the class binary by
//! its sections and the system image behind it as long as its header says; nothing of the image is
//! believed but that length, and a lie only widens a read-only view. When the image has been checked,
//! [`map_ram`] and [`map_device`] add the board's RAM and the devices the hypervisor drives. Tables come from a small
//! static pool, so that none of this depends on the image's own memory plan. Mappings are only ever
//! added, and an entry once valid never changes, so no TLB maintenance is needed.
//!
//! Stacks: the first page of each pCPU's part stays unmapped, an overflow is a translation fault.

use crate::boot;
use crate::cache;
use crate::entry::{GUARD_SIZE, STACK_SIZE, STACKS};
use crate::sysreg::instruction;
use crate::{log, tables};
use bulkhead_arch_api::{HostPhys, MAX_PCPUS, MemoryKind, Permissions};
use bulkhead_arch_paging::vmsa::HypervisorStage1;
use bulkhead_arch_paging::{Attributes, Geometry, MapError, Mapping, PAGE_SIZE, TableMemory, Tree};
use bulkhead_arch_support::physical;
use bulkhead_image::layout::{Header, MAGIC};
use core::cell::UnsafeCell;
use core::mem::offset_of;
use core::sync::atomic::{AtomicUsize, Ordering};

/// MAIR_EL2 for the attributes that the table format uses.
pub(crate) const MAIR: u64 = HypervisorStage1::MAIR;
/// TCR_EL2 without PS (Arm DDI 0487 D19.2.133): T0SZ 16, walks inner-shareable write-back, 4 KiB granule, RES1.
pub(crate) const TCR: u64 = 16 | 1 << 8 | 1 << 10 | 3 << 12 | 1 << 23 | 1 << 31;

/// What of the hypervisor is what.
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

/// Most of a system image that is mapped on the word of its unchecked header.
const IMAGE_LIMIT: u64 = 1 << 30;
/// Tables: one root, and for each of binary, image, RAM ends and devices up to three levels.
const TABLE_COUNT: usize = 32;

/// The tables, the root first.
#[repr(C, align(4096))]
pub(crate) struct Tables(UnsafeCell<[[u64; 512]; TABLE_COUNT]>);

// SAFETY: written on the boot pCPU before others are started, by address only;
// read by hardware.
unsafe impl Sync for Tables {}

#[unsafe(link_section = ".tables")]
pub(crate) static TABLES: Tables = Tables(UnsafeCell::new([[0; 512]; TABLE_COUNT]));

/// How many of the tables are in use. Loads and stores only: the boot pCPU is the only writer, and its MMU is off at first.
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

    fn fill(&mut self, table: HostPhys, index: usize, limit: usize, run: (u64, u64)) -> usize {
        // SAFETY: as for `write`, and the run ends with the table.
        unsafe { tables::fill(table, index, limit, run) }
    }

    fn allocate(&mut self) -> Option<HostPhys> {
        let next = USED.load(Ordering::Relaxed);
        if next >= TABLE_COUNT {
            return None;
        }
        USED.store(next + 1, Ordering::Relaxed);
        // Zero as loaded, and never given back.
        Some(HostPhys((&raw const TABLES) as u64 + next as u64 * PAGE_SIZE))
    }

    fn forget(&mut self, _input: u64, _size: u64) {
        // Nothing is ever unmapped from EL2's tree.
    }
}

unsafe extern "C" {
    static __image_start: u8;
    static __text_end: u8;
    static __relro_start: u8;
    static __rodata_end: u8;
    static __stacks_start: u8;
    static __image_end: u8;
}

/// The address of a linker symbol.
macro_rules! address_of {
    ($symbol:ident) => {
        (&raw const $symbol) as u64
    };
}

/// Where the class binary runs.
pub(crate) fn load_address() -> u64 {
    address_of!(__image_start)
}

/// Where the system image is.
pub(crate) fn image_address() -> u64 {
    address_of!(__image_end)
}

/// Bytes of the system image by its own, unchecked word, limited to what is mapped.
pub(crate) fn image_length() -> u64 {
    let base = image_address() as usize;
    let mut magic = [0; MAGIC.len()];
    // SAFETY: a system image, or at least RAM, follows the class binary in the flashable file.
    unsafe { physical::read(base, &mut magic) }
    let mut length = [0; 8];
    // SAFETY: as above.
    unsafe { physical::read(base + offset_of!(Header, total_len), &mut length) }
    let length = u64::from_le_bytes(length);
    if magic == MAGIC && length <= IMAGE_LIMIT {
        length
    } else {
        PAGE_SIZE
    }
}

/// Fills the tables with what the hypervisor itself needs. Runs with the MMU off: no atomic
/// read-modify-write, no unaligned access.
pub(crate) extern "C" fn build() {
    let own = || {
        map(log::address(), load_address(), DATA)?;
        map(load_address(), address_of!(__text_end), TEXT)?;
        map(address_of!(__text_end), address_of!(__rodata_end), RODATA)?;
        map(address_of!(__rodata_end), address_of!(__stacks_start), DATA)?;
        for pcpu in 0..MAX_PCPUS as u64 {
            let part = (&raw const STACKS) as u64 + pcpu * (GUARD_SIZE + STACK_SIZE) as u64;
            map(
                part + GUARD_SIZE as u64,
                part + (GUARD_SIZE + STACK_SIZE) as u64,
                DATA,
            )?;
        }
        map(image_address(), image_end(), RODATA)
    };
    if own().is_err() {
        boot::halt("LOCKDOWN: the hypervisor's own memory does not fit its tables");
    }
    // What was written past the caches must not be hidden by older lines of them.
    let constants = address_of!(__relro_start);
    cache::invalidate(constants, address_of!(__rodata_end) - constants);
    let used = USED.load(Ordering::Relaxed) as u64 * PAGE_SIZE;
    cache::invalidate((&raw const TABLES) as u64, used);
    cache::invalidate((&raw const USED) as u64, size_of::<AtomicUsize>() as u64);
}

/// First page behind the system image.
fn image_end() -> u64 {
    image_address() + image_length().next_multiple_of(PAGE_SIZE)
}

/// Maps a stretch of the board's memory, without the binary and the image, which have their own mappings
/// and holes.
pub(crate) fn map_ram(from: HostPhys, size: u64) -> Result<(), MapError> {
    let end = from.0.saturating_add(size);
    fill(from.0, end.min(load_address()), DATA)?;
    fill(from.0.max(image_end()), end, DATA)
}

/// Maps device registers, all of each page they touch.
pub(crate) fn map_device(from: HostPhys, size: u64) -> Result<(), MapError> {
    let end = from.0.saturating_add(size).next_multiple_of(PAGE_SIZE);
    fill(from.0 & !(PAGE_SIZE - 1), end, DEVICE)
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

/// Maps what nothing else may have mapped.
fn map(from: u64, to: u64, attributes: Attributes) -> Result<(), MapError> {
    if from >= to {
        return Ok(());
    }
    tree().map(&mut Pool, &identity(from, to, attributes))
}

/// Maps what is not mapped yet, and makes it visible to this CPU's table walks.
fn fill(from: u64, to: u64, attributes: Attributes) -> Result<(), MapError> {
    if from >= to {
        return Ok(());
    }
    tree().fill(&mut Pool, &identity(from, to, attributes))?;
    instruction!("dsb ish");
    instruction!("isb");
    Ok(())
}
