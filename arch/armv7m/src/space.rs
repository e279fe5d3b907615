// SPDX-License-Identifier: Apache-2.0
//! Spaces of partitions: what the memory protection unit lets a guest reach.
//!
//! A space is a plan (`bulkhead_arch_regions`): at most as many regions as the unit has, none of which overlap. There is no
//! translation: what a partition sees of an address is what is there. The hypervisor itself has no region: what none covers is
//! open to privileged code (MPU_CTRL.PRIVDEFENA), and regions give privileged code all rights to read and write.

use crate::irq;
use crate::machine::Machine;
use crate::pool::Pool;
use crate::quick::Plain;
use crate::system::{self, MPU_CTRL, MPU_RASR, MPU_RBAR};
use bulkhead_arch_api::{
    AccessKind, BuildError, CopyError, GuestPhys, HostPhys, MAX_PARTITIONS, MemoryKind, PartitionId, Region,
    Spaces, VirtualController,
};
use bulkhead_arch_regions::{
    GuestView, Loaded, MAX_REGIONS, MAX_REQUESTS, Memory, Plan, Refusal, Request, Rights, combine_what_fits,
    plan,
};
use bulkhead_arch_support::{Mmio, physical};
use core::ptr::NonNull;

/// MPU_CTRL: ENABLE and PRIVDEFENA.
const CONTROL_ON: u32 = 1 | 1 << 2;

/// Addresses that follow each other.
#[derive(Clone, Copy)]
struct Interval {
    first: u32,
    last: u32,
}

impl Interval {
    const NONE: Self = Self { first: 1, last: 0 };

    /// How far from its beginning so many bytes can begin.
    const fn room(&self, bytes: u32) -> u32 {
        self.last.saturating_sub(self.first).saturating_sub(bytes - 1)
    }

    /// Whether all of these bytes, one at least, are in it.
    #[inline(always)]
    const fn holds(&self, address: u32, bytes: u32) -> bool {
        address >= self.first && address <= self.last && bytes - 1 <= self.last - address
    }
}

/// A partition's space.
pub(crate) struct Space {
    loaded: Loaded,
    /// Its largest stretch of RAM, and of code: what is asked about is nearly always in one of them.
    ram: Interval,
    code: Interval,
    /// What in that code looks like a replaced instruction and is none.
    lookalikes: &'static [u32],
}

impl Space {
    /// `lookalikes`: all of the system image.
    fn new(plan: &Plan, lookalikes: &'static [u32]) -> Self {
        let mut space = Self {
            loaded: Loaded::of(plan.regions()),
            ram: Interval::NONE,
            code: Interval::NONE,
            lookalikes: &[],
        };
        space.ram = space.longest(|rights| rights.read && rights.write);
        space.code = space.longest(|rights| rights.read && rights.execute);
        let before = |end: u32| lookalikes.partition_point(|address| *address < end);
        let own = lookalikes.get(before(space.code.first)..before(space.code.last));
        space.lookalikes = own.unwrap_or(&[]);
        space
    }

    /// The longest stretch with such rights. Bounded by the eighths of the regions, each of which may be a beginning.
    fn longest(&self, enough: fn(Rights) -> bool) -> Interval {
        let mut longest = Interval::NONE;
        let mut bytes = 0;
        for region in self.loaded.regions() {
            for eighth in 0..8 {
                let start = u64::from(region.base) + eighth * region.granule();
                let end = self.first_refused(start, (1 << 32) - start.min(1 << 32), enough);
                let length = end.unwrap_or(1 << 32).saturating_sub(start);
                if length > bytes {
                    bytes = length;
                    longest = Interval {
                        first: start as u32,
                        last: (start + length - 1) as u32,
                    };
                }
            }
        }
        longest
    }

