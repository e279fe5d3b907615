// SPDX-License-Identifier: Apache-2.0
//! Spaces of partitions in the memory protection unit: the regions, the questions about them, and the way
//! they are loaded.
//!
//! A space is a plan (`bulkhead_arch_regions`) of at most as many regions as the unit has. No two regions
//! overlap. There is no translation: a partition sees at an address the thing that is there. The hypervisor
//! itself has no region. Memory that no region covers is open to privileged code (MPU_CTRL.PRIVDEFENA), and
//! regions give privileged code all rights to read and write.

use crate::sysreg::{self, MPU_CTRL, MPU_RASR, MPU_RBAR};
use bulkhead_arch_api::{MAX_PARTITIONS, PartitionId};
use bulkhead_arch_one_pcpu::{Pool, Slots};
use bulkhead_arch_regions::{Combination, GuestView, Loaded, MAX_REGIONS, Plan, Rights};

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

    /// Tells how far from its beginning so many bytes can begin.
    const fn room(&self, bytes: u32) -> u32 {
        self.last.saturating_sub(self.first).saturating_sub(bytes - 1)
    }

    /// Tells whether all of these bytes, one at least, are in the interval.
    #[inline(always)]
    const fn holds(&self, address: u32, bytes: u32) -> bool {
        address >= self.first && address <= self.last && bytes - 1 <= self.last - address
    }
}

/// A partition's space.
pub(crate) struct Space {
    pub(crate) loaded: Loaded,
    /// The largest stretch of RAM, and of code. Nearly all addresses that are asked about are in one of them.
    ram: Interval,
    code: Interval,
    /// Addresses in that code that look like a replaced instruction and are none.
    lookalikes: &'static [u32],
}

impl Space {
    /// Makes a space. `lookalikes` has all of the whole system image.
    pub(crate) fn new(plan: &Plan, lookalikes: &'static [u32]) -> Self {
        let mut space = Self {
            loaded: Loaded::of(plan.regions().iter()),
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

    /// Returns the longest stretch with such rights. Bounded by the eighths of the regions, each of which may
    /// be a beginning.
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

    /// Returns the stretch around `address` in which the rights are those at `address`, as far as one region
    /// says so: its rights, and the first address after it. These are the rights of the hypervisor for the
    /// partition: none to registers of devices, which need not answer.
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

    /// Tells whether all bytes have rights that `enough` finds sufficient. Bounded by the eighths of the
    /// regions.
    #[inline(never)]
    fn all(&self, address: u32, bytes: u32, enough: fn(Rights) -> bool) -> bool {
        self.first_refused(u64::from(address), u64::from(bytes), enough)
            .is_none()
    }

    /// Returns the first of these bytes whose rights are not enough.
    #[inline(never)]
    pub(crate) fn first_refused(&self, address: u64, bytes: u64, enough: fn(Rights) -> bool) -> Option<u64> {
        // A stretch across the end of all addresses begins nowhere.
        let Some(last) = address.checked_add(bytes) else {
            return Some(address);
        };
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

    /// Returns the parts of the space that the shortest ways look at.
    #[inline(always)]
    pub(crate) fn plain(&self) -> Plain {
        // The RAM leaves room for a frame, and the code leaves room for an instruction with more code after
        // it.
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

    /// Returns the rights of the partition to an address, without the guest's own unit.
    pub(crate) fn rights(&self, address: u32) -> Rights {
        self.loaded.rights_at(address)
    }

    /// Returns the regions for the unit that give the guest what both the partition and the guest's own unit
    /// allow. If there are not enough regions for that, the guest's regions with the lowest numbers are left
    /// out.
    #[inline(never)]
    pub(crate) fn combined(&self, view: &GuestView<'_>) -> Loaded {
        let mut own = Plan::EMPTY;
        self.loaded.put_into(&mut own);
        let mut combination = Combination::NOTHING;
        combination.combine(own.regions(), view);
        Loaded::of(combination.regions(MAX_REGIONS as u8))
    }
}

/// Loads these regions into the unit.
#[inline(never)]
pub(crate) fn load(loaded: &Loaded) {
    // The unit is off meanwhile: a new address with the old size could cover the hypervisor's own code.
    sysreg::write(MPU_CTRL, 0);
    for (base, attributes) in loaded.registers() {
        sysreg::write(MPU_RBAR, *base);
        sysreg::write(MPU_RASR, *attributes);
    }
    sysreg::write(MPU_CTRL, CONTROL_ON);
    sysreg::synchronize();
}

/// The plain parts of the current vCPU's space: its RAM and its code. Each part is its first address, and the
/// largest distance from there at which a thing that is asked about may begin. The addresses in `lookalikes`
/// are places in the code that look like a replaced instruction and are none.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plain {
    pub(crate) ram: (u32, u32),
    pub(crate) code: (u32, u32),
    pub(crate) lookalikes: &'static [u32],
}

impl Plain {
    /// No part of a space is plain: no frame and no instruction is at an odd address.
    pub(crate) const NOTHING: Self = Self {
        ram: (1, 0),
        code: (1, 0),
        lookalikes: &[],
    };

    #[inline(always)]
    pub(crate) const fn has_frame(&self, address: u32) -> bool {
        address.wrapping_sub(self.ram.0) <= self.ram.1
    }

    #[inline(always)]
    pub(crate) const fn has_code(&self, address: u32) -> bool {
        address.wrapping_sub(self.code.0) <= self.code.1
    }

    /// Tells whether the instruction at `address`, which looks like a replaced one, is one. The time is
    /// bounded by the logarithm of the number of lookalikes, of which there mostly are none.
    #[inline(always)]
    pub(crate) fn is_replaced(&self, address: u32) -> bool {
        let mut rest = self.lookalikes;
        while let (before, [middle, after @ ..]) = rest.split_at(rest.len() / 2) {
            if *middle == address {
                return false;
            }
            rest = if *middle < address { after } else { before };
        }
        self.has_code(address)
    }
}

/// Opens nothing to unprivileged code, before any space is loaded.
pub(crate) fn close() {
    sysreg::write(MPU_CTRL, CONTROL_ON);
    sysreg::synchronize();
}

/// The spaces that have been built, in memory of the pool.
pub(crate) struct SpaceTable(Slots<Space, MAX_PARTITIONS>);

impl SpaceTable {
    pub(crate) const fn new() -> Self {
        Self(Slots::new())
    }

    /// Returns a partition's space, if it has been built.
    #[inline]
    pub(crate) fn get(&self, partition: PartitionId) -> Option<&Space> {
        self.0.get(partition.0)
    }

    pub(crate) fn set(&mut self, partition: PartitionId, space: Space, pool: &mut Pool) -> bool {
        self.0.put(partition.0, space, pool)
    }
}
