// SPDX-License-Identifier: Apache-2.0
//! Where tables are.

use crate::geometry::PAGE_SIZE;
use bulkhead_arch_api::HostPhys;

/// Access to the memory of tables, given by its owner.
///
/// A tree only ever names entries of its root and of tables that [`TableMemory::allocate`] returned.
pub trait TableMemory {
    /// Returns entry `index` of `table`. For the root of a concatenated tree the index goes on into the
    /// tables that follow.
    fn read(&self, table: HostPhys, index: usize) -> u64;

    /// Replaces an entry. Requires: if CPUs may be walking the tree, this write is not seen by them before
    /// any earlier one (Arm: a `DSB ISHST` in between, DDI 0487 chapter B2; where no CPU walks yet, one at
    /// the end).
    fn write(&mut self, table: HostPhys, index: usize, entry: u64);

    /// Fills entries of one table from `index` on, as far as they are 0 and no more than `limit`: the first
    /// with `entry`, each other with the one before it plus `step`. Returns how many. Requires what
    /// [`TableMemory::write`] does, once for all.
    fn fill(&mut self, table: HostPhys, index: usize, limit: usize, entry: u64, step: u64) -> usize {
        let (mut entry, mut done) = (entry, 0_usize);
        for index in (index..).take(limit) {
            if self.read(table, index) != 0 {
                break;
            }
            self.write(table, index, entry);
            entry = entry.wrapping_add(step);
            done = done.saturating_add(1);
        }
        done
    }

    /// Returns a fresh table: 4096 bytes, aligned to that, all zero. `None` when there are no more.
    fn allocate(&mut self) -> Option<HostPhys>;

    /// Makes all CPUs forget every translation of the `size` input addresses from `input` on. Called after a
    /// change of an entry's rights; returns when no CPU can use the old entry any more (Arm stage 2:
    /// `DSB ISHST`, `TLBI IPAS2E1IS`, `DSB ISH`, `TLBI VMALLE1IS`, `DSB ISH`, `ISB`, DDI 0487 chapter D8,
    /// "TLB maintenance"). Mapping alone changes nothing that a CPU could remember. So the memory of a tree
    /// that is never protected keeps the default.
    fn forget(&mut self, _input: u64, _size: u64) {}

    /// Makes all CPUs forget every translation of the `size` input addresses from `input` on, which several
    /// entries map. A CPU that can forget all of a space at once does so in constant time.
    fn forget_several(&mut self, input: u64, size: u64) {
        for offset in (0..size).step_by(PAGE_SIZE as usize) {
            self.forget(input.saturating_add(offset), PAGE_SIZE);
        }
    }
}
