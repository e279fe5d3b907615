// SPDX-License-Identifier: Apache-2.0
//! Address spaces of partitions: nested paging, and the hypervisor's own way to their memory.
//!
//! A space is a tree of `arch/paging` in memory that the system image sets aside. The boot pCPU builds the
//! tree before any vCPU runs. After that the tree is only read.
//!
//! A task runs in 64-bit mode, which cannot be without translation tables of its own. They are made here: an
//! identity map of the first 512 GiB, at [`TASK_ROOT`], where the map itself does not reach. Its rights are
//! the rights in the nested tables.
//!
//! Partition memory is never a Rust reference. The hypervisor looks an address up in the same tree that the
//! partition's own accesses go through, and then reads or writes by address.

use crate::board::BOARD;
use crate::machine::Machine;
use crate::{platform, tables};
use bulkhead_arch_api::class::X86_64;
use bulkhead_arch_api::{
    AccessKind, BuildError, CLEAR_AT_ONCE, CopyError, GuestPhys, HostPhys, MAX_PARTITIONS, MemoryKind,
    PartitionId, Permissions, Region, SpacePlan, Spaces, VirtualDevice,
};
use bulkhead_arch_paging::long_mode::Nested;
use bulkhead_arch_paging::{Geometry, PAGE_SIZE, TableMemory, Translation, Tree};
use bulkhead_arch_support::{Mmio, physical};
use bulkhead_arch_translating::space::{self, map_region, part};
use core::arch::asm;
use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// Where a task's own tables are: after everything that a partition can have mapped.
pub(crate) const TASK_ROOT: u64 = 1 << 39;
/// Entry of a task's tables: present, writable, user, accessed.
const TASK_ENTRY: u64 = 0x27;
/// The same for memory: dirty, large.
const TASK_LEAF: u64 = 0xE7;

/// Root of each partition's tree, 0 until it is built.
static ROOTS: [AtomicU64; MAX_PARTITIONS] = [const { AtomicU64::new(0) }; MAX_PARTITIONS];
/// The largest stretch of each partition's memory that is in one piece: where the partition sees it, where it
/// is, and bytes of it. A look there needs no walk.
static RUNS: [[AtomicU64; 3]; MAX_PARTITIONS] = [const { [const { AtomicU64::new(0) }; 3] }; MAX_PARTITIONS];
/// Tables of the pool that are in use.
static USED: AtomicUsize = AtomicUsize::new(0);

const GEOMETRY: Geometry = match Geometry::single_root(48) {
    Ok(geometry) => geometry,
    Err(_) => panic!("48 bits are what four levels reach"),
};

/// Returns the root of a partition's tree.
pub(crate) fn root_of(partition: PartitionId) -> u64 {
    let root = ROOTS.get(usize::from(partition.0));
    root.map_or(0, |root| root.load(Ordering::Acquire))
}

fn tree_of(partition: PartitionId) -> Option<Tree<Nested>> {
    let root = root_of(partition);
    (root != 0).then(|| Tree::new(HostPhys(root), GEOMETRY))
}

fn look_up(partition: PartitionId, guest: GuestPhys) -> Option<Translation> {
    tree_of(partition)?.translate(&Pool, guest.0)
}

/// Tells whether there is memory of the partition at this address.
pub(crate) fn is_memory(partition: PartitionId, guest: GuestPhys) -> bool {
    look_up(partition, guest).is_some_and(|found| found.attributes.kind == MemoryKind::Ram)
}

/// Notes a region of a partition as the stretch that needs no walk, if it is the largest so far.
fn note_run(partition: PartitionId, region: &Region) {
    let Some([guest, host, size]) = RUNS.get(usize::from(partition.0)) else {
        return;
    };
    if region.kind == MemoryKind::Ram && region.size > size.load(Ordering::Relaxed) {
        guest.store(region.guest.0, Ordering::Relaxed);
        host.store(region.host.0, Ordering::Relaxed);
        size.store(region.size, Ordering::Release);
    }
}

/// A word of a partition's memory, which can be read at any time: the trees do not change after boot.
#[derive(Clone, Copy)]
pub(crate) struct Word(u64);

