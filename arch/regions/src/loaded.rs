// SPDX-License-Identifier: Apache-2.0
//! A plan in the form in which it is loaded: what MPU_RBAR and MPU_RASR are to be, slot by slot.
//!
//! A partition's regions are loaded at every switch and looked at one by one only now and then, so this is
//! the form to keep them in: it takes half the room, and loading computes nothing and takes as long for one
//! region as for eight. Slots without a region switch theirs off.

use crate::MAX_REGIONS;
use crate::plan::Plan;
use crate::region::{Region, Rights};

/// All registers of a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Loaded([(u32, u32); MAX_REGIONS]);

impl Loaded {
    /// Returns these regions, the first in slot 0; at most [`MAX_REGIONS`] of them.
    #[must_use]
    pub fn of<'r>(regions: impl Iterator<Item = &'r Region>) -> Self {
        let mut registers = [(0, 0); MAX_REGIONS];
        let mut wanted = regions;
        for (slot, pair) in (0_u8..).zip(&mut registers) {
            *pair = match wanted.next() {
                Some(region) => (region.rbar(slot), region.rasr()),
                None => (Region::nothing_in(slot), 0),
            };
        }
        Self(registers)
    }

    /// Returns MPU_RBAR and MPU_RASR of each slot.
    #[inline(always)]
    #[must_use]
    pub const fn registers(&self) -> &[(u32, u32); MAX_REGIONS] {
        &self.0
    }

    /// Returns the regions.
    pub fn regions(&self) -> impl DoubleEndedIterator<Item = Region> + '_ {
        self.0
            .iter()
            .filter_map(|(base, attributes)| Region::said_by(*base, *attributes))
    }

    /// Returns the region that counts for `address`.
    #[must_use]
    pub fn region_at(&self, address: u32) -> Option<Region> {
        self.regions().rev().find(|region| region.covers(address))
    }

    /// Returns the rights to `address`.
    #[must_use]
    pub fn rights_at(&self, address: u32) -> Rights {
        self.region_at(address)
            .map_or(Rights::NONE, |region| region.rights)
    }

    /// Puts the regions into a plan without any.
    pub fn put_into(&self, plan: &mut Plan) {
        for region in self.regions() {
            // As many as there were.
            let _has_room = plan.push(region);
        }
    }
}
