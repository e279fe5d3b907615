// SPDX-License-Identifier: Apache-2.0
//! A split queue (Virtio 1.2, section 2.7): a table of descriptors, the ring of the driver and the ring of
//! the device.

use crate::broken::Broken;
use crate::chain::{Chain, DESCRIPTOR, Descriptor, MAX_SEGMENTS};
use crate::memory::{Memory, after, read_u16, write_u16};
use crate::numbers::{INDIRECT, NEXT, NO_INTERRUPT};
use bulkhead_devices::virtio_mmio::QueuePlace;

/// Offset of the index in both rings.
const INDEX: u64 = 2;
/// Offset of the entries in both rings.
const ENTRIES: u64 = 4;
const AVAILABLE_ENTRY: u64 = 2;
const USED_ENTRY: u64 = 8;

/// The device's side of a split queue.
#[derive(Clone, Debug)]
pub struct Split {
    place: QueuePlace,
    has_event_index: bool,
    /// The position from which the device takes the next chain.
    next: u16,
    /// The position to which the device gives the next chain back.
    used: u16,
    /// The value of `used` when the driver was interrupted last, or was asked whether it wants to be.
    told: u16,
}

impl Split {
    /// Makes the queue at a place that the window has checked.
    #[must_use]
    pub const fn new(place: QueuePlace, has_event_index: bool) -> Self {
        Self {
            place,
            has_event_index,
            next: 0,
            used: 0,
            told: 0,
        }
    }

    /// Makes the queue of a device that an earlier life of its server has served one chain after the other.
    /// The index in the device's ring says how many were given back. A chain that was taken and not given
    /// back is taken again.
    ///
    /// # Errors
    /// [`Broken`].
    pub fn resume(
        place: QueuePlace,
        has_event_index: bool,
        memory: &mut impl Memory,
    ) -> Result<Self, Broken> {
        let used = read_u16(memory, after(place.device, INDEX)?)?;
        Ok(Self {
            next: used,
            used,
            told: used,
            ..Self::new(place, has_event_index)
        })
    }

    /// Takes the next chain. `None`: the driver has made no other one available.
    ///
    /// # Errors
    /// [`Broken`].
    pub fn take(&mut self, memory: &mut impl Memory) -> Result<Option<Chain>, Broken> {
        let index = read_u16(memory, after(self.place.driver, INDEX)?)?;
        let waiting = index.wrapping_sub(self.next);
        if waiting == 0 {
            return Ok(None);
        }
        if waiting > self.place.size {
            return Err(Broken::Index);
        }
        // The index says that the entries are there: it is read first.
        memory.fence();
        let entry = self.entry(self.place.driver, self.next, AVAILABLE_ENTRY)?;
        let head = read_u16(memory, entry)?;
        let chain = self.follow(memory, head)?;
        self.next = self.next.wrapping_add(1);
        Ok(Some(chain))
    }

    /// Gives a chain back, with `written` bytes in it.
    ///
    /// # Errors
    /// [`Broken`].
    pub fn give_back(&mut self, memory: &mut impl Memory, chain: &Chain, written: u32) -> Result<(), Broken> {
        let mut element = [0; USED_ENTRY as usize];
        let (id, length) = element.split_at_mut(4);
        id.copy_from_slice(&u32::from(chain.id).to_le_bytes());
        length.copy_from_slice(&written.to_le_bytes());
        let entry = self.entry(self.place.device, self.used, USED_ENTRY)?;
        memory.write(entry, &element)?;
        self.used = self.used.wrapping_add(1);
        // The driver must not see the index before the entry and the data.
        memory.fence();
        write_u16(memory, after(self.place.device, INDEX)?, self.used)?;
        Ok(())
    }

    /// Asks the driver to notify the device of the next chain. Returns whether there is one already.
    ///
    /// # Errors
    /// [`Broken`].
    pub fn listen(&mut self, memory: &mut impl Memory) -> Result<bool, Broken> {
        if self.has_event_index {
            let event = self.entry(self.place.device, 0, USED_ENTRY)?;
            let behind = u64::from(self.place.size).saturating_mul(USED_ENTRY);
            write_u16(memory, after(event, behind)?, self.next)?;
        }
        memory.fence();
        let index = read_u16(memory, after(self.place.driver, INDEX)?)?;
        Ok(index != self.next)
    }

