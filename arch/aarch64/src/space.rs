// SPDX-License-Identifier: Apache-2.0
//! Address spaces of partitions: stage-2 translation, and the hypervisor's own way to their memory.
//!
//! A space is a tree of `arch/paging` in memory that the system image sets aside. The boot pCPU builds the
//! tree before any vCPU runs. After that the tree is only read, except by [`Spaces::protect`]. The VMID of a
//! partition is its number plus one; VMID 0 belongs to no partition. The guest-physical size is 40 bits, or
//! the size that the CPU has if that is less.
//!
//! Partition memory is never a Rust reference. The hypervisor looks an address up in the same tree that the
//! partition's own accesses go through, and then reads or writes by address ([`physical`]).

use crate::board::BOARD;
use crate::gic::{self, Controller};
use crate::machine::Machine;
use crate::sysreg::{instruction, instruction_with, read_register, write_guest_register};
use crate::{cache, flash, tables};
use bulkhead_arch_api::{
    AccessKind, BuildError, CopyError, GuestPhys, HostPhys, MAX_PARTITIONS, MemoryKind, PartitionId,
    Permissions, Region, SpacePlan, Spaces, VirtualDevice,
};
use bulkhead_arch_paging::vmsa::Stage2;
use bulkhead_arch_paging::{Geometry, PAGE_SIZE, TableMemory, Translation, Tree};
use bulkhead_arch_support::{Mmio, physical};
use bulkhead_arch_translating::space::{self, map_region, part};
use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// VTCR_EL2 (Arm DDI 0487 D19.2.161) without size and PS: inner-shareable write-back walks, 4 KiB, RES1.
const VTCR: u64 = 1 << 8 | 1 << 10 | 3 << 12 | 1 << 31;
/// Most bits of a guest-physical address.
const ADDRESS_BITS: u8 = 40;

/// Root of each partition's tree, 0 until it is built.
static ROOTS: [AtomicU64; MAX_PARTITIONS] = [const { AtomicU64::new(0) }; MAX_PARTITIONS];
/// Each partition's largest piece of RAM of which no grant takes parts.
static LARGEST: [Piece; MAX_PARTITIONS] = [const { Piece::NONE }; MAX_PARTITIONS];
/// A bit of [`Piece::rights`]: the partition is a task, whose memory is always cacheable (HCR_EL2.DC, Arm DDI
/// 0487 D19.2.48). So the hypervisor and the task see the same, and no line has to be cleaned between them.
const CACHED: u64 = 4;
/// Tables of the pool that are in use.
static USED: AtomicUsize = AtomicUsize::new(0);

/// A piece of a partition's RAM, of which the answer to most questions follows without a look at the tree.
struct Piece {
    first: AtomicU64,
    /// No bytes if there is no such piece. They are read first and written last.
    size: AtomicU64,
    host: AtomicU64,
    /// 1: the partition may load. 2: it may store. [`CACHED`] besides.
    rights: AtomicU64,
}

impl Piece {
    #[expect(
        clippy::declare_interior_mutable_const,
        reason = "the first value of an array's entries"
    )]
    const NONE: Self = Self {
        first: AtomicU64::new(0),
        size: AtomicU64::new(0),
        host: AtomicU64::new(0),
        rights: AtomicU64::new(0),
    };

    /// Returns the bus address of a stretch and the rights of the partition, if all of it is in the piece.
    #[inline(always)]
    fn find(&self, guest: GuestPhys, length: u64) -> Option<(u64, u64)> {
        let size = self.size.load(Ordering::Acquire);
        let offset = guest.0.wrapping_sub(self.first.load(Ordering::Relaxed));
        let is_inside = length <= size && offset <= size - length;
        let host = self.host.load(Ordering::Relaxed).wrapping_add(offset);
        is_inside.then(|| (host, self.rights.load(Ordering::Relaxed)))
    }
}

