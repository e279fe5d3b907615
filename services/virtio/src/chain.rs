// SPDX-License-Identifier: Apache-2.0
//! A chain: the buffers of one request, first those that the device reads, then those that it writes.
//!
//! The chain is a copy of its descriptors. Later changes of the descriptors have no effect.
//! The addresses are still the driver's word: [`Memory`] checks each access.

use crate::broken::Broken;
use crate::memory::{Memory, Outside, after};
use crate::numbers::WRITE;

/// The most segments of a chain, and the most descriptors of a queue.
pub const MAX_SEGMENTS: usize = 128;
/// Bytes of a descriptor, split or packed.
pub(crate) const DESCRIPTOR: u64 = 16;

/// A buffer of a chain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Segment {
    address: u64,
    length: u32,
}

/// The buffers of one request.
#[derive(Clone, Debug)]
pub struct Chain {
    segments: [Segment; MAX_SEGMENTS],
    count: usize,
    /// The segments that the device reads. They come first.
    readable: usize,
    /// Bytes of all segments.
    length: u64,
    /// The name of the chain in its queue.
    pub(crate) id: u16,
    /// The descriptors that the chain has in the ring itself.
    pub(crate) slots: u16,
}

/// A descriptor, as it was read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Descriptor {
    pub(crate) address: u64,
    pub(crate) length: u32,
    pub(crate) flags: u16,
    /// The next descriptor of a split queue, or the name of the chain in a packed one.
    pub(crate) link: u16,
}

impl Descriptor {
    /// Tells whether a flag is set.
    pub(crate) const fn has(&self, flag: u16) -> bool {
        self.flags & flag != 0
    }

    /// Returns the bytes of the table that the descriptor names.
    pub(crate) fn table(&self) -> Result<u16, Broken> {
        let count = self.length.div_euclid(DESCRIPTOR as u32);
        let is_whole = self.length.is_multiple_of(DESCRIPTOR as u32);
        match u16::try_from(count) {
            Ok(count) if is_whole && (1..=MAX_SEGMENTS as u16).contains(&count) => Ok(count),
            _ => Err(Broken::Table),
        }
    }
}

impl Chain {
    pub(crate) const fn new() -> Self {
        Self {
            segments: [Segment {
                address: 0,
                length: 0,
            }; MAX_SEGMENTS],
            count: 0,
            readable: 0,
            length: 0,
            id: 0,
            slots: 1,
        }
    }

    /// Adds the buffer of a descriptor.
    pub(crate) fn push(&mut self, descriptor: &Descriptor) -> Result<(), Broken> {
        let place = self.segments.get_mut(self.count).ok_or(Broken::TooLong)?;
        *place = Segment {
            address: descriptor.address,
            length: descriptor.length,
        };
        let end = self.length.saturating_add(descriptor.length.into());
        if end > u32::MAX.into() {
            return Err(Broken::TooLong);
        }
        if !descriptor.has(WRITE) {
            if self.readable != self.count {
                return Err(Broken::Order);
            }
            self.readable = self.readable.saturating_add(1);
        }
        self.count = self.count.saturating_add(1);
        self.length = end;
        Ok(())
    }

    fn inputs(&self) -> &[Segment] {
        self.segments.get(..self.readable).unwrap_or(&[])
    }

    fn outputs(&self) -> &[Segment] {
        self.segments.get(self.readable..self.count).unwrap_or(&[])
    }

    /// Returns the number of bytes that the device can read.
    #[must_use]
    pub fn readable(&self) -> u32 {
        total(self.inputs())
    }

    /// Returns the number of bytes that the device can write.
    #[must_use]
    pub fn writable(&self) -> u32 {
        total(self.outputs())
    }

    /// Returns the ranges of the driver's memory that make `length` bytes of the readable buffers, from
    /// `offset` on. A range that has no addresses ends the list early.
    #[must_use]
    pub fn readable_ranges(&self, offset: u32, length: u32) -> Ranges<'_> {
        Ranges {
            pieces: Pieces::new(self.inputs(), offset),
            left: length,
        }
    }

    /// Returns the ranges of the writable buffers, as [`Self::readable_ranges`].
    #[must_use]
    pub fn writable_ranges(&self, offset: u32, length: u32) -> Ranges<'_> {
        Ranges {
            pieces: Pieces::new(self.outputs(), offset),
            left: length,
        }
    }

    /// Copies the bytes that the driver has written, from `offset` on.
    ///
    /// # Errors
    /// [`Outside`], also if the chain has fewer bytes.
    pub fn read(&self, memory: &mut impl Memory, offset: u32, into: &mut [u8]) -> Result<(), Outside> {
        let mut rest = into;
        let mut pieces = Pieces::new(self.inputs(), offset);
        while !rest.is_empty() {
            let (address, length) = pieces.next(rest.len())?;
            let (now, later) = rest.split_at_mut(length);
            memory.read(address, now)?;
            rest = later;
        }
        Ok(())
    }

    /// Copies bytes to the driver, from `offset` of the writable bytes on.
    ///
    /// # Errors
    /// [`Outside`], also if the chain has fewer bytes.
    pub fn write(&self, memory: &mut impl Memory, offset: u32, bytes: &[u8]) -> Result<(), Outside> {
        let mut rest = bytes;
        let mut pieces = Pieces::new(self.outputs(), offset);
        while !rest.is_empty() {
            let (address, length) = pieces.next(rest.len())?;
            let (now, later) = rest.split_at(length);
            memory.write(address, now)?;
            rest = later;
        }
        Ok(())
    }
}

/// Returns the bytes of segments. A chain is no longer than `u32::MAX`.
fn total(segments: &[Segment]) -> u32 {
    let lengths = segments.iter().map(|segment| segment.length);
    lengths.fold(0, u32::saturating_add)
}

/// Ranges of a driver's memory: address and bytes of each. The addresses are the driver's word.
pub struct Ranges<'a> {
    pieces: Pieces<'a>,
    left: u32,
}

impl Iterator for Ranges<'_> {
    type Item = (u64, u32);

    fn next(&mut self) -> Option<Self::Item> {
        if self.left == 0 {
            return None;
        }
        let (address, length) = self.pieces.next(self.left as usize).ok()?;
        self.left = self.left.saturating_sub(length as u32);
        Some((address, length as u32))
    }
}

/// The pieces of segments from an offset on.
struct Pieces<'a> {
    segments: core::slice::Iter<'a, Segment>,
    /// The rest of the segment in hand.
    address: u64,
    length: u32,
    /// The bytes to skip before the first piece.
    skip: u32,
}

impl<'a> Pieces<'a> {
    fn new(segments: &'a [Segment], offset: u32) -> Self {
        Self {
            segments: segments.iter(),
            address: 0,
            length: 0,
            skip: offset,
        }
    }

    /// Returns the next piece, of at most `wanted` bytes and at least one. Bounded by the segments.
    fn next(&mut self, wanted: usize) -> Result<(u64, usize), Outside> {
        while self.length == 0 {
            let address = self.address;
            let segment = self.segments.next().ok_or(Outside { address })?;
            let skipped = self.skip.min(segment.length);
            self.skip = self.skip.saturating_sub(skipped);
            self.address = after(segment.address, skipped.into())?;
            self.length = segment.length.saturating_sub(skipped);
        }
        let length = u32::try_from(wanted).unwrap_or(u32::MAX).min(self.length);
        let address = self.address;
        // The address after the last byte may not exist: nothing is there then.
        let end = after(address, u64::from(length.saturating_sub(1)))?;
        self.address = end.wrapping_add(1);
        self.length = self.length.saturating_sub(length);
        Ok((address, length as usize))
    }
}