    /// Tells whether the driver wants an interrupt for what was given back since the last call.
    ///
    /// # Errors
    /// [`Broken`].
    pub fn wants_interrupt(&mut self, memory: &mut impl Memory) -> Result<bool, Broken> {
        memory.fence();
        let told = core::mem::replace(&mut self.told, self.used);
        if told == self.used {
            return Ok(false);
        }
        if !self.has_event_index {
            let flags = read_u16(memory, self.place.driver)?;
            return Ok(flags & NO_INTERRUPT == 0);
        }
        let event = self.entry(self.place.driver, 0, AVAILABLE_ENTRY)?;
        let behind = u64::from(self.place.size).saturating_mul(AVAILABLE_ENTRY);
        let event = read_u16(memory, after(event, behind)?)?;
        // Section 2.7.10: the position `event` was passed since `told`.
        let passed = self.used.wrapping_sub(event).wrapping_sub(1);
        Ok(passed < self.used.wrapping_sub(told))
    }

    /// Returns the address of an entry of a ring. The size is a power of two.
    fn entry(&self, ring: u64, position: u16, size: u64) -> Result<u64, Broken> {
        let place = position & self.place.size.wrapping_sub(1);
        let offset = u64::from(place).saturating_mul(size).saturating_add(ENTRIES);
        Ok(after(ring, offset)?)
    }

    /// Copies a chain. Each descriptor of a table is used once at most, so a loop ends.
    fn follow(&self, memory: &mut impl Memory, head: u16) -> Result<Chain, Broken> {
        let mut chain = Chain::new();
        chain.id = head;
        let (mut table, mut size, mut index) = (self.place.descriptors, self.place.size, head);
        let mut left = size;
        let mut is_indirect = false;
        for _ in 0..=MAX_SEGMENTS {
            if index >= size {
                return Err(Broken::Index);
            }
            left = left.checked_sub(1).ok_or(Broken::Loop)?;
            let descriptor = read(memory, table, index)?;
            if descriptor.has(INDIRECT) {
                // One table, and nothing after it (section 2.7.5.3.1).
                if is_indirect || descriptor.has(NEXT) {
                    return Err(Broken::Table);
                }
                (size, table) = (descriptor.table()?, descriptor.address);
                (left, index, is_indirect) = (size, 0, true);
                continue;
            }
            chain.push(&descriptor)?;
            if !descriptor.has(NEXT) {
                return Ok(chain);
            }
            index = descriptor.link;
        }
        Err(Broken::TooLong)
    }
}

fn read(memory: &mut impl Memory, table: u64, index: u16) -> Result<Descriptor, Broken> {
    let mut bytes = [0; DESCRIPTOR as usize];
    let offset = u64::from(index).saturating_mul(DESCRIPTOR);
    memory.read(after(table, offset)?, &mut bytes)?;
    Ok(Descriptor::split(bytes))
}

impl Descriptor {
    const fn split(bytes: [u8; DESCRIPTOR as usize]) -> Self {
        let [a0, a1, a2, a3, a4, a5, a6, a7, l0, l1, l2, l3, f0, f1, n0, n1] = bytes;
        Self {
            address: u64::from_le_bytes([a0, a1, a2, a3, a4, a5, a6, a7]),
            length: u32::from_le_bytes([l0, l1, l2, l3]),
            flags: u16::from_le_bytes([f0, f1]),
            link: u16::from_le_bytes([n0, n1]),
        }
    }

    /// Reads a packed descriptor: its name comes before its flags.
    pub(crate) const fn packed(bytes: [u8; DESCRIPTOR as usize]) -> Self {
        let split = Self::split(bytes);
        Self {
            flags: split.link,
            link: split.flags,
            ..split
        }
    }
}