impl Word {
    /// Reads it.
    #[inline(always)]
    pub(crate) fn read(self) -> u64 {
        // SAFETY: `word_at` alone makes one: memory of a partition, mapped as RAM of the board, at a multiple
        // of 8, as regions are whole pages.
        unsafe { physical::read_word(self.0 as usize) }
    }
}

/// Returns the word of the partition's memory that an address is in.
#[inline]
pub(crate) fn word_at(partition: PartitionId, guest: u64) -> Option<Word> {
    let at = guest & !7;
    let [first, host, size] = RUNS.get(usize::from(partition.0))?;
    let offset = at.wrapping_sub(first.load(Ordering::Relaxed));
    if offset < size.load(Ordering::Acquire) {
        return Some(Word(host.load(Ordering::Relaxed) + offset));
    }
    let found = look_up(partition, GuestPhys(at))?;
    (found.attributes.kind == MemoryKind::Ram).then_some(Word(found.output.0))
}

/// Calls `action` with what each piece of a stretch of partition memory is, bytes done and bytes of it.
fn each_run(
    partition: PartitionId,
    guest: GuestPhys,
    length: u64,
    action: impl FnMut(&Translation, u64, u64),
) -> Result<(), CopyError> {
    space::each_run(tree_of(partition), &Pool, guest, length, action)
}

/// Memory for tables that the system image sets aside.
struct Pool;

impl TableMemory for Pool {
    fn read(&self, table: HostPhys, index: usize) -> u64 {
        // SAFETY: the tree only names entries of tables it got from `allocate`.
        unsafe { tables::read(table, index) }
    }

    fn write(&mut self, table: HostPhys, index: usize, entry: u64) {
        // SAFETY: as for `read`; nothing refers to them by reference.
        unsafe { tables::write(table, index, entry) }
    }

    fn allocate(&mut self) -> Option<HostPhys> {
        let (base, size) = BOARD.get()?.pool;
        let limit = (size / PAGE_SIZE) as usize;
        let taken = USED.fetch_update(Ordering::AcqRel, Ordering::Acquire, |used| {
            (used < limit).then_some(used + 1)
        });
        let table = base + taken.ok()? as u64 * PAGE_SIZE;
        clear(table, PAGE_SIZE);
        Some(HostPhys(table))
    }
}

/// Clears memory of ours or of a partition: words, and single bytes at both ends.
fn clear(from: u64, length: u64) {
    const ZEROES: [u8; 8] = [0; 8];
    let end = from.saturating_add(length);
    let (first, last) = (from.next_multiple_of(8).min(end), end & !7);
    let bytes = |from: u64, to: u64| {
        let zeroes = ZEROES.get(..(to.saturating_sub(from)) as usize).unwrap_or(&[]);
        // SAFETY: the callers name memory of the pool or of a partition, mapped as RAM of the board, to which
        // no Rust reference exists.
        unsafe { physical::write(from as usize, zeroes) }
    };
    bytes(from, first);
    let words = last.saturating_sub(first) / 8;
    // SAFETY: as above. One instruction clears everything, because no registers of SIMD may be used.
    unsafe {
        asm!("rep stosq", inout("rdi") first => _, inout("rcx") words => _, in("rax") 0_u64,
             options(nostack, preserves_flags));
    }
    bytes(last.max(first), end);
}

/// Tells whether a region is where a partition can have one: after it is what the hypervisor puts there.
fn is_possible(region: &Region) -> bool {
    let end = region.guest.0.checked_add(region.size);
    end.is_some_and(|end| end <= X86_64.guest_address_limit)
}

