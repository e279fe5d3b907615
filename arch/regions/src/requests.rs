// SPDX-License-Identifier: Apache-2.0
//! The ranges of a partition, as the kernel asks a backend for them.

use crate::MAX_REQUESTS;
use crate::plan::Request;
use crate::region::{Memory, Rights};
use bulkhead_arch_api::{BuildError, GuestPhys, MemoryKind, Region};

/// The requests of a partition, in the order of its mappings.
#[derive(Debug)]
pub struct Requests {
    list: [Request; MAX_REQUESTS],
    count: usize,
}

impl Requests {
    /// Makes an empty list.
    #[must_use]
    pub const fn new() -> Self {
        const NOTHING: Request = Request {
            start: 0,
            bytes: 0,
            rights: Rights::NONE,
            memory: Memory::NORMAL,
        };
        Self {
            list: [NOTHING; MAX_REQUESTS],
            count: 0,
        }
    }

    /// Takes the mappings of a partition. The list is filled in place, because a second one would double the
    /// stack of the caller.
    ///
    /// # Errors
    /// [`BuildError::BadRegion`]: a mapping is beyond 4 GiB, or is seen at another address than its own.
    /// [`BuildError::TablesExhausted`]: there are too many.
    pub fn take(&mut self, regions: &[Region]) -> Result<(), BuildError> {
        if regions.len() > self.list.len() {
            return Err(BuildError::TablesExhausted);
        }
        for (slot, region) in self.list.iter_mut().zip(regions) {
            *slot = request(region).ok_or(BuildError::BadRegion(region.guest))?;
        }
        self.count = regions.len();
        Ok(())
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

impl Default for Requests {
    fn default() -> Self {
        Self::new()
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
