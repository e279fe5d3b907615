// SPDX-License-Identifier: Apache-2.0
//! The fewest regions that are exactly a range.
//!
//! Regions of one range may overlap: they say the same. So this is covering an interval by intervals, and
//! taking the one that reaches furthest each time is optimal.

use crate::region::{Memory, Region, Rights};
use crate::{MAX_REGIONS, SMALLEST};

/// Regions that are together exactly a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cover {
    /// As many of them as fit in a plan.
    regions: [Region; MAX_REGIONS],
    /// The number of regions needed.
    needed: u32,
}

impl Cover {
    /// Returns how many regions are needed, be there room for them or not.
    #[must_use]
    pub const fn needed(&self) -> u32 {
        self.needed
    }

    /// Returns the regions; not all of them if more are needed than a unit has.
    #[must_use]
    pub fn regions(&self) -> &[Region] {
        self.regions.get(..self.needed as usize).unwrap_or(&self.regions)
    }
}

/// Covers `bytes` bytes from `start` on. `None` if they are none, leave the address space or are not made of
/// whole units of 32 bytes.
#[must_use]
pub fn cover(start: u32, bytes: u64, rights: Rights, memory: Memory) -> Option<Cover> {
    let end = end_of(start, bytes)?;
    if u64::from(start | bytes as u32) & u64::from(SMALLEST.wrapping_sub(1)) != 0 {
        return None;
    }
    let start = u64::from(start);
    let empty = Region {
        base: 0,
        size_log2: 5,
        disabled: 0,
        rights,
        memory,
    };
    let mut result = Cover {
        regions: [empty; MAX_REGIONS],
        needed: 0,
    };
    let mut at = start;
    // Every step reaches at least the next multiple of a larger power of two: at most 2 * 28 steps.
    while at < end {
        let (region, reach) = furthest(start, at, end, &empty);
        if let Some(slot) = result.regions.get_mut(result.needed as usize) {
            *slot = region;
        }
        result.needed = result.needed.saturating_add(1);
        at = reach;
    }
    Some(result)
}

fn end_of(start: u32, bytes: u64) -> Option<u64> {
    let end = u64::from(start).checked_add(bytes)?;
    (bytes != 0 && end <= 1 << 32).then_some(end)
}

/// Returns the region inside \[`start`, `end`) that covers `at` and reaches furthest, and how far.
fn furthest(start: u64, at: u64, end: u64, like: &Region) -> (Region, u64) {
    // A block of the smallest size always fits.
    let mut best = (
        Region {
            base: at as u32,
            ..*like
        },
        at.wrapping_add(u64::from(SMALLEST)),
    );
    for size_log2 in 5..=32_u8 {
        let size = 1_u64.wrapping_shl(u32::from(size_log2));
        let base = at & !size.wrapping_sub(1);
        let mut region = Region {
            base: base as u32,
            size_log2,
            ..*like
        };
        let granule = region.granule();
        let (first, last) = (
            round_up(start.max(base), granule),
            end.min(base.wrapping_add(size)) & !granule.wrapping_sub(1),
        );
        if first > at || last <= best.1 {
            continue;
        }
        region.disabled = left_out(&region, first, last);
        best = (region, last);
    }
    best
}

/// Returns the eighths of the block that are not in \[`first`, `last`); none of a block without eighths.
fn left_out(region: &Region, first: u64, last: u64) -> u8 {
    if region.size_log2 < 8 {
        return 0;
    }
    (0..8_u8).fold(0, |mask, eighth| {
        let here = u64::from(region.base).wrapping_add(region.granule().wrapping_mul(u64::from(eighth)));
        let outside = here < first || here >= last;
        if outside {
            mask | 1_u8.wrapping_shl(u32::from(eighth))
        } else {
            mask
        }
    })
}

const fn round_up(value: u64, unit: u64) -> u64 {
    value.wrapping_add(unit.wrapping_sub(1)) & !unit.wrapping_sub(1)
}

/// Returns one region for what these two cover, if there is one: with the same rights and the same memory,
/// where the eighths of the smallest block around both are covered all or not at all by each.
pub(crate) fn joined(one: &Region, other: &Region) -> Option<Region> {
    if one.rights != other.rights || one.memory != other.memory {
        return None;
    }
    let differing = u32::BITS.wrapping_sub((one.base ^ other.base).leading_zeros()) as u8;
    let size_log2 = differing.max(one.size_log2).max(other.size_log2).max(8);
    let base = u64::from(one.base) & !1_u64.wrapping_shl(size_log2.into()).wrapping_sub(1);
    let mut both = Region {
        base: base as u32,
        size_log2,
        disabled: 0,
        ..*one
    };
    for eighth in 0..8_u8 {
        let first = base.wrapping_add(both.granule().wrapping_mul(eighth.into()));
        let (in_one, in_other) = (all_or_none(one, first, &both)?, all_or_none(other, first, &both)?);
        if !in_one && !in_other {
            both.disabled |= 1_u8.wrapping_shl(eighth.into());
        }
    }
    Some(both)
}

/// Tells whether the region covers all of the eighth of `block` that begins at `first` (true) or nothing of
/// it (false).
fn all_or_none(region: &Region, first: u64, block: &Region) -> Option<bool> {
    let last = first.wrapping_add(block.granule());
    let hit = region.eighths_in(first, block.granule());
    if hit & !region.disabled == 0 {
        return Some(false);
    }
    (hit & region.disabled == 0 && u64::from(region.base) <= first && last <= region.end()).then_some(true)
}

/// Returns the smallest range around this one that is a single region: its start and length. `None` if it
/// leaves the address space.
#[must_use]
pub fn in_one_region(start: u32, bytes: u64) -> Option<(u32, u64)> {
    let end = end_of(start, bytes)?;
    let start = u64::from(start);
    (5..=32_u8)
        .filter_map(|size_log2| {
            let size = 1_u64.wrapping_shl(u32::from(size_log2));
            let granule = if size_log2 >= 8 { size >> 3 } else { size };
            let first = start & !granule.wrapping_sub(1);
            let last = round_up(end, granule);
            let base = first & !size.wrapping_sub(1);
            (last <= base.wrapping_add(size)).then_some((first as u32, last.wrapping_sub(first)))
        })
        .min_by_key(|(_, length)| *length)
}
