// SPDX-License-Identifier: Apache-2.0
//! The trees of nested paging of all partitions, and looks into them.
//!
//! A tree is of `arch/paging`, in memory that the system image sets aside. The boot pCPU builds the tree
//! before any vCPU runs ([`crate::space`]). After that the tree is only read.

use crate::board::BOARD;
use crate::tables;
use bulkhead_arch_api::{CopyError, GuestPhys, HostPhys, MAX_PARTITIONS, MemoryKind, PartitionId, Region};
use bulkhead_arch_paging::long_mode::Nested;
use bulkhead_arch_paging::{Geometry, PAGE_SIZE, TableMemory, Translation, Tree};
use bulkhead_arch_support::physical;
use core::arch::asm;
use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// Root of each partition's tree, 0 until it is built.
pub(crate) static ROOTS: [AtomicU64; MAX_PARTITIONS] = [const { AtomicU64::new(0) }; MAX_PARTITIONS];
/// The largest stretch of each partition's memory that is in one piece: where the partition sees it, where it
/// is, and bytes of it. A look there needs no walk.
static RUNS: [[AtomicU64; 3]; MAX_PARTITIONS] = [const { [const { AtomicU64::new(0) }; 3] }; MAX_PARTITIONS];
/// Tables of the pool that are in use.
static USED: AtomicUsize = AtomicUsize::new(0);

pub(crate) const GEOMETRY: Geometry = match Geometry::single_root(48) {
    Ok(geometry) => geometry,
    Err(_) => panic!("48 bits are what four levels reach"),
};

/// Returns the root of a partition's tree.
pub(crate) fn root_of(partition: PartitionId) -> u64 {
    let root = ROOTS.get(usize::from(partition.0));
    root.map_or(0, |root| root.load(Ordering::Acquire))
}

pub(crate) fn tree_of(partition: PartitionId) -> Option<Tree<Nested>> {
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
pub(crate) fn note_run(partition: PartitionId, region: &Region) {
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
pub(crate) fn each_run(
    partition: PartitionId,
    guest: GuestPhys,
    length: u64,
    action: impl FnMut(&Translation, u64, u64),
) -> Result<(), CopyError> {
    bulkhead_arch_translating::space::each_run(tree_of(partition), &Pool, guest, length, action)
}

/// Memory for tables that the system image sets aside.
pub(crate) struct Pool;

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
pub(crate) fn clear(from: u64, length: u64) {
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
