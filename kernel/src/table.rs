// SPDX-License-Identifier: Apache-2.0
//! Tables with one entry per id.
//!
//! Every id in the kernel comes from the checked system image or from the backend, never from a partition. A
//! name that a partition uses goes through its capability space first. So a look-up by id cannot fail.
//! Nothing here returns an `Option` for which a caller would have to invent an answer. An id out of range
//! would be a broken invariant of the kernel. The look-up would then land on another entry instead of ending
//! the hypervisor. Tests are built with the assertion that this does not happen.

use bulkhead_arch_api::{MAX_PARTITIONS, MAX_PCPUS, MAX_VCPUS, PartitionId, PcpuId, VcpuId};
use core::marker::PhantomData;

/// A type that numbers the entries of a table.
pub trait Id: Copy {
    /// Returns the number.
    fn index(self) -> usize;
}

impl Id for PartitionId {
    fn index(self) -> usize {
        usize::from(self.0)
    }
}

impl Id for PcpuId {
    fn index(self) -> usize {
        usize::from(self.0)
    }
}

impl Id for VcpuId {
    fn index(self) -> usize {
        usize::from(self.0)
    }
}

/// A table with `N` entries, one per id of type `K`.
#[derive(Debug)]
pub struct Table<K, T, const N: usize> {
    entries: [T; N],
    key: PhantomData<fn(K)>,
}

/// One entry per partition.
pub type PerPartition<T> = Table<PartitionId, T, MAX_PARTITIONS>;
/// One entry per vCPU.
pub type PerVcpu<T> = Table<VcpuId, T, MAX_VCPUS>;
/// One entry per pCPU.
pub type PerPcpu<T> = Table<PcpuId, T, MAX_PCPUS>;

impl<K: Id, T, const N: usize> Table<K, T, N> {
    /// Makes a table of these entries.
    pub const fn new(entries: [T; N]) -> Self {
        const { assert!(N > 0) }
        Self {
            entries,
            key: PhantomData,
        }
    }

    /// Returns the entry of `id`.
    #[inline]
    #[expect(clippy::indexing_slicing, reason = "`position` is below N")]
    pub fn of(&self, id: K) -> &T {
        &self.entries[Self::position(id)]
    }

    /// Returns the entry of `id`, to change.
    #[inline]
    #[expect(clippy::indexing_slicing, reason = "`position` is below N")]
    pub fn of_mut(&mut self, id: K) -> &mut T {
        &mut self.entries[Self::position(id)]
    }

    fn position(id: K) -> usize {
        let index = id.index();
        debug_assert!(index < N);
        if N.is_power_of_two() {
            index & N.wrapping_sub(1)
        } else if index < N {
            index
        } else {
            0
        }
    }
}
