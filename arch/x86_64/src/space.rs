// SPDX-License-Identifier: Apache-2.0
//! Address spaces of partitions: nested paging, and the hypervisor's own way to their memory.
//!
//! A space is a tree of nested paging ([`crate::trees`]).
//!
//! A task runs in 64-bit mode, which cannot be without translation tables of its own. They are made here: an
//! identity map of the first 512 GiB, at [`TASK_ROOT`], where the map itself does not reach. Its rights are
//! the rights in the nested tables.
//!
//! Partition memory is never a Rust reference. The hypervisor looks an address up in the same tree that the
//! partition's own accesses go through, and then reads or writes by address.

use crate::machine::Machine;
use crate::platform;
use crate::trees::{GEOMETRY, Pool, ROOTS, clear, each_run, note_run, tree_of};
use bulkhead_arch_api::class::X86_64;
use bulkhead_arch_api::{
    AccessKind, BuildError, CLEAR_AT_ONCE, CopyError, GuestPhys, HostPhys, MemoryKind, PartitionId,
    Permissions, Region, SpacePlan, Spaces, VirtualDevice,
};
use bulkhead_arch_paging::long_mode::Nested;
use bulkhead_arch_paging::{PAGE_SIZE, TableMemory, Tree};
use bulkhead_arch_support::{Mmio, physical};
use bulkhead_arch_translating::space::{map_region, part};
use core::sync::atomic::Ordering;

/// Where a task's own tables are: after everything that a partition can have mapped.
pub(crate) const TASK_ROOT: u64 = 1 << 39;
/// Entry of a task's tables: present, writable, user, accessed.
const TASK_ENTRY: u64 = 0x27;
/// The same for memory: dirty, large.
const TASK_LEAF: u64 = 0xE7;

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
