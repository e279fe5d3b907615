// SPDX-License-Identifier: Apache-2.0
//! The ranges of a partition, as the kernel asks a backend for them.

use crate::MAX_REQUESTS;
use crate::plan::Request;
use crate::region::{Memory, Rights};
use bulkhead_arch_api::{BuildError, GuestPhys, MemoryKind, Region};

/// The requests of a partition, in the order of its mappings.
#[derive(Clone, Copy, Debug)]
pub struct Requests {
    list: [Request; MAX_REQUESTS],
    count: usize,
}

impl Requests {
    /// Takes the mappings of a partition.
    ///
    /// # Errors
    /// [`BuildError::BadRegion`]: a mapping is beyond 4 GiB, or is seen at another address than its own.
    /// [`BuildError::TablesExhausted`]: there are too many.
    pub fn of(regions: &[Region]) -> Result<Self, BuildError> {
        const NOTHING: Request = Request {
            start: 0,
            bytes: 0,
            rights: Rights::NONE,
            memory: Memory::NORMAL,
        };
        let mut all = Self {
            list: [NOTHING; MAX_REQUESTS],
            count: regions.len(),
        };
        if regions.len() > all.list.len() {
            return Err(BuildError::TablesExhausted);
        }
        for (slot, region) in all.list.iter_mut().zip(regions) {
            *slot = request(region).ok_or(BuildError::BadRegion(region.guest))?;
        }
        Ok(all)
    }

    /// Returns the requests.
    #[must_use]
    pub fn as_slice(&self) -> &[Request] {
        self.list.get(..self.count).unwrap_or(&[])
    }

    /// Returns the first address of a request.
    #[must_use]
    pub fn address(&self, index: usize) -> GuestPhys {
        let request = self.as_slice().get(index);
        GuestPhys(request.map_or(0, |request| request.start.into()))
    }
}

fn request(region: &Region) -> Option<Request> {
    let start = u32::try_from(region.guest.0).ok()?;
    (region.guest.0 == region.host.0).then_some(Request {
        start,
        bytes: region.size,
        rights: Rights {
            read: region.permissions.read,
            write: region.permissions.write,
            execute: region.permissions.execute,
        },
        memory: match region.kind {
            MemoryKind::Ram => Memory::NORMAL,
            MemoryKind::Device => Memory::DEVICE,
        },
    })
}
