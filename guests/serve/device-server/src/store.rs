// SPDX-License-Identifier: Apache-2.0
//! The disk, of which each client has a part: the board's disk, or memory.

use crate::board::Board;
use bulkhead_guest::startup_page::Window;
use bulkhead_guest::task::cell::TaskCell;
use bulkhead_virtio::block::{Direction, Disk, Failed, SECTOR};
use bulkhead_virtio::chain::Ranges;

/// A disk.
pub enum Store {
    /// The task's own memory.
    Memory {
        /// The bytes of the disk.
        memory: &'static mut [u8],
        /// True if this life is the first that finds the memory.
        is_new: bool,
    },
    /// The disk of the board.
    Board(Board),
}

static STORE: TaskCell<Store> = TaskCell::new(Store::Memory {
    memory: &mut [],
    is_new: true,
});

/// Makes this the disk.
pub fn put(disk: Store) {
    // No code uses the disk yet.
    let _ = STORE.with(|store| *store = disk);
}

/// Returns the number of sectors.
pub fn sectors() -> u64 {
    let sectors = STORE.with(|store| match store {
        Store::Memory { memory, .. } => memory.len() as u64 / SECTOR,
        Store::Board(board) => board.sectors(),
    });
    sectors.unwrap_or(0)
}

/// Tells whether a device that goes on finds a disk whose contents are gone.
pub fn is_lost() -> bool {
    let lost = STORE.with(|store| matches!(store, Store::Memory { is_new: true, .. }));
    lost.unwrap_or(false)
}

/// Tells whether the disk has taken events that others wait for, and forgets it.
pub fn take_events() -> bool {
    let taken = STORE.with(|store| match store {
        Store::Memory { .. } => false,
        Store::Board(board) => board.take_events(),
    });
    taken.unwrap_or(false)
}

/// A part of the disk.
#[derive(Clone, Copy, Debug)]
pub struct Part {
    first: u64,
    size: u64,
    is_read_only: bool,
    /// The window of the client.
    window: u8,
    /// True if the contents are gone: each request fails.
    is_lost: bool,
}

impl Part {
    /// Makes the part of a client. It ends where the disk ends.
    pub fn new(window: &Window<'_>) -> Self {
        let whole = sectors().saturating_mul(SECTOR);
        let is_protected = STORE.with(|store| matches!(store, Store::Board(board) if board.is_read_only()));
        Self {
            first: window.first,
            size: window.size.min(whole.saturating_sub(window.first)),
            is_read_only: window.is_read_only || is_protected.unwrap_or(false),
            window: window.number,
            is_lost: false,
        }
    }

    /// Lets each request fail.
    pub const fn lose(&mut self) {
        self.is_lost = true;
    }

    /// Returns the place on the whole disk of a range of the part.
    fn place(&self, offset: u64, length: u64) -> Result<u64, Failed> {
        let end = offset
            .checked_add(length)
            .filter(|end| *end <= self.size && !self.is_lost);
        end.and(self.first.checked_add(offset)).ok_or(Failed)
    }

    /// Uses a range of the part of a disk that is memory.
    fn with(&self, offset: u64, length: usize, user: impl FnOnce(&mut [u8])) -> Result<(), Failed> {
        let first = usize::try_from(self.place(offset, length as u64)?).map_err(|_| Failed)?;
        let range = first..first.checked_add(length).ok_or(Failed)?;
        let done = STORE.with(|store| match store {
            Store::Memory { memory, .. } => memory.get_mut(range).map(user),
            Store::Board(_) => None,
        });
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
        let done = STORE.with(|store| match store {
            Store::Memory { .. } => Ok(()),
            Store::Board(board) => board.flush(),
        });
        done.unwrap_or(Err(Failed))
    }

    fn transfer(
        &mut self,
        offset: u64,
        length: u32,
        ranges: Ranges<'_>,
        direction: Direction,
    ) -> Option<Result<(), Failed>> {
        let place = self.place(offset, length.into());
        let window = self.window;
        let done = STORE.with(|store| match store {
            Store::Memory { .. } => None,
            Store::Board(board) => {
                Some(place.and_then(|first| board.transfer(window, first, length, ranges, direction)))
            }
        });
        done.flatten()
    }
}