/// Makes the translation tables of a task, whose space is built. Without them it faults at once.
pub(crate) fn build_task(partition: PartitionId) -> Result<(), BuildError> {
    let tree = tree_of(partition).ok_or(BuildError::TablesExhausted)?;
    let mut pages = [HostPhys(0); 2];
    for (index, page) in (0_u64..).zip(&mut pages) {
        *page = Pool.allocate().ok_or(BuildError::TablesExhausted)?;
        let region = Region {
            guest: GuestPhys(TASK_ROOT + index * PAGE_SIZE),
            host: *page,
            size: PAGE_SIZE,
            // A walk of the guest's tables is a store for nested paging (15.25.6).
            permissions: Permissions {
                read: true,
                write: true,
                execute: false,
            },
            kind: MemoryKind::Ram,
        };
        map_region(&tree, &mut Pool, &region)?;
    }
    let [root, level] = pages;
    Pool.write(root, 0, (TASK_ROOT + PAGE_SIZE) | TASK_ENTRY);
    for index in 0..512_usize {
        Pool.write(level, index, (index as u64) << 30 | TASK_LEAF);
    }
    Ok(())
}

impl Spaces for Machine {
    fn build(
        &mut self,
        partition: PartitionId,
        plan: &SpacePlan<'_>,
        devices: impl Iterator<Item = VirtualDevice>,
    ) -> Result<(), BuildError> {
        let root = Pool.allocate().ok_or(BuildError::TablesExhausted)?;
        let tree = Tree::<Nested>::new(root, GEOMETRY);
        for region in plan.regions {
            if !is_possible(region) {
                return Err(BuildError::BadRegion(region.guest));
            }
            map_region(&tree, &mut Pool, region)?;
            note_run(partition, region);
        }
        if let Some(slot) = ROOTS.get(usize::from(partition.0)) {
            slot.store(root.0, Ordering::Release);
        }
        for device in devices {
            platform::note_device(partition, &device);
        }
        Ok(())
    }

    fn copy_in(&self, partition: PartitionId, guest: GuestPhys, bytes: &mut [u8]) -> Result<(), CopyError> {
        let length = bytes.len() as u64;
        each_run(partition, guest, length, |found, done, length| {
            if let Some(target) = bytes.get_mut(part(done, length)) {
                // SAFETY: memory of the partition, mapped as RAM of the board.
                unsafe { physical::read(found.output.0 as usize, target) }
            }
        })
    }

    fn copy_out(&mut self, partition: PartitionId, guest: GuestPhys, bytes: &[u8]) -> Result<(), CopyError> {
        each_run(partition, guest, bytes.len() as u64, |found, done, length| {
            if let Some(source) = bytes.get(part(done, length)) {
                // SAFETY: memory of the partition, mapped as RAM of the board; no reference to it exists.
                unsafe { physical::write(found.output.0 as usize, source) }
            }
        })
    }

    fn may_access(&self, partition: PartitionId, guest: GuestPhys, length: u64, is_store: bool) -> bool {
        let mut may = true;
        let found = each_run(partition, guest, length, |found, _, _| {
            let rights = found.attributes.permissions;
            may &= if is_store { rights.write } else { rights.read };
        });
        may && found.is_ok()
    }

    fn clear(&mut self, partition: PartitionId, guest: GuestPhys, length: u64) -> Result<u64, CopyError> {
        let run = tree_of(partition).and_then(|tree| tree.translate_run(&Pool, guest.0, length));
        let found = run
            .filter(|found| found.attributes.kind == MemoryKind::Ram)
            .ok_or(CopyError { address: guest })?;
        let bytes = found.contiguous.min(length).min(CLEAR_AT_ONCE);
        clear(found.output.0, bytes);
        Ok(bytes)
    }

    fn clean(&mut self, partition: PartitionId, guest: GuestPhys, length: u64) -> Result<(), CopyError> {
        // Caches are coherent with instruction fetches, and no guest can switch them off.
        each_run(partition, guest, length, |_, _, _| {})
    }

    fn forward(&mut self, register: HostPhys, size: u8, kind: AccessKind) -> u64 {
        // SAFETY: the window is one access wide. `bring_up` has mapped every window of the registers table as
        // device memory (the caller promises that this is inside one), and the image check has shown that it
        // belongs to no other partition.
        unsafe { Mmio::new(register.0 as usize, usize::from(size)) }.forward(size, kind)
    }

    fn reset_shared(&mut self, partition: PartitionId, _part: u32) -> Option<u32> {
        platform::reset(partition);
        None
    }
}
