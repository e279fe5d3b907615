// SPDX-License-Identifier: Apache-2.0
//! Channels: memory that the program shares with other partitions, and the doorbell.
//!
//! The memory is a slice of atomic words, because the other sides may write it at any time. A program does
//! not trust what it finds there: it reads a word once, into memory of its own, and checks what it has read
//! (`bulkhead-ring` does). The words are where the hypervisor put them: a VM that translates its own
//! addresses maps them where they are, as cacheable memory like the other sides.

use core::sync::atomic::AtomicU32;

use bulkhead_abi::{Error, Operation};

use crate::hypercall::{Handle, call};

/// The bit that says that the program may write the memory.
const MAY_WRITE: u64 = 1 << 16;

/// Returns the words at a place that the hypervisor has just answered.
pub(crate) fn words_at([address, size, ..]: [u64; 4]) -> &'static [AtomicU32] {
    let first = core::ptr::with_exposed_provenance::<AtomicU32>(address as usize);
    // SAFETY: the hypervisor has set the addresses aside for `size` bytes, a multiple of 4, page aligned, as
    // long as the program runs, and nothing of the program itself is there. Where nothing is mapped, an
    // access ends the program. For any writer of the memory, each word is an atomic one.
    unsafe { core::slice::from_raw_parts(first, size as usize / 4) }
}

/// A channel at which the program has a side.
#[derive(Clone, Copy, Debug)]
pub struct Channel {
    handle: Handle,
    words: &'static [AtomicU32],
    shape: u64,
}

impl Channel {
    /// Asks where the channel is.
    ///
    /// # Errors
    /// `WrongState` if the program has no side at it; else as all calls.
    pub fn open(handle: Handle) -> Result<Self, Error> {
        let place = call(Operation::ChannelPlace, [u64::from(handle.0), 0, 0, 0, 0, 0])?;
        let [_, _, shape, _] = place;
        Ok(Self {
            handle,
            words: words_at(place),
            shape,
        })
    }

    /// Maps the memory of a side that is mapped only while it is held. [`Channel::may_write`] tells what the
    /// hold allows. When the capability is taken back, an access to the memory ends the program.
    ///
    /// # Errors
    /// `WrongState` if the program has no such side, or holds it already; else as all calls.
    pub fn hold(handle: Handle) -> Result<Self, Error> {
        let [_, _, shape, _] = call(Operation::ChannelHold, [u64::from(handle.0), 0, 0, 0, 0, 0])?;
        Self::open(handle).map(|channel| Self { shape, ..channel })
    }

    /// Unmaps the memory of a side that is held. An access to the memory ends the program then.
    ///
    /// # Errors
    /// `WrongState` if nothing is held; else as all calls.
    pub fn release(self) -> Result<(), Error> {
        let arguments = [u64::from(self.handle.0), 0, 0, 0, 0, 0];
        call(Operation::ChannelRelease, arguments).map(drop)
    }

    /// Returns the memory. Where [`Channel::may_write`] says no, a store ends the program.
    #[must_use]
    pub const fn words(&self) -> &'static [AtomicU32] {
        self.words
    }

    /// Tells whether the program may write the memory.
    #[must_use]
    pub const fn may_write(&self) -> bool {
        self.shape & MAY_WRITE != 0
    }

    /// Returns the program's own side, counted from 0.
    #[must_use]
    pub const fn side(&self) -> u8 {
        self.shape as u8
    }

    /// Returns the number of sides.
    #[must_use]
    pub const fn sides(&self) -> u8 {
        (self.shape >> 8) as u8
    }

    /// Rings at the sides in this bitmap, at all others if it is 0.
    ///
    /// # Errors
    /// As all calls.
    pub fn ring(&self, sides: u64) -> Result<(), Error> {
        call(
            Operation::ChannelDoorbell,
            [u64::from(self.handle.0), sides, 0, 0, 0, 0],
        )
        .map(drop)
    }
}
