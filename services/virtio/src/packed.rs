// SPDX-License-Identifier: Apache-2.0
//! A packed queue (Virtio 1.2, section 2.8): one ring of descriptors that both sides write.
//!
//! A wrap counter on each side tells the descriptors of one round from the descriptors of the round before.
//! The driver writes its counter into the flags of a descriptor to make the descriptor available. The device
//! writes its own to give the descriptor back.

use crate::broken::Broken;
use crate::chain::{Chain, DESCRIPTOR, Descriptor, MAX_SEGMENTS};
use crate::memory::{Memory, after, read_u16, write_u16};
use crate::numbers::{AVAILABLE, INDIRECT, NEXT, USED, WRITE};
use bulkhead_devices::virtio_mmio::QueuePlace;

/// Offset of the flags in a descriptor.
const FLAGS: u64 = 14;
/// Offset of the flags in an area for notifications.
const EVENT_FLAGS: u64 = 2;
/// The bits of the flags that say what is wanted (section 2.8.10).
const EVENT_MASK: u16 = 3;
/// No notification is wanted.
const EVENT_DISABLE: u16 = 1;
/// A notification for one descriptor is wanted.
const EVENT_DESCRIPTOR: u16 = 2;
/// The bit of a position in such an area that is its wrap counter.
const EVENT_WRAP: u16 = 1 << 15;

/// A position in the ring, and the wrap counter of the round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Position {
    index: u16,
    wrap: bool,
}

impl Position {
    const START: Self = Self { index: 0, wrap: true };

    /// Returns the position `count` descriptors later. `count` is no more than `size`.
    const fn behind(self, count: u16, size: u16) -> Self {
        let index = self.index.saturating_add(count);
        if index >= size {
            Self {
                index: index.wrapping_sub(size),
                wrap: !self.wrap,
            }
        } else {
            Self { index, ..self }
        }
    }

    const fn flags(self) -> u16 {
        if self.wrap { AVAILABLE | USED } else { 0 }
    }
}

/// The device's side of a packed queue.
#[derive(Clone, Debug)]
pub struct Packed {
    place: QueuePlace,
    has_event_index: bool,
    next: Position,
    used: Position,
    told: Position,
    /// The descriptors given back since `told`.
    given: u16,
}

impl Packed {
    /// Makes the queue at a place that the window has checked.
    #[must_use]
    pub const fn new(place: QueuePlace, has_event_index: bool) -> Self {
        Self {
            place,
            has_event_index,
            next: Position::START,
            used: Position::START,
            told: Position::START,
            given: 0,
        }
    }

    /// Takes the next chain. `None`: the driver has made no other one available.
    ///
    /// # Errors
    /// [`Broken`].
    pub fn take(&mut self, memory: &mut impl Memory) -> Result<Option<Chain>, Broken> {
        if !self.is_available(memory)? {
            return Ok(None);
        }
        // The flags of the first descriptor say that all of the chain is there: they are read first.
        memory.fence();
        let mut chain = Chain::new();
        let mut at = self.next;
        for slots in 1..=self.place.size.min(MAX_SEGMENTS as u16) {
            let descriptor = self.read(memory, self.place.descriptors, at.index)?;
            if descriptor.has(INDIRECT) {
                // A table is a chain of its own (section 2.8.7).
                if slots != 1 || descriptor.has(NEXT) {
                    return Err(Broken::Table);
                }
                self.read_table(memory, &descriptor, &mut chain)?;
            } else {
                chain.push(&descriptor)?;
            }
            at = at.behind(1, self.place.size);
            if !descriptor.has(NEXT) {
                (chain.id, chain.slots) = (descriptor.link, slots);
                self.next = at;
                return Ok(Some(chain));
            }
        }
        Err(Broken::Loop)
    }