    /// The stretch around `address` in which the rights are those at `address`, as far as one region says so: its
    /// rights, and the first address behind it. These are the rights of the hypervisor for the partition: none to registers of
    /// devices, which need not answer.
    fn stretch(&self, address: u32) -> Option<(Rights, u64)> {
        let region = self.loaded.region_at(address)?;
        let end = if region.disabled == 0 {
            region.end()
        } else {
            (u64::from(address) | (region.granule() - 1)) + 1
        };
        let rights = if region.memory.is_device() {
            Rights::NONE
        } else {
            region.rights
        };
        Some((rights, end))
    }

    /// Whether all bytes have rights that `enough` finds sufficient. Bounded by the eighths of the regions.
    #[inline(never)]
    fn all(&self, address: u32, bytes: u32, enough: fn(Rights) -> bool) -> bool {
        self.first_refused(u64::from(address), u64::from(bytes), enough)
            .is_none()
    }

    /// The first of these bytes whose rights are not enough.
    #[inline(never)]
    fn first_refused(&self, address: u64, bytes: u64, enough: fn(Rights) -> bool) -> Option<u64> {
        let last = address.saturating_add(bytes);
        let mut at = address;
        while at < last {
            let here = u32::try_from(at).ok().and_then(|at| self.stretch(at));
            match here {
                Some((rights, end)) if enough(rights) => at = end,
                _ => return Some(at),
            }
        }
        None
    }

    /// What of it the shortest ways look at.
    #[inline(always)]
    pub(crate) fn plain(&self) -> Plain {
        // Room for a frame, and for an instruction with more code behind it.
        Plain {
            ram: (self.ram.first, self.ram.room(32)),
            code: (self.code.first, self.code.room(8)),
            lookalikes: self.lookalikes,
        }
    }

    #[inline(always)]
    pub(crate) fn writable(&self, address: u32, bytes: u32) -> bool {
        self.ram.holds(address, bytes) || self.all(address, bytes, |rights| rights.read && rights.write)
    }

    #[inline(always)]
    pub(crate) fn executable(&self, address: u32, bytes: u32) -> bool {
        self.code.holds(address, bytes) || self.all(address, bytes, |rights| rights.execute)
    }

    #[inline(always)]
    pub(crate) fn readable(&self, address: u32, bytes: u32) -> bool {
        self.ram.holds(address, bytes)
            || self.code.holds(address, bytes)
            || self.all(address, bytes, |rights| rights.read)
    }

    /// The rights of the partition to an address, whatever its guest's own unit says.
    pub(crate) fn rights(&self, address: u32) -> Rights {
        self.loaded.rights_at(address)
    }

    /// Loads the space into the unit, as far as the guest's own unit, if that is on, allows. The guest gets nothing that is not in
    /// both; if there are not enough regions to say so, those of the guest that have the lowest numbers are left out.
    #[inline(always)]
    pub(crate) fn load(&self, view: Option<&GuestView<'_>>) {
        match view {
            None => load(&self.loaded),
            Some(view) => self.load_combined(view),
        }
    }

    #[inline(never)]
    fn load_combined(&self, view: &GuestView<'_>) {
        let combined = combine_what_fits(self.loaded.plan().regions(), view, MAX_REGIONS as u8);
        load(&Loaded::of(combined.regions()));
    }
}

/// Loads these regions into the unit.
#[inline(never)]
fn load(loaded: &Loaded) {
    // Off meanwhile: a new address with the old size could cover the hypervisor's own code.
    system::write(MPU_CTRL, 0);
    for (base, attributes) in loaded.registers() {
        system::write(MPU_RBAR, *base);
        system::write(MPU_RASR, *attributes);
    }
    system::write(MPU_CTRL, CONTROL_ON);
    system::synchronize();
}

