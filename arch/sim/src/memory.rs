// SPDX-License-Identifier: Apache-2.0
//! The board's memory and what partitions see of it.

use bulkhead_arch_api::{BuildError, CopyError, GuestPhys, HostPhys, MemoryKind, Region};
use std::collections::BTreeMap;

const PAGE: u64 = 4096;
const LIMIT: u64 = 1 << 40;

/// Sparse memory: pages that were never written read as a pattern that is not zero, so that a test
/// sees what was not cleared.
#[derive(Debug, Default)]
pub struct Memory {
    pages: BTreeMap<u64, Box<[u8]>>,
}

/// The contents of fresh memory.
const GARBAGE: u8 = 0xA5;

impl Memory {
    /// Returns the byte at a bus address.
    #[must_use]
    pub fn byte(&self, address: u64) -> u8 {
        self.pages
            .get(&(address / PAGE))
            .map_or(GARBAGE, |page| page[(address % PAGE) as usize])
    }

    /// Changes the byte at a bus address.
    pub fn set_byte(&mut self, address: u64, value: u8) {
        self.page(address)[(address % PAGE) as usize] = value;
    }

    /// Returns the rest of the page from a bus address on.
    pub(crate) fn rest_of_page(&mut self, address: u64) -> &mut [u8] {
        &mut self.page(address)[(address % PAGE) as usize..]
    }

    fn page(&mut self, address: u64) -> &mut [u8] {
        self.pages
            .entry(address / PAGE)
            .or_insert_with(|| vec![GARBAGE; PAGE as usize].into())
    }
}

/// The mappings of a partition.
#[derive(Debug, Default)]
pub(crate) struct View {
    regions: Vec<Region>,
}

impl View {
    pub(crate) fn build(regions: &[Region]) -> Result<Self, BuildError> {
        for (index, region) in regions.iter().enumerate() {
            let end = region.guest.0.checked_add(region.size);
            let aligned = (region.guest.0 | region.host.0 | region.size).is_multiple_of(PAGE);
            if region.size == 0 || !aligned || end.is_none_or(|end| end > LIMIT) {
                return Err(BuildError::BadRegion(region.guest));
            }
            let overlaps = |other: &Region| {
                other.guest.0 < region.guest.0 + region.size && region.guest.0 < other.guest.0 + other.size
            };
            if regions[..index].iter().any(overlaps) {
                return Err(BuildError::Overlap(region.guest));
            }
        }
        Ok(Self {
            regions: regions.to_vec(),
        })
    }

    pub(crate) fn region(&self, address: u64) -> Option<&Region> {
        self.regions
            .iter()
            .find(|region| address >= region.guest.0 && address - region.guest.0 < region.size)
    }

    /// Returns the mapping of the page that an address is in.
    pub(crate) fn page(&self, address: u64) -> Option<Region> {
        let region = self.region(address)?;
        let guest = address - address % PAGE;
        Some(Region {
            guest: GuestPhys(guest),
            host: HostPhys(region.host.0 + (guest - region.guest.0)),
            size: PAGE,
            ..*region
        })
    }

    pub(crate) fn translate(&self, address: u64) -> Option<HostPhys> {
        self.region(address)
            .map(|region| HostPhys(region.host.0 + (address - region.guest.0)))
    }

    /// Tells whether all of a stretch is memory with these rights.
    pub(crate) fn may_access(&self, guest: u64, length: u64, is_store: bool) -> bool {
        let mut at = guest;
        let Some(end) = guest.checked_add(length) else {
            return false;
        };
        while at < end {
            let Some(region) = self.region(at) else {
                return false;
            };
            let rights = region.permissions;
            let may = if is_store { rights.write } else { rights.read };
            if !may || region.kind != MemoryKind::Ram {
                return false;
            }
            at = region.guest.0 + region.size;
        }
        true
    }

    /// Returns where `length` bytes are on the bus, in stretches within a page.
    pub(crate) fn stretches(&self, guest: GuestPhys, length: u64) -> Result<Vec<(u64, usize)>, CopyError> {
        let mut stretches = Vec::new();
        let mut done = 0;
        while done < length {
            let address = guest.offset(done).map_err(|_| CopyError { address: guest })?;
            let host = self.translate(address.0).ok_or(CopyError { address })?.0;
            let part = (length - done).min(PAGE - host % PAGE);
            stretches.push((host, part as usize));
            done += part;
        }
        Ok(stretches)
    }

    /// Changes the rights to the regions inside a stretch.
    pub(crate) fn protect(&mut self, guest: u64, size: u64, permissions: bulkhead_arch_api::Permissions) {
        let end = guest.saturating_add(size);
        let inside = |region: &&mut Region| region.guest.0 >= guest && region.guest.0 + region.size <= end;
        for region in self.regions.iter_mut().filter(inside) {
            region.permissions = permissions;
        }
    }
}
