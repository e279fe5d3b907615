// SPDX-License-Identifier: Apache-2.0
//! Spaces of partitions, and the Secure memory protection unit, which has the stretches of the task that
//! runs.
//!
//! The hypervisor itself has no region. Memory that no region covers is open to privileged code
//! (MPU_CTRL.PRIVDEFENA). Memory that a region makes read-only is so for privileged code as well, so the
//! unit is off while the hypervisor writes there ([`Open`]).

use crate::attribution::Share;
use crate::sysreg::{self, MPU_MAIR0, MPU_RBAR, MPU_RLAR, MPU_RNR};
use crate::windows::Windows;
use bulkhead_arch_api::{MAX_PARTITIONS, PartitionId};
use bulkhead_arch_armv8m_core::Stretches;
use bulkhead_arch_one_pcpu::{Pool, Slots};
use bulkhead_arch_regions::Rights;

/// A partition's space.
pub(crate) struct Space {
    pub(crate) share: Share,
    pub(crate) windows: Windows,
}

impl Space {
    /// Returns the first of these bytes whose rights are not enough.
    pub(crate) fn first_refused(&self, address: u64, bytes: u64, enough: fn(Rights) -> bool) -> Option<u64> {
        self.share.stretches.first_refused(address, bytes, enough)
    }

    fn all(&self, address: u32, bytes: u32, enough: fn(Rights) -> bool) -> bool {
        // Nearly always it is one stretch, and that is found in fewer instructions.
        self.share.stretches.one_has(address, bytes, enough)
            || self.first_refused(address.into(), bytes.into(), enough).is_none()
    }

    pub(crate) fn writable(&self, address: u32, bytes: u32) -> bool {
        self.all(address, bytes, |rights| rights.read && rights.write)
    }

    pub(crate) fn readable(&self, address: u32, bytes: u32) -> bool {
        self.all(address, bytes, |rights| rights.read)
    }

    /// Tells whether something of the partition's is at this address: memory or a device.
    pub(crate) fn has(&self, address: u32) -> bool {
        self.share.stretches.at(address).is_some()
    }
}

/// Loads the stretches of a task into the unit.
pub(crate) fn load(stretches: &Stretches, loaded: &mut usize) {
    let count = stretches.as_slice().len();
    for (number, stretch) in (0_u32..).zip(stretches.as_slice()) {
        let [base, limit] = stretch.protected();
        sysreg::write(MPU_RNR, number);
        sysreg::write(MPU_RBAR, base);
        sysreg::write(MPU_RLAR, limit);
    }
    for number in count..*loaded {
        sysreg::write(MPU_RNR, number as u32);
        sysreg::write(MPU_RLAR, 0);
    }
    *loaded = count;
}

/// Sets the attributes of memory, before any space is loaded.
pub(crate) fn start() {
    sysreg::write(MPU_MAIR0, Stretches::MEMORY_ATTRIBUTES);
}

/// The spaces that have been built, in memory of the pool.
pub(crate) struct SpaceTable(Slots<Space, MAX_PARTITIONS>);

impl SpaceTable {
    pub(crate) const fn new() -> Self {
        Self(Slots::new())
    }

    /// Returns a table of the same spaces, for the second pCPU.
    ///
    /// # Safety
    /// From now on no space is set in either table, and none changes.
    pub(crate) const unsafe fn shared(&self) -> Self {
        // SAFETY: the caller's.
        Self(unsafe { self.0.shared() })
    }

    /// Returns a partition's space, if it has been built.
    #[inline]
    pub(crate) fn get(&self, partition: PartitionId) -> Option<&Space> {
        self.0.get(partition.0)
    }

    /// Returns a space that can change. Requires: there is one table.
    pub(crate) fn get_mut(&mut self, partition: PartitionId) -> Option<&mut Space> {
        self.0.get_mut(partition.0)
    }

    pub(crate) fn set(&mut self, partition: PartitionId, space: Space, pool: &mut Pool) -> bool {
        self.0.put(partition.0, space, pool)
    }
}