/// Clears memory until `enough`, which is asked from time to time; how many bytes that were.
///
/// # Safety
/// All of it is memory to which no Rust reference exists.
unsafe fn clear(to: usize, length: usize, enough: impl Fn() -> bool) -> usize {
    /// Aligned, so that it is copied by doublewords.
    #[repr(align(8))]
    struct Zeros([u8; 128]);
    static ZEROS: Zeros = Zeros([0; 128]);
    let mut done = 0;
    while done < length && (done == 0 || !enough()) {
        let part = ZEROS.0.get(..length - done).unwrap_or(&ZEROS.0);
        // SAFETY: the caller's.
        unsafe { physical::write(to + done, part) }
        done += part.len();
    }
    done
}

/// Before any space is loaded: nothing is open to unprivileged code.
pub(crate) fn close() {
    system::write(MPU_CTRL, CONTROL_ON);
    system::synchronize();
}

/// The spaces that have been built, in memory of the pool. There is one table, the machine's; so whoever borrows it has the only way to
/// them.
pub(crate) struct SpaceTable {
    built: [Option<NonNull<Space>>; MAX_PARTITIONS],
}

impl SpaceTable {
    pub(crate) const fn new() -> Self {
        Self {
            built: [None; MAX_PARTITIONS],
        }
    }

    /// A partition's space, if it has been built.
    #[inline]
    pub(crate) fn get(&self, partition: PartitionId) -> Option<&Space> {
        let place = self.built.get(usize::from(partition.0)).copied().flatten()?;
        // SAFETY: `set` has put a space there, which only this table knows; references come from it only, and borrow it.
        Some(unsafe { place.as_ref() })
    }

    fn set(&mut self, partition: PartitionId, space: Space, pool: &mut Pool) -> bool {
        let Some(slot) = self.built.get_mut(usize::from(partition.0)) else {
            return false;
        };
        match slot {
            None => *slot = pool.put(space),
            // SAFETY: as for `get`; no reference to it is alive, because one borrows the table.
            Some(place) => unsafe { place.write(space) },
        }
        slot.is_some()
    }
}

fn request(region: &Region) -> Result<Request, BuildError> {
    let bad = BuildError::BadRegion(region.guest);
    let start = u32::try_from(region.guest.0).map_err(|_| bad)?;
    if region.guest.0 != region.host.0 {
        return Err(bad);
    }
    Ok(Request {
        start,
        bytes: region.size,
        rights: Rights {
            read: region.permissions.read,
            write: region.permissions.write,
            execute: region.permissions.execute,
        },
        memory: match region.kind {
            MemoryKind::Ram => Memory::NORMAL,
            MemoryKind::Device => Memory::DEVICE,
        },
    })
}

impl Machine {
    fn checked(
        &self,
        partition: PartitionId,
        guest: GuestPhys,
        length: u64,
        enough: fn(Rights) -> bool,
    ) -> Result<usize, CopyError> {
        let refused = match self.spaces.get(partition) {
            Some(space) => space.first_refused(guest.0, length, enough),
            None => Some(guest.0),
        };
        match refused {
            Some(address) => Err(CopyError {
                address: GuestPhys(address),
            }),
            None => Ok(guest.0 as usize),
        }
    }
}

impl Spaces for Machine {
    fn build(
        &mut self,
        partition: PartitionId,
        regions: &[Region],
        _controller: Option<&VirtualController>,
    ) -> Result<(), BuildError> {
        const NOTHING: Request = Request {
            start: 0,
            bytes: 0,
            rights: Rights::NONE,
            memory: Memory::NORMAL,
        };
        let mut requests = [NOTHING; MAX_REQUESTS];
        if regions.len() > requests.len() {
            return Err(BuildError::TablesExhausted);
        }
        for (slot, region) in requests.iter_mut().zip(regions) {
            *slot = request(region)?;
        }
        let address = |index: usize| regions.get(index).map_or(GuestPhys(0), |region| region.guest);
        let plan =
            plan(requests.get(..regions.len()).unwrap_or(&[]), self.regions).map_err(
                |refusal| match refusal {
                    Refusal::Unaligned { index, .. } | Refusal::Forbidden { index, .. } => {
                        BuildError::BadRegion(address(index))
                    }
                    Refusal::Overlap { index, .. } => BuildError::Overlap(address(index)),
                    Refusal::TooMany { .. } => BuildError::TablesExhausted,
                },
            )?;
        let space = Space::new(&plan, self.lookalikes);
        if self.spaces.set(partition, space, &mut self.pool) {
            Ok(())
        } else {
            Err(BuildError::TablesExhausted)
        }
    }

