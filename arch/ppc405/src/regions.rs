// SPDX-License-Identifier: Apache-2.0
//! Spaces of partitions: stretches of guest addresses, and where they are on the bus.

use crate::context::Main;
use bulkhead_arch_api::MAX_PARTITIONS;
use bulkhead_arch_api::{BuildError, MemoryKind, PartitionId, Region};
use bulkhead_arch_ppc405_core::fill::Stretch;
use bulkhead_arch_support::ClaimTable;
use core::cell::UnsafeCell;

/// Mappings of a partition.
const MAX_STRETCHES: usize = bulkhead_image::MAX_REGIONS_PER_PARTITION;
/// Mappings begin and end at multiples of this.
const PAGE: u64 = 4096;

/// The space of a partition.
#[derive(Clone)]
pub(crate) struct Space {
    stretches: [Stretch; MAX_STRETCHES],
    used: usize,
    /// First and last address of the registers of virtual devices.
    devices: [(u32, u32); MAX_DEVICES],
}

/// Virtual devices with registers in memory, none of them: an empty stretch.
const NO_DEVICE: (u32, u32) = (1, 0);
const MAX_DEVICES: usize = 4;

const NOTHING: Stretch = Stretch {
    guest: 0,
    host: 0,
    last: 0,
    read: false,
    write: false,
    execute: false,
    is_device: false,
};

impl Space {
    const fn new() -> Self {
        Self {
            stretches: [NOTHING; MAX_STRETCHES],
            used: 0,
            devices: [NO_DEVICE; MAX_DEVICES],
        }
    }

    /// Notes the registers of a virtual device. False if there are too many.
    pub(crate) fn add_device(&mut self, first: u32, last: u32) -> bool {
        let mut places = self.devices.iter_mut();
        let place = places.find(|place| **place == NO_DEVICE);
        place.map(|place| *place = (first, last)).is_some()
    }

    /// Tells whether something answers at one of these guest-physical addresses: memory or a device.
    pub(crate) fn answers(&self, first: u32, last: u32) -> bool {
        let mut devices = self.devices.iter();
        self.overlaps(first, last) || devices.any(|(from, to)| *from <= last && first <= *to)
    }

    /// Returns the mappings.
    pub(crate) fn stretches(&self) -> &[Stretch] {
        self.stretches.get(..self.used).unwrap_or(&[])
    }

    /// Returns the largest stretch of memory that the partition may use in every way, for the short path.
    pub(crate) fn main(&self) -> Main {
        let open = self.stretches().iter().filter(|stretch| stretch.is_open());
        open.max_by_key(|stretch| stretch.last)
            .map_or(Main::NONE, |stretch| Main {
                guest: stretch.guest,
                last: stretch.last,
                distance: stretch.host.wrapping_sub(stretch.guest),
            })
    }

    /// Returns the mapping of an address. Bounded by the number of mappings.
    #[inline]
    pub(crate) fn at(&self, guest: u32) -> Option<&Stretch> {
        self.stretches().iter().find(|stretch| stretch.contains(guest))
    }

    /// Tells whether a mapping has one of these addresses.
    fn overlaps(&self, first: u32, last: u32) -> bool {
        let mut stretches = self.stretches().iter();
        stretches.any(|stretch| first <= stretch.guest.saturating_add(stretch.last) && stretch.guest <= last)
    }

    /// Adds a mapping.
    pub(crate) fn add(&mut self, region: &Region) -> Result<(), BuildError> {
        let bad = BuildError::BadRegion(region.guest);
        let numbers = [region.guest.0, region.host.0, region.size];
        let end = |first: u64| first.checked_add(region.size).filter(|end| *end <= 1 << 32);
        if region.size == 0 || numbers.iter().any(|number| !number.is_multiple_of(PAGE)) {
            return Err(bad);
        }
        if end(region.guest.0).is_none() || end(region.host.0).is_none() {
            return Err(bad);
        }
        let (guest, last) = (region.guest.0 as u32, (region.size - 1) as u32);
        if self.overlaps(guest, guest.saturating_add(last)) {
            return Err(BuildError::Overlap(region.guest));
        }
        let place = self
            .stretches
            .get_mut(self.used)
            .ok_or(BuildError::TablesExhausted)?;
        *place = Stretch {
            guest,
            host: region.host.0 as u32,
            last,
            read: region.permissions.read,
            write: region.permissions.write,
            execute: region.permissions.execute,
            is_device: region.kind == MemoryKind::Device,
        };
        self.used += 1;
        Ok(())
    }
}

/// The spaces of all partitions.
pub(crate) struct SpaceTable {
    built: u64,
}

static SPACES: ClaimTable<Space, MAX_PARTITIONS> =
    ClaimTable::new([const { UnsafeCell::new(Space::new()) }; MAX_PARTITIONS]);

impl SpaceTable {
    /// Makes the table. Called once: the machine is the only owner.
    pub(crate) const fn new() -> Self {
        Self { built: 0 }
    }

    /// Makes an empty space for a partition, at its first call for that partition.
    pub(crate) fn claim(&mut self, partition: PartitionId) -> Option<&mut Space> {
        if SPACES.claim(usize::from(partition.0)) {
            self.built |= 1 << partition.0;
        }
        self.get_mut(partition)
    }

    /// Returns the space of a partition that has one.
    #[inline]
    pub(crate) fn get(&self, partition: PartitionId) -> Option<&Space> {
        if self.built & 1_u64.checked_shl(partition.0.into())? == 0 {
            return None;
        }
        // SAFETY: this table has claimed the slot, and references to it borrow the table.
        Some(unsafe { &*SPACES.slot(usize::from(partition.0)) })
    }

    /// Returns the space of a partition that has one.
    pub(crate) fn get_mut(&mut self, partition: PartitionId) -> Option<&mut Space> {
        if self.built & 1_u64.checked_shl(partition.0.into())? == 0 {
            return None;
        }
        // SAFETY: as for `get`, and the table is borrowed as mutable.
        Some(unsafe { &mut *SPACES.slot(usize::from(partition.0)) })
    }
}