/// Notes that a partition is a task. Its space was built before.
pub(crate) fn note_task(partition: PartitionId) {
    if let Some(piece) = LARGEST.get(usize::from(partition.0)) {
        piece.rights.fetch_or(CACHED, Ordering::Relaxed);
    }
}

/// Finds a stretch of a partition's memory without a look at the tree: see [`Piece::find`].
#[inline(always)]
fn find_quickly(partition: PartitionId, guest: GuestPhys, length: u64) -> Option<(u64, u64)> {
    LARGEST.get(usize::from(partition.0))?.find(guest, length)
}

/// Makes a stretch of memory with these rights the same for the hypervisor and for a partition that runs with
/// its caches off.
#[inline(always)]
fn level(host: u64, length: u64, rights: u64) {
    if rights & CACHED == 0 {
        cache::clean_and_invalidate(host, length);
    }
}

/// Does [`Spaces::may_access`] by a look at the tree.
#[inline(never)]
fn may_access_pieces(partition: PartitionId, guest: GuestPhys, length: u64, is_store: bool) -> bool {
    let mut may = true;
    let found = each_run(partition, guest, length, |found, _, _| {
        let rights = found.attributes.permissions;
        may &= if is_store { rights.write } else { rights.read };
    });
    may && found.is_ok()
}

/// Does [`Spaces::pass_message`] if one of the stretches is in pieces.
#[inline(never)]
fn pass_pieces(
    sender: PartitionId,
    from: GuestPhys,
    receiver: PartitionId,
    first: GuestPhys,
    length: u64,
) -> Result<(), CopyError> {
    let mut result = Ok(());
    let loaded = each_piece(sender, from, length, |source, done, bytes| {
        cache::clean_and_invalidate(source, bytes);
        // A piece of the sender's is at most a few pieces of the receiver's.
        let here = GuestPhys(first.0.wrapping_add(done));
        let passed = each_piece(receiver, here, bytes, |target, before, bytes| {
            // SAFETY: memory of both partitions, mapped at EL2 as RAM of the board.
            unsafe { cache::copy_message(source + before, target, bytes) }
            cache::clean_and_invalidate(target, bytes);
        });
        result = result.and(passed);
    });
    loaded.and(result)
}

/// Returns the size of guest-physical addresses of this CPU, by ID_AA64MMFR0_EL1.PARange. All pCPUs of a
/// board agree.
#[inline]
fn geometry() -> Geometry {
    const SMALLER: [Geometry; 2] = [concatenated(32), concatenated(36)];
    const WIDEST: Geometry = concatenated(ADDRESS_BITS);
    let range = read_register!("id_aa64mmfr0_el1") & 0xF;
    SMALLER.get(range as usize).copied().unwrap_or(WIDEST)
}

const fn concatenated(bits: u8) -> Geometry {
    match Geometry::concatenated_root(bits) {
        Ok(geometry) => geometry,
        Err(_) => panic!("up to 43 bits have a concatenated root"),
    }
}

/// Sets this pCPU up for stage 2.
pub(crate) fn enable() {
    // PS: the 4 KiB granule reaches 48 bits (5) without FEAT_LPA.
    let physical_size = (read_register!("id_aa64mmfr0_el1") & 0xF).min(5);
    write_guest_register!("vtcr_el2", VTCR | Stage2::vtcr(geometry()) | physical_size << 16);
    instruction!("isb");
    instruction!("tlbi alle1");
    instruction!("dsb nsh");
    instruction!("isb");
}

/// Returns VTTBR_EL2 of a partition whose space is built.
pub(crate) fn of(partition: PartitionId) -> u64 {
    let root = ROOTS
        .get(usize::from(partition.0))
        .map_or(0, |root| root.load(Ordering::Relaxed));
    root | (u64::from(partition.0) + 1) << 48
}

/// Makes the space of this VTTBR_EL2 the one that EL1 and EL0 use. Stage-1 walks must be shut off meanwhile.
#[inline]
pub(crate) fn enter(space: u64) {
    write_guest_register!("vttbr_el2", space);
    instruction!("isb");
}

