// SPDX-License-Identifier: Apache-2.0
//! A partition's regions and the regions its guest asks for, in one unit.
//!
//! The guest may use a byte if the partition may and the guest's own unit says so too. The guest's
//! regions override each other by number, as in its unit; each becomes what it shares with each of the
//! partition's. With the background region on, what none of them covers stays the partition's own.

use crate::plan::Plan;
use crate::region::{Memory, Region, Rights};

/// A region as a guest wrote it into the registers of its virtual unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct GuestRegion {
    /// MPU_RBAR: the address.
    pub base: u32,
    /// MPU_RASR: attributes, subregions, size, enable.
    pub attributes: u32,
}

/// The guest's own idea of who may access what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GuestView<'a> {
    /// Its regions; of those that cover an address the last one counts.
    pub regions: &'a [GuestRegion],
    /// True if memory that no region covers is open to it.
    pub background: bool,
    /// True if it runs privileged.
    pub privileged: bool,
}

/// The combination needs more regions than there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooMany;

impl GuestRegion {
    /// Writes both registers; whether that changes what anybody may access.
    pub fn replace(&mut self, base: u32, attributes: u32) -> bool {
        let old = core::mem::replace(self, Self { base, attributes });
        old != *self && (old.is_enabled() || self.is_enabled())
    }

    const fn is_enabled(self) -> bool {
        self.attributes & 1 != 0
    }

    /// Decodes the region, with what it allows code that is privileged or not; `None` if it is not enabled.
    /// A size below the smallest is UNPREDICTABLE; here it is the smallest.
    #[must_use]
    pub const fn decode(self, privileged: bool) -> Option<Region> {
        if !self.is_enabled() {
            return None;
        }
        let coded = (self.attributes >> 1 & 0x1F) as u8;
        let size_log2 = if coded < 4 { 5 } else { coded.wrapping_add(1) };
        let mask = 1_u64.wrapping_shl(size_log2 as u32).wrapping_sub(1) as u32;
        let disabled = if size_log2 >= 8 {
            (self.attributes >> 8) as u8
        } else {
            0
        };
        // B3.5.9, table B3-15; 0b100 is UNPREDICTABLE and allows nothing here.
        let (read, write) = match (self.attributes >> 24 & 7, privileged) {
            (0b011, _) | (0b001 | 0b010, true) => (true, true),
            (0b110 | 0b111, _) | (0b101, true) | (0b010, false) => (true, false),
            _ => (false, false),
        };
        let execute = read && self.attributes & 1 << 28 == 0;
        Some(Region {
            base: self.base & !mask,
            size_log2,
            disabled,
            rights: Rights { read, write, execute },
            memory: Memory(self.attributes & Memory::MASK),
        })
    }
}

impl GuestView<'_> {
    /// Returns the rights that the guest's unit gives the guest to the byte at `address`.
    #[must_use]
    pub fn rights(&self, address: u32) -> Rights {
        const ALL: Rights = Rights {
            read: true,
            write: true,
            execute: true,
        };
        let elsewhere = if self.background { ALL } else { Rights::NONE };
        let mut last_first = self.regions.iter().rev();
        last_first
            .find_map(|region| {
                region
                    .decode(self.privileged)
                    .filter(|region| region.covers(address))
            })
            .map_or(elsewhere, |region| region.rights)
    }

    /// Tells whether the guest's unit lets the guest execute the instruction at `address`.
    #[must_use]
    pub fn executable(&self, address: u32) -> bool {
        self.rights(address).execute
    }
}

/// Combines them in a unit with `available` regions.
///
/// # Errors
/// [`TooMany`]; the caller must then give the guest less than it may have, never more.
pub fn combine(partition: &[Region], guest: &GuestView<'_>, available: u8) -> Result<Plan, TooMany> {
    let mut result = Plan::EMPTY;
    combine_into(&mut result, partition, guest, available)?;
    Ok(result)
}

/// Combines them in a plan that has no regions yet. A plan is long, so the plan is not moved.
fn combine_into(
    result: &mut Plan,
    partition: &[Region],
    guest: &GuestView<'_>,
    available: u8,
) -> Result<(), TooMany> {
    if guest.background {
        for region in partition {
            append(result, region, available)?;
        }
    }
    for wanted in guest
        .regions
        .iter()
        .filter_map(|region| region.decode(guest.privileged))
    {
        for own in partition {
            if let Some(shared) = intersect(own, &wanted) {
                append(result, &shared, available)?;
            }
        }
    }
    Ok(())
}

/// Combines as many of the guest's regions as there is room for, and leaves out those with the lowest numbers
/// if there is not enough. Accesses that only these allow are then refused: nothing lies below them. Only
/// privileged code with the background region on gets its partition's rights there instead, which are what it
/// has where its unit says nothing. Bounded by their number of [`combine`].
#[must_use]
pub fn combine_what_fits(partition: &[Region], guest: &GuestView<'_>, available: u8) -> Plan {
    let mut view = *guest;
    let mut plan = Plan::EMPTY;
    while combine_into(&mut plan, partition, &view, available).is_err() {
        plan.clear();
        match view.regions.split_first() {
            Some((_, others)) => view.regions = others,
            None => break,
        }
    }
    plan
}