    fn revoke(&mut self, partition: PartitionId, guest: GuestPhys, size: u64) {
        let Some(space) = self.spaces.get(partition) else {
            return;
        };
        let mut plan = space.loaded.plan();
        plan.leave_out(guest.0, size);
        let space = Space::new(&plan, self.lookalikes);
        let _is_built = self.spaces.set(partition, space, &mut self.pool);
        self.reload_space(partition);
    }

    fn translate(&self, partition: PartitionId, guest: GuestPhys) -> Option<HostPhys> {
        let address = u32::try_from(guest.0).ok()?;
        let rights = self.spaces.get(partition)?.rights(address);
        (!rights.is_none()).then_some(HostPhys(guest.0))
    }

    fn copy_in(&self, partition: PartitionId, guest: GuestPhys, bytes: &mut [u8]) -> Result<(), CopyError> {
        let from = self.checked(partition, guest, bytes.len() as u64, |rights| rights.read)?;
        // SAFETY: memory of the partition, which is readable by privileged code, and to which no Rust reference exists.
        unsafe { physical::read(from, bytes) }
        Ok(())
    }

    fn copy_out(&mut self, partition: PartitionId, guest: GuestPhys, bytes: &[u8]) -> Result<(), CopyError> {
        let to = self.checked(partition, guest, bytes.len() as u64, |rights| !rights.is_none())?;
        // SAFETY: memory of the partition, to which no Rust reference exists; privileged code may write all RAM.
        unsafe { physical::write(to, bytes) }
        Ok(())
    }

    fn clear(&mut self, partition: PartitionId, guest: GuestPhys, length: u64) -> Result<(), CopyError> {
        let to = self.checked(partition, guest, length, |rights| !rights.is_none())?;
        // SAFETY: as for `copy_out`.
        unsafe { clear(to, length as usize, || false) };
        Ok(())
    }

    fn clear_some(
        &mut self,
        partition: PartitionId,
        guest: GuestPhys,
        length: u64,
    ) -> Result<u64, CopyError> {
        let to = self.checked(partition, guest, length, |rights| !rights.is_none())?;
        // SAFETY: as for `copy_out`.
        Ok(unsafe { clear(to, length as usize, irq::is_pending) } as u64)
    }

    fn clean(&mut self, partition: PartitionId, guest: GuestPhys, length: u64) -> Result<(), CopyError> {
        // Caches, where there are any, are off: the hypervisor does not switch them on.
        self.checked(partition, guest, length, |rights| !rights.is_none())?;
        Ok(())
    }

    fn forward(&mut self, register: HostPhys, size: u8, kind: AccessKind) -> u64 {
        // SAFETY: the system image's table of registers says that this is a register of a device.
        let window = unsafe { Mmio::new(register.0 as usize, usize::from(size)) };
        match (kind, size) {
            (AccessKind::Read, 1) => window.read8(0).into(),
            (AccessKind::Read, 2) => window.read16(0).into(),
            (AccessKind::Read, _) => window.read32(0).into(),
            (AccessKind::Write(value), 1) => {
                window.write8(0, value as u8);
                0
            }
            (AccessKind::Write(value), 2) => {
                window.write16(0, value as u16);
                0
            }
            (AccessKind::Write(value), _) => {
                window.write32(0, value as u32);
                0
            }
        }
    }

    fn reset_shared(&mut self, partition: PartitionId, _part: u32) -> Option<u32> {
        self.forget_lines(partition);
        None
    }
}