    /// Gives a chain back, with `written` bytes in it.
    ///
    /// # Errors
    /// [`Broken`].
    pub fn give_back(&mut self, memory: &mut impl Memory, chain: &Chain, written: u32) -> Result<(), Broken> {
        let descriptor = self.address(self.place.descriptors, self.used.index)?;
        let mut body = [0; 6];
        let (length, id) = body.split_at_mut(4);
        length.copy_from_slice(&written.to_le_bytes());
        id.copy_from_slice(&chain.id.to_le_bytes());
        memory.write(after(descriptor, 8)?, &body)?;
        // The driver must not see the flags before the rest and the data.
        memory.fence();
        let write = if written == 0 { 0 } else { WRITE };
        write_u16(memory, after(descriptor, FLAGS)?, self.used.flags() | write)?;
        self.used = self.used.behind(chain.slots, self.place.size);
        self.given = self.given.saturating_add(chain.slots);
        Ok(())
    }

    /// Asks the driver to notify the device of the next chain. Returns whether there is one already.
    ///
    /// # Errors
    /// [`Broken`].
    pub fn listen(&mut self, memory: &mut impl Memory) -> Result<bool, Broken> {
        let flags = if self.has_event_index {
            let wrap = if self.next.wrap { EVENT_WRAP } else { 0 };
            write_u16(memory, self.place.device, self.next.index | wrap)?;
            memory.fence();
            EVENT_DESCRIPTOR
        } else {
            0
        };
        write_u16(memory, after(self.place.device, EVENT_FLAGS)?, flags)?;
        memory.fence();
        self.is_available(memory)
    }

    /// Tells whether the driver wants an interrupt for what was given back since the last call.
    ///
    /// # Errors
    /// [`Broken`].
    pub fn wants_interrupt(&mut self, memory: &mut impl Memory) -> Result<bool, Broken> {
        memory.fence();
        let told = core::mem::replace(&mut self.told, self.used);
        let given = core::mem::take(&mut self.given);
        if given == 0 {
            return Ok(false);
        }
        let flags = read_u16(memory, after(self.place.driver, EVENT_FLAGS)?)? & EVENT_MASK;
        if flags != EVENT_DESCRIPTOR || !self.has_event_index {
            return Ok(flags != EVENT_DISABLE);
        }
        memory.fence();
        let event = read_u16(memory, self.place.driver)?;
        let wanted = Position {
            index: event & !EVENT_WRAP,
            wrap: event & EVENT_WRAP != 0,
        };
        let distance = self.distance(told, wanted);
        // A position that the driver has invented asks for too much rather than too little.
        Ok(distance.is_none_or(|distance| distance < u32::from(given)))
    }

    /// Returns how many descriptors a position is after another one, at most a round and a half. `None`: the
    /// position does not exist.
    fn distance(&self, from: Position, to: Position) -> Option<u32> {
        let size = u32::from(self.place.size);
        if to.index >= self.place.size {
            return None;
        }
        let round = if from.wrap == to.wrap { 0 } else { size };
        let end = u32::from(to.index).saturating_add(round);
        // A position before `from` comes again two rounds later.
        let end = end.checked_sub(u32::from(from.index));
        Some(end.unwrap_or(u32::MAX))
    }

    fn is_available(&self, memory: &mut impl Memory) -> Result<bool, Broken> {
        let descriptor = self.address(self.place.descriptors, self.next.index)?;
        let flags = read_u16(memory, after(descriptor, FLAGS)?)?;
        let (available, used) = (flags & AVAILABLE != 0, flags & USED != 0);
        Ok(available == self.next.wrap && used != self.next.wrap)
    }

    fn address(&self, table: u64, index: u16) -> Result<u64, Broken> {
        Ok(after(table, u64::from(index).saturating_mul(DESCRIPTOR))?)
    }

    fn read(&self, memory: &mut impl Memory, table: u64, index: u16) -> Result<Descriptor, Broken> {
        let mut bytes = [0; DESCRIPTOR as usize];
        memory.read(self.address(table, index)?, &mut bytes)?;
        Ok(Descriptor::packed(bytes))
    }

    /// Copies the descriptors of a table: all of them, in their order. Of their flags only
    /// [`WRITE`] counts (section 2.8.7).
    fn read_table(
        &self,
        memory: &mut impl Memory,
        table: &Descriptor,
        chain: &mut Chain,
    ) -> Result<(), Broken> {
        for index in 0..table.table()? {
            let descriptor = self.read(memory, table.address, index)?;
            if descriptor.has(INDIRECT) {
                return Err(Broken::Table);
            }
            chain.push(&descriptor)?;
        }
        Ok(())
    }
}
