// SPDX-License-Identifier: Apache-2.0
//! The disk, of which each client has a part.

use bulkhead_guest::task::cell::TaskCell;
use bulkhead_virtio::block::{Disk, Failed, SECTOR};

/// The bytes of the disk.
static STORE: TaskCell<&'static mut [u8]> = TaskCell::new(&mut []);

/// Makes memory the disk.
pub fn put(memory: &'static mut [u8]) {
    // Nobody uses the disk yet.
    let _ = STORE.with(|store| *store = memory);
}

/// A part of the disk.
#[derive(Clone, Copy, Debug)]
pub struct Part {
    first: u64,
    size: u64,
    is_read_only: bool,
}

impl Part {
    /// Makes the part of a client. It ends where the disk ends.
    pub fn new(first: u64, size: u64, is_read_only: bool) -> Self {
        let whole = STORE.with(|store| store.len()).unwrap_or(0) as u64;
        let size = size.min(whole.saturating_sub(first));
        Self {
            first,
            size,
            is_read_only,
        }
    }

    /// Uses a range of the part.
    fn with(&self, offset: u64, length: usize, user: impl FnOnce(&mut [u8])) -> Result<(), Failed> {
        let end = offset.checked_add(length as u64).filter(|end| *end <= self.size);
        let first = end.and(self.first.checked_add(offset)).ok_or(Failed)?;
        let first = usize::try_from(first).map_err(|_| Failed)?;
        let range = first..first.checked_add(length).ok_or(Failed)?;
        let done = STORE.with(|store| store.get_mut(range).map(user));
        done.flatten().ok_or(Failed)
    }
}

impl Disk for Part {
    fn sectors(&self) -> u64 {
        self.size / SECTOR
    }

    fn is_read_only(&self) -> bool {
        self.is_read_only
    }

    fn read(&mut self, offset: u64, into: &mut [u8]) -> Result<(), Failed> {
        self.with(offset, into.len(), |bytes| into.copy_from_slice(bytes))
    }

    fn write(&mut self, offset: u64, bytes: &[u8]) -> Result<(), Failed> {
        self.with(offset, bytes.len(), |place| place.copy_from_slice(bytes))
    }

    fn flush(&mut self) -> Result<(), Failed> {
        Ok(())
    }
}
