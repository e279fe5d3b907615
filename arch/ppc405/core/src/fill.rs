// SPDX-License-Identifier: Apache-2.0
//! The entry of the real translation buffer that a translation of the guest becomes.
//!
//! The guest's zones are kept, so that the real ZPR decides about its supervisor and its problem state
//! without any change of entries. Zone 15 is the hypervisor's: there the entry alone decides. A page whose
//! memory the partition may not use in every way, and a page of the guest's own zone 15, become entries of
//! that zone with the rights of the guest's present mode. Such entries are dropped when the mode changes.
//!
//! An entry is never smaller than 4K: no board needs less for its memory, and QEMU ends at the sight of one.

use crate::mmu::Found;
use crate::tlb::{EXECUTE, VALID, WRITE};

/// The zone in which entries alone decide.
pub const OWN_ZONE: u32 = 15;
/// Logarithm of the smallest page.
const SMALLEST: u32 = 12;
/// Logarithm of the largest one.
const LARGEST: u32 = 24;
/// I and G of an entry, for registers of a device.
const DEVICE: u32 = 0x5;
/// WIMG.
const ATTRIBUTES: u32 = 0xF;

/// A stretch of a partition's space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stretch {
    /// The first address that the partition sees.
    pub guest: u32,
    /// The first address on the bus.
    pub host: u32,
    /// The last byte, from the first one on.
    pub last: u32,
    /// Loads.
    pub read: bool,
    /// Stores.
    pub write: bool,
    /// Instruction fetches.
    pub execute: bool,
    /// Registers, no memory.
    pub is_device: bool,
}

impl Stretch {
    /// Tells whether it has an address.
    #[must_use]
    pub const fn contains(&self, guest: u32) -> bool {
        guest.wrapping_sub(self.guest) <= self.last
    }

    /// Returns the address on the bus.
    #[must_use]
    pub const fn host(&self, guest: u32) -> u32 {
        guest.wrapping_sub(self.guest).wrapping_add(self.host)
    }

    /// Tells whether it is memory that the partition may use in every way.
    #[must_use]
    pub const fn is_open(&self) -> bool {
        self.read && self.write && self.execute && !self.is_device
    }
}

/// An entry of the real buffer, without its process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RealEntry {
    /// TLBHI.
    pub high: u32,
    /// TLBLO.
    pub low: u32,
    /// Logarithm of its size.
    pub size: u32,
    /// True if its rights fit the guest's present mode.
    pub is_of_mode: bool,
}

impl RealEntry {
    /// Returns the first address of the page.
    #[must_use]
    pub const fn address(&self) -> u32 {
        self.high & !(1_u32.wrapping_shl(self.size).wrapping_sub(1))
    }
}

/// Returns the entry for an address: the largest page that the guest's entry, the stretch and both addresses
/// allow, at most `largest` (a logarithm). `None` if the guest's page is smaller than any real one, or the
/// stretch cannot be loaded from.
#[must_use]
pub fn entry(address: u32, found: &Found, stretch: &Stretch, largest: u32) -> Option<RealEntry> {
    let of_guest = found.entry.map_or(LARGEST, |(_, entry)| entry.size());
    if !stretch.read || of_guest < SMALLEST {
        return None;
    }
    let mut size = LARGEST.min(of_guest).min(largest);
    while size > SMALLEST && !fits(address, found.physical, stretch, size) {
        size = size.wrapping_sub(2);
    }
    let inside = 1_u32.wrapping_shl(size).wrapping_sub(1);
    let number = size.wrapping_sub(10) >> 1;
    let host = stretch.host(found.physical) & !inside;
    let attributes = match found.entry {
        _ if stretch.is_device => DEVICE,
        Some((_, entry)) => entry.low & ATTRIBUTES,
        None => 0,
    };
    let guest_zone = found.entry.map(|(_, entry)| entry).filter(|_| stretch.is_open());
    let (rights, zone) = match guest_zone.filter(|entry| entry.zone() != OWN_ZONE) {
        Some(entry) => (entry.low & (EXECUTE | WRITE), entry.zone()),
        None => {
            let write = if found.write && stretch.write { WRITE } else { 0 };
            let execute = if found.execute && stretch.execute {
                EXECUTE
            } else {
                0
            };
            (write | execute, OWN_ZONE)
        }
    };
    Some(RealEntry {
        high: address & !inside | number << 7 | VALID,
        low: host | rights | zone << 4 | attributes,
        size,
        is_of_mode: zone == OWN_ZONE && found.entry.is_some(),
    })
}

/// Tells whether a page of this size around the address is in the stretch, and at a multiple of its size
/// everywhere.
const fn fits(address: u32, physical: u32, stretch: &Stretch, size: u32) -> bool {
    let inside = 1_u32.wrapping_shl(size).wrapping_sub(1);
    let first = physical & !inside;
    let last = physical | inside;
    let congruent = (address ^ physical) & inside == 0 && stretch.host(first) & inside == 0;
    congruent
        && stretch.contains(first)
        && stretch.contains(last)
        && first.wrapping_sub(stretch.guest) <= last.wrapping_sub(stretch.guest)
}

/// Returns the real ZPR for the guest's own one in its present mode. Its supervisor state runs in the real
/// problem state, so zones that are shut for programs are open for it.
#[must_use]
pub const fn real_zones(zones: u32, is_user: bool) -> u32 {
    let of_mode = if is_user {
        zones
    } else {
        zones & 0xAAAA_AAAA | 0x5555_5555
    };
    of_mode & !3 | 1
}
