// SPDX-License-Identifier: Apache-2.0
//! Windows of partitions: stretches that no unit has until the partition holds the memory (`held`).
//!
//! A window that is closed is not among the partition's stretches, so other code knows nothing of it.

use bulkhead_abi::parts::{PARTS, Part};
use bulkhead_arch_api::GuestPhys;
use bulkhead_arch_armv8m_core::{Stretch, Stretches};
use bulkhead_arch_regions::Rights;
use bulkhead_image::MAX_CHANNELS;

/// True if partitions hold memory in this build.
pub(crate) const IS_THERE: bool = PARTS.has(Part::HeldRegions);
/// Windows that a partition can have: one side of each channel.
const MOST: usize = if IS_THERE { MAX_CHANNELS } else { 0 };

/// The windows of a partition that are closed.
pub(crate) struct Windows([Option<Stretch>; MOST]);

impl Windows {
    /// Closes all stretches without rights.
    #[inline(always)]
    pub(crate) fn of(stretches: &mut Stretches) -> Self {
        let mut windows = Self([None; MOST]);
        for slot in &mut windows.0 {
            let mut all = stretches.as_slice().iter();
            let found = all.position(|stretch| stretch.rights.is_none());
            *slot = found.and_then(|index| stretches.remove(index));
        }
        windows
    }

    /// Tells whether a window that is closed has all these bytes of memory.
    pub(crate) fn has(&self, guest: GuestPhys, length: u64) -> bool {
        let last = guest.0.saturating_add(length).saturating_sub(1);
        let mut all = self.0.iter().flatten();
        all.any(|window| !window.is_device && guest.0 >= window.first.into() && last <= window.last.into())
    }

    /// Gives the window that begins at this address other rights: among the stretches, unless it has none.
    pub(crate) fn change(&mut self, stretches: &mut Stretches, first: u32, rights: Rights) {
        let mut all = stretches.as_slice().iter();
        let open = all.position(|stretch| stretch.first == first);
        let is_it = |slot: &&mut Option<Stretch>| slot.is_some_and(|window| window.first == first);
        let window = match open {
            Some(index) => stretches.remove(index),
            None => self.0.iter_mut().find(is_it).and_then(Option::take),
        };
        let Some(window) = window else { return };
        if !rights.is_none() {
            stretches.insert(Stretch { rights, ..window });
        } else if let Some(slot) = self.0.iter_mut().find(|slot| slot.is_none()) {
            *slot = Some(window);
        }
    }
}