/// Tells whether the region changes nothing: what is seen of those before it where it is has its rights
/// already.
fn is_idle(plan: &Plan, region: &Region) -> bool {
    let alike = |before: &Region| {
        before.rights == region.rights && before.memory.is_device() == region.memory.is_device()
    };
    // The last one that is seen there and different, or that says all of it.
    plan.regions()
        .iter()
        .rev()
        .find(|before| {
            if alike(before) {
                within(region, before)
            } else {
                intersect(before, region).is_some()
            }
        })
        .is_some_and(alike)
}

/// Appends a region that overrides those before it, and drops regions that can no longer be seen.
fn append(plan: &mut Plan, region: &Region, available: u8) -> Result<(), TooMany> {
    if is_idle(plan, region) {
        return Ok(());
    }
    plan.retain(|before| !within(before, region));
    // Memory that no partition has rights to anyway needs no region that says so.
    let hides = |before: &Region| intersect(before, region).is_some();
    if region.rights.is_none() && !plan.regions().iter().any(hides) {
        return Ok(());
    }
    let room = plan.regions().len() < usize::from(available);
    if room && plan.push(*region) {
        Ok(())
    } else {
        Err(TooMany)
    }
}

/// Returns what two regions share, with the rights that both give.
#[must_use]
fn intersect(own: &Region, wanted: &Region) -> Option<Region> {
    let (small, large) = if own.size_log2 <= wanted.size_log2 {
        (own, wanted)
    } else {
        (wanted, own)
    };
    if !large.spans(small.base) {
        return None;
    }
    // A block without eighths that the larger one cuts through is said with the larger one's eighths.
    let (block, disabled) = if large.disabled == 0 {
        (small, small.disabled)
    } else if small.size_log2 < 8 && small.size_log2 > large.granule_log2() {
        (
            large,
            eighths(large, |first| large.covers(first) && small.spans(first)),
        )
    } else if small.size_log2 < 8 {
        (small, if large.covers(small.base) { 0 } else { u8::MAX })
    } else {
        (
            small,
            eighths(small, |first| large.covers(first) && small.covers(first)),
        )
    };
    let memory = if own.memory.is_device() {
        own.memory
    } else {
        wanted.memory
    };
    let rights = own.rights.and(wanted.rights);
    (disabled != u8::MAX).then_some(Region {
        disabled,
        rights,
        memory,
        ..*block
    })
}

/// Returns the eighths of a block to leave out: those whose first address `inside` says no to.
fn eighths(block: &Region, inside: impl Fn(u32) -> bool) -> u8 {
    (0..8_u32).fold(0_u8, |mask, eighth| {
        // An eighth of the largest block is 2^29 bytes.
        let offset = eighth.wrapping_shl(u32::from(block.granule_log2()));
        let outside = !inside(block.base.wrapping_add(offset));
        if outside {
            mask | 1_u8.wrapping_shl(eighth)
        } else {
            mask
        }
    })
}

/// Tells whether every byte of `inner` is one of `outer`: then nothing of `inner` is seen through it. (False
/// for a larger block of which only that part is covered: it stays, which is right as well.)
fn within(inner: &Region, outer: &Region) -> bool {
    if inner.size_log2 > outer.size_log2 || !outer.spans(inner.base) {
        return false;
    }
    if outer.disabled == 0 {
        return true;
    }
    // At most eight: the outer block's eighths are no smaller than the eighths of a block inside it.
    let unit = u32::from(inner.granule_log2().min(outer.granule_log2()));
    let units = 1_u32.wrapping_shl(u32::from(inner.size_log2).saturating_sub(unit));
    (0..units).all(|index| {
        let address = inner.base.wrapping_add(index.wrapping_shl(unit));
        outer.covers(address) || !inner.covers(address)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_guests_own_unit_lets_it_execute() {
        // All may read and write; 1 KiB of which the lowest eighth is left out; the second one executes
        // never.
        let size = 9 << 1 | 1;
        let open = GuestRegion {
            base: 0x2000_0000,
            attributes: 0b011 << 24 | 1 << 8 | size,
        };
        let closed = GuestRegion {
            base: 0x2000_0200,
            attributes: 1 << 28 | 0b011 << 24 | 7 << 1 | 1,
        };
        let (one, other) = ([open, closed], [closed, open]);
        let mut view = GuestView {
            regions: &one,
            background: false,
            privileged: true,
        };
        let answers = |view: &GuestView<'_>| {
            [0x2000_0000, 0x2000_0080, 0x2000_0200, 0x2000_0300, 0x2000_0400]
                .map(|address| view.executable(address))
        };
        assert_eq!(answers(&view), [false, true, false, true, false]);
        view.background = true;
        assert_eq!(answers(&view), [true, true, false, true, true]);
        view.regions = &other;
        assert_eq!(answers(&view), [true, true, true, true, true]);
    }
}
