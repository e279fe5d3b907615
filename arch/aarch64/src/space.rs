// SPDX-License-Identifier: Apache-2.0
//! Address spaces of partitions: stage-2 translation.

use crate::machine::Machine;
use crate::sysreg::{instruction, write_guest_register};
use crate::tables::{PAGE, Pool, Radix};
use crate::{cache, irq};
use bulkhead_arch_api::{
    BuildError, CopyError, GuestPhys, HostPhys, MAX_PARTITIONS, MemoryKind, PartitionId, Region, Spaces,
    VirtualController,
};
use bulkhead_arch_support::physical;
use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

static ROOTS: [AtomicU64; MAX_PARTITIONS] = [const { AtomicU64::new(0) }; MAX_PARTITIONS];
static USED: AtomicUsize = AtomicUsize::new(0);
const LEAF_MEMORY: u64 = 1 << 63;

/// VTCR_EL2: T0SZ 24 (40 bits), SL0 1 (level 1), inner-shareable write-back walks, RES1; PS added.
const VTCR: u64 = 24 | 1 << 6 | 1 << 8 | 1 << 10 | 3 << 12 | 1 << 31;

pub(crate) fn enable() {
    let range = (crate::sysreg::read_register!("id_aa64mmfr0_el1") & 0xF).min(5);
    write_guest_register!("vtcr_el2", VTCR | range << 16);
}

pub(crate) fn enter(partition: PartitionId) {
    let root = ROOTS.get(usize::from(partition.0)).map_or(0, |root| root.load(Ordering::Relaxed));
    write_guest_register!("vttbr_el2", root | (u64::from(partition.0) + 1) << 48);
    instruction!("isb");
}

fn lookup(partition: PartitionId, guest: GuestPhys) -> Option<(u64, u64)> {
    let root = ROOTS.get(usize::from(partition.0))?.load(Ordering::Relaxed);
    if root == 0 || guest.0 >= 1 << 40 { return None; }
    Radix::translate(root, 1, guest.0)
}

pub(crate) fn is_memory(partition: PartitionId, guest: GuestPhys) -> bool {
    lookup(partition, guest).is_some_and(|(_, e)| e >> 2 & 0xF == 0xF)
}

fn chunks(partition: PartitionId, guest: GuestPhys, length: u64, mut f: impl FnMut(u64, u64, u64)) -> Result<(), CopyError> {
    let mut done = 0;
    while done < length {
        let at = GuestPhys(guest.0.wrapping_add(done));
        let Some((host, entry)) = lookup(partition, at) else { return Err(CopyError { address: at }) };
        if entry >> 2 & 0xF != 0xF { return Err(CopyError { address: at }); }
        let n = (PAGE - (at.0 & (PAGE - 1))).min(length - done);
        f(host, done, n);
        done += n;
    }
    Ok(())
}

impl Spaces for Machine {
    fn build(&mut self, partition: PartitionId, regions: &[Region], controller: Option<&VirtualController>) -> Result<(), BuildError> {
        let (base, size) = self.pool;
        let mut next = USED.load(Ordering::Relaxed);
        next = next.next_multiple_of(2);
        let pool = Pool { base, count: (size / PAGE) as usize, next: &mut next };
        let root = pool.base + *pool.next as u64 * PAGE;
        if *pool.next + 2 > pool.count { return Err(BuildError::TablesExhausted); }
        *pool.next += 2;
        for i in 0..1024 {
            // SAFETY: interim
            unsafe { physical::write_word((root + i * 8) as usize, 0) }
        }
        let mut radix = Radix { root, first_level: 1, pool };
        for region in regions {
            let mut attr = 1 << 10 | 3 << 8;
            if region.permissions.read { attr |= 1 << 6; }
            if region.permissions.write { attr |= 1 << 7; }
            if !region.permissions.execute { attr |= 2 << 53; }
            attr |= match region.kind { MemoryKind::Ram => 0xF << 2, MemoryKind::Device => 1 << 2 };
            if !radix.map(region.guest.0, region.host.0, region.size, attr) { return Err(BuildError::TablesExhausted); }
        }
        USED.store(next, Ordering::Relaxed);
        if let Some(slot) = ROOTS.get(usize::from(partition.0)) { slot.store(root, Ordering::Release); }
        instruction!("dsb ish");
        irq::configure(partition, controller);
        let _ = LEAF_MEMORY;
        Ok(())
    }
    fn revoke(&mut self, _partition: PartitionId, _guest: GuestPhys, _size: u64) {}
    fn translate(&self, partition: PartitionId, guest: GuestPhys) -> Option<HostPhys> {
        lookup(partition, guest).map(|(host, _)| HostPhys(host))
    }
    fn copy_in(&self, partition: PartitionId, guest: GuestPhys, bytes: &mut [u8]) -> Result<(), CopyError> {
        let length = bytes.len() as u64;
        chunks(partition, guest, length, |host, done, n| {
            cache::clean_and_invalidate(host, n);
            // SAFETY: interim
            unsafe { physical::read(host as usize, &mut bytes[done as usize..(done + n) as usize]) }
        })
    }
    fn copy_out(&mut self, partition: PartitionId, guest: GuestPhys, bytes: &[u8]) -> Result<(), CopyError> {
        chunks(partition, guest, bytes.len() as u64, |host, done, n| {
            // SAFETY: interim
            unsafe { physical::write(host as usize, &bytes[done as usize..(done + n) as usize]) }
            cache::clean_and_invalidate(host, n);
        })?;
        cache::invalidate_instructions();
        Ok(())
    }
    fn clear(&mut self, partition: PartitionId, guest: GuestPhys, length: u64) -> Result<(), CopyError> {
        chunks(partition, guest, length, |host, _, n| {
            static ZEROS: [u64; 512] = [0; 512];
            // SAFETY: interim
            let z = unsafe { core::slice::from_raw_parts(ZEROS.as_ptr().cast::<u8>(), n as usize) };
            // SAFETY: interim
            unsafe { physical::write(host as usize, z) }
            cache::clean_and_invalidate(host, n);
        })
    }
    fn reset_shared(&mut self, partition: PartitionId) {
        irq::reset_shared(partition);
    }
}