fn tree_of(partition: PartitionId) -> Option<Tree<Stage2>> {
    let root = ROOTS.get(usize::from(partition.0))?.load(Ordering::Acquire);
    (root != 0).then(|| Tree::new(HostPhys(root), geometry()))
}

fn look_up(partition: PartitionId, guest: GuestPhys) -> Option<Translation> {
    tree_of(partition)?.translate(&Pool, guest.0)
}

/// Tells whether this address is in the partition's largest region of memory.
#[inline(always)]
pub(crate) fn is_in_largest(partition: PartitionId, guest: GuestPhys) -> bool {
    LARGEST.get(usize::from(partition.0)).is_some_and(|piece| {
        let size = piece.size.load(Ordering::Acquire);
        guest.0.wrapping_sub(piece.first.load(Ordering::Relaxed)) < size
    })
}

/// Tells whether there is memory of the partition at this address.
pub(crate) fn is_memory(partition: PartitionId, guest: GuestPhys) -> bool {
    is_in_largest(partition, guest)
        || look_up(partition, guest).is_some_and(|found| found.attributes.kind == MemoryKind::Ram)
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

/// Calls `action` with bus address, bytes done and bytes of each piece of a stretch of partition memory.
fn each_piece(
    partition: PartitionId,
    guest: GuestPhys,
    length: u64,
    mut action: impl FnMut(u64, u64, u64),
) -> Result<(), CopyError> {
    each_run(partition, guest, length, |found, done, bytes| {
        action(found.output.0, done, bytes);
    })
}

/// Memory for tables that the system image sets aside.
struct Pool;

impl Pool {
    /// Takes `count` tables side by side, aligned to their total size. Requires: `count` is a power of two.
    fn take(count: usize) -> Option<HostPhys> {
        let (base, size) = BOARD.get()?.pool;
        let limit = (size / PAGE_SIZE) as usize;
        let skipped = |used: usize| (base / PAGE_SIZE) as usize + used;
        let start = |used: usize| used + (skipped(used).wrapping_neg() & (count - 1));
        let taken = USED.fetch_update(Ordering::AcqRel, Ordering::Acquire, |used| {
            let end = start(used) + count;
            (end <= limit).then_some(end)
        });
        let table = base + start(taken.ok()?) as u64 * PAGE_SIZE;
        for page in 0..count as u64 {
            // SAFETY: inside the pool, which is mapped RAM of ours alone (checked by `bulkhead_image`).
            unsafe { cache::zero_page(table + page * PAGE_SIZE) }
        }
        Some(HostPhys(table))
    }
}

impl TableMemory for Pool {
    fn read(&self, table: HostPhys, index: usize) -> u64 {
        // SAFETY: the tree only names entries of tables it got from `take`.
        unsafe { tables::read(table, index) }
    }

    fn write(&mut self, table: HostPhys, index: usize, entry: u64) {
        // SAFETY: as for `read`; nothing refers to them by reference.
        unsafe { tables::write(table, index, entry) }
    }

    fn fill(&mut self, table: HostPhys, index: usize, limit: usize, entry: u64, step: u64) -> usize {
        // SAFETY: as for `write`, and the run ends with the table.
        unsafe { tables::fill(table, index, limit, entry, step) }
    }

    fn allocate(&mut self) -> Option<HostPhys> {
        Self::take(1)
    }

    fn forget(&mut self, input: u64, _size: u64) {
        // One entry was changed, so one address of it suffices. Stage-1 results that include the entry go too
        // (D8, "TLB maintenance").
        instruction!("dsb ishst");
        instruction_with!("tlbi ipas2e1is", input >> 12);
        instruction!("dsb ish");
        instruction!("tlbi vmalle1is");
        instruction!("dsb ish");
        instruction!("isb");
    }

    fn forget_several(&mut self, _input: u64, _size: u64) {
        // Both stages of everything with the current VMID (D8, "TLB maintenance").
        instruction!("dsb ishst");
        instruction!("tlbi vmalls12e1is");
        instruction!("dsb ish");
        instruction!("isb");
    }
}

impl Spaces for Machine {
    fn build(
        &mut self,
        partition: PartitionId,
        plan: &SpacePlan<'_>,
        devices: impl Iterator<Item = VirtualDevice>,
    ) -> Result<(), BuildError> {
        let regions = plan.regions;
        let others = devices.inspect(|device| {
            if flash::is_flash(device) {
                flash::add(partition, device);
            }
        });
        let controller = Controller::of(plan.lines, others);
        let geometry = geometry();
        let root = Pool::take(geometry.root_tables() as usize).ok_or(BuildError::TablesExhausted)?;
        let tree = Tree::<Stage2>::new(root, geometry);
        for region in regions {
            map_region(&tree, &mut Pool, region)?;
        }
        if let Some((guest, host, size)) = controller.as_ref().and_then(gic::interface_mapping) {
            let region = Region {
                guest,
                host: HostPhys(host),
                size,
                permissions: Permissions {
                    read: true,
                    write: true,
                    execute: false,
                },
                kind: MemoryKind::Device,
            };
            map_region(&tree, &mut Pool, &region)?;
        }
        instruction!("dsb ish");
        if let Some(slot) = ROOTS.get(usize::from(partition.0)) {
            slot.store(root.0, Ordering::Release);
        }
        let memory = regions.iter().filter(|region| region.kind == MemoryKind::Ram);
        if let (Some(largest), Some(piece)) = (
            memory.max_by_key(|region| region.size),
            LARGEST.get(usize::from(partition.0)),
        ) {
            let rights = largest.permissions;
            let rights = u64::from(rights.read) | u64::from(rights.write) << 1;
            piece.first.store(largest.guest.0, Ordering::Relaxed);
            piece.host.store(largest.host.0, Ordering::Relaxed);
            piece.rights.store(rights, Ordering::Relaxed);
            piece.size.store(largest.size, Ordering::Release);
        }
        gic::configure(partition, controller.as_ref());
        Ok(())
    }

    fn protect(&mut self, partition: PartitionId, guest: GuestPhys, size: u64, permissions: Permissions) {
        let Some(tree) = tree_of(partition) else { return };
        if let Some(piece) = LARGEST.get(usize::from(partition.0))
            && piece.find(guest, 1).is_some()
        {
            piece.size.store(0, Ordering::Release);
        }
        // The invalidations are for the VMID in VTTBR_EL2.
        let space = of(partition);
        if read_register!("vttbr_el2") != space {
            self.unload();
            enter(space);
        }
        // The image's check has shown that the window can be mapped.
        let _in_range = tree.protect(&mut Pool, guest.0, size, permissions);
    }

    fn copy_in(&self, partition: PartitionId, guest: GuestPhys, bytes: &mut [u8]) -> Result<(), CopyError> {
        each_piece(partition, guest, bytes.len() as u64, |host, done, length| {
            // Older lines must not hide bytes that the partition wrote with its caches off.
            cache::clean_and_invalidate(host, length);
            if let Some(target) = bytes.get_mut(part(done, length)) {
                // SAFETY: memory of the partition, mapped at EL2 as RAM of the board.
                unsafe { physical::read(host as usize, target) }
            }
        })
    }

    fn copy_out(&mut self, partition: PartitionId, guest: GuestPhys, bytes: &[u8]) -> Result<(), CopyError> {
        each_piece(partition, guest, bytes.len() as u64, |host, done, length| {
            if let Some(source) = bytes.get(part(done, length)) {
                // SAFETY: memory of the partition, mapped at EL2 as RAM of the board; no reference to it
                // exists.
                unsafe { cache::copy(host, source) }
            }
        })?;
        cache::invalidate_instructions();
        Ok(())
    }

    #[inline(always)]
    fn may_access(&self, partition: PartitionId, guest: GuestPhys, length: u64, is_store: bool) -> bool {
        match find_quickly(partition, guest, length) {
            Some((_, rights)) => rights & (1 + u64::from(is_store)) != 0,
            None => may_access_pieces(partition, guest, length, is_store),
        }
    }

    fn load_message(
        &self,
        from: (PartitionId, GuestPhys),
        length: usize,
        words: &[AtomicU64],
    ) -> Result<(), CopyError> {
        let to = words.as_ptr().expose_provenance() as u64;
        let length = length.min(words.len() * 8) as u64;
        if let Some((host, rights)) = find_quickly(from.0, from.1, length) {
            level(host, length, rights);
            // SAFETY: memory of the partition, mapped at EL2 as RAM of the board, and words that are ours to
            // change, as many.
            unsafe { cache::copy_message(host, to, length) }
            return Ok(());
        }
        each_piece(from.0, from.1, length, |host, done, bytes| {
            cache::clean_and_invalidate(host, bytes);
            // SAFETY: as above.
            unsafe { cache::copy_message(host, to + done, bytes) }
        })
    }

    fn store_message(
        &mut self,
        to: (PartitionId, GuestPhys),
        length: usize,
        words: &[AtomicU64],
    ) -> Result<(), CopyError> {
        let from = words.as_ptr().expose_provenance() as u64;
        let length = length.min(words.len() * 8) as u64;
        if let Some((host, rights)) = find_quickly(to.0, to.1, length) {
            // SAFETY: as above, in the other direction.
            unsafe { cache::copy_message(from, host, length) }
            level(host, length, rights);
            return Ok(());
        }
        each_piece(to.0, to.1, length, |host, done, bytes| {
            // SAFETY: as above.
            unsafe { cache::copy_message(from + done, host, bytes) }
            cache::clean_and_invalidate(host, bytes);
        })
    }

    #[inline(always)]
    fn pass_message(
        &mut self,
        from: (PartitionId, GuestPhys),
        to: (PartitionId, GuestPhys),
        length: usize,
    ) -> Result<(), CopyError> {
        let length = length as u64;
        let (Some((source, senders)), Some((target, receivers))) = (
            find_quickly(from.0, from.1, length),
            find_quickly(to.0, to.1, length),
        ) else {
            return pass_pieces(from.0, from.1, to.0, to.1, length);
        };
        level(source, length, senders);
        // SAFETY: memory of both partitions, mapped at EL2 as RAM of the board.
        unsafe { cache::copy_message(source, target, length) }
        level(target, length, receivers);
        Ok(())
    }

    fn clear(&mut self, partition: PartitionId, guest: GuestPhys, length: u64) -> Result<u64, CopyError> {
        let run = tree_of(partition).and_then(|tree| tree.translate_run(&Pool, guest.0, length));
        let found = run
            .filter(|found| found.attributes.kind == MemoryKind::Ram)
            .ok_or(CopyError { address: guest })?;
        // SAFETY: memory of the partition, mapped at EL2 as RAM of the board; no reference to it exists.
        Ok(unsafe { cache::clear(found.output.0, found.contiguous.min(length)) })
    }

    fn clean(&mut self, partition: PartitionId, guest: GuestPhys, length: u64) -> Result<(), CopyError> {
        each_piece(partition, guest, length, |host, _, length| {
            cache::clean_and_invalidate(host, length);
        })?;
        cache::invalidate_instructions();
        Ok(())
    }

    fn forward(&mut self, register: HostPhys, size: u8, kind: AccessKind) -> u64 {
        // SAFETY: the window is one access wide. `map_board` has mapped every window of the registers table
        // as device memory (the caller promises that this is inside one), and the image check has shown that
        // it belongs to no other partition.
        unsafe { Mmio::new(register.0 as usize, usize::from(size)) }.forward(size, kind)
    }

    fn reset_shared(&mut self, partition: PartitionId, part: u32) -> Option<u32> {
        gic::reset_shared(partition, part)
    }
}
