// SPDX-License-Identifier: Apache-2.0
//! A driver in a few lines: its memory, a queue of each kind, and the acts of a hostile one.
#![allow(dead_code, reason = "each user has its own part of the driver")]

use bulkhead_devices::virtio_mmio::QueuePlace;
use bulkhead_virtio::memory::{Memory, Outside};
use bulkhead_virtio::numbers::{AVAILABLE, FEATURE_PACKED, FEATURE_VERSION_1, INDIRECT, NEXT, USED, WRITE};

/// The address at which the memory of the driver starts.
pub const BASE: u64 = 0x4000_0000;
/// Bytes of it.
pub const SIZE: usize = 0x8000;
/// The address of the descriptors.
pub const DESCRIPTORS: u64 = BASE;
/// The address of the driver's area.
pub const DRIVER: u64 = BASE + 0x1000;
/// The address of the device's area.
pub const DEVICE: u64 = BASE + 0x2000;
/// The address of tables of descriptors.
pub const TABLES: u64 = BASE + 0x3000;
/// The address of the buffers.
pub const BUFFERS: u64 = BASE + 0x4000;

/// The memory of a driver. A hostile driver changes bytes while the device reads.
#[derive(Clone, Debug)]
pub struct Ram {
    pub bytes: Vec<u8>,
    /// Changes for the moments after an access: the address and the new byte.
    pub changes: Vec<(u16, u8)>,
    /// The accesses so far.
    pub accesses: u64,
}

impl Ram {
    pub fn new() -> Self {
        Self {
            bytes: vec![0; SIZE],
            changes: Vec::new(),
            accesses: 0,
        }
    }

    fn range(&self, address: u64, length: usize) -> Result<std::ops::Range<usize>, Outside> {
        let start = address.checked_sub(BASE).ok_or(Outside { address })?;
        let end = start.checked_add(length as u64).ok_or(Outside { address })?;
        if end > SIZE as u64 {
            return Err(Outside { address });
        }
        Ok(start as usize..end as usize)
    }

    fn pass(&mut self) {
        self.accesses += 1;
        if let Some((at, byte)) = self.changes.pop() {
            let size = self.bytes.len();
            self.bytes[usize::from(at) % size] = byte;
        }
    }

    pub fn put(&mut self, address: u64, bytes: &[u8]) {
        let range = self.range(address, bytes.len()).unwrap();
        self.bytes[range].copy_from_slice(bytes);
    }

    pub fn get<const N: usize>(&self, address: u64) -> [u8; N] {
        self.bytes[self.range(address, N).unwrap()].try_into().unwrap()
    }
}

impl Memory for Ram {
    fn read(&mut self, address: u64, into: &mut [u8]) -> Result<(), Outside> {
        into.copy_from_slice(&self.bytes[self.range(address, into.len())?]);
        self.pass();
        Ok(())
    }

    fn write(&mut self, address: u64, bytes: &[u8]) -> Result<(), Outside> {
        let range = self.range(address, bytes.len())?;
        self.bytes[range].copy_from_slice(bytes);
        self.pass();
        Ok(())
    }
}

/// A buffer: its address, its bytes, and whether the device writes it.
#[derive(Clone, Copy, Debug)]
pub struct Buffer(pub u64, pub u32, pub bool);

/// The driver's side of a queue, split or packed.
#[derive(Debug)]
pub struct Driver {
    pub packed: bool,
    pub size: u16,
    /// The next free descriptor, the chains made available, those seen back.
    head: u16,
    available: u16,
    used: u16,
    wraps: (bool, bool),
    /// The slots of each chain by its name, in a packed queue.
    slots: Vec<u16>,
}

impl Driver {
    pub fn new(packed: bool, size: u16) -> Self {
        let slots = vec![0; usize::from(size)];
        Self {
            packed,
            size,
            head: 0,
            available: 0,
            used: 0,
            wraps: (true, true),
            slots,
        }
    }

    pub fn place(&self) -> QueuePlace {
        QueuePlace {
            size: self.size,
            descriptors: DESCRIPTORS,
            driver: DRIVER,
            device: DEVICE,
        }
    }

    pub fn features(&self) -> u64 {
        FEATURE_VERSION_1 | if self.packed { FEATURE_PACKED } else { 0 }
    }

    /// Makes a chain available. Returns its name. With a table there is one descriptor in the ring.
    pub fn offer(&mut self, ram: &mut Ram, buffers: &[Buffer], table: Option<u64>) -> u16 {
        let flags = |index: usize, last: usize| if index == last { 0 } else { NEXT };
        let last = buffers.len() - 1;
        let Some(table) = table else {
            let all = buffers.iter().enumerate();
            let descriptors = all.map(|(index, buffer)| {
                (
                    buffer.0,
                    buffer.1,
                    flags(index, last) | if buffer.2 { WRITE } else { 0 },
                )
            });
            return self.put(ram, &descriptors.collect::<Vec<_>>());
        };
        for (index, buffer) in buffers.iter().enumerate() {
            let write = if buffer.2 { WRITE } else { 0 };
            let at = table + 16 * index as u64;
            if self.packed {
                ram.put(at, &descriptor(buffer.0, buffer.1, 0, write));
            } else {
                let next = index as u16 + 1;
                ram.put(
                    at,
                    &descriptor(buffer.0, buffer.1, flags(index, last) | write, next),
                );
            }
        }
        self.put(ram, &[(table, 16 * buffers.len() as u32, INDIRECT)])
    }

    fn put(&mut self, ram: &mut Ram, descriptors: &[(u64, u32, u16)]) -> u16 {
        let first = self.head;
        for (index, (address, length, flags)) in descriptors.iter().enumerate() {
            let slot = (first + index as u16) % self.size;
            let at = DESCRIPTORS + 16 * u64::from(slot);
            if self.packed {
                let (set, clear) = if self.wraps.0 {
                    (AVAILABLE, USED)
                } else {
                    (USED, AVAILABLE)
                };
                ram.put(at, &descriptor(*address, *length, first, flags & !clear | set));
                self.wraps.0 ^= slot + 1 == self.size;
            } else {
                ram.put(at, &descriptor(*address, *length, *flags, (slot + 1) % self.size));
            }
        }
        self.head = (first + descriptors.len() as u16) % self.size;
        self.slots[usize::from(first)] = descriptors.len() as u16;
        if !self.packed {
            ram.put(
                DRIVER + 4 + 2 * u64::from(self.available % self.size),
                &first.to_le_bytes(),
            );
            self.available = self.available.wrapping_add(1);
            ram.put(DRIVER + 2, &self.available.to_le_bytes());
        }
        first
    }

    /// Takes a chain back: its name, and the bytes that the device has written.
    pub fn take_back(&mut self, ram: &Ram) -> Option<(u16, u32)> {
        if self.packed {
            let at = DESCRIPTORS + 16 * u64::from(self.used);
            let flags = u16::from_le_bytes(ram.get(at + 14));
            let is_used = (flags & AVAILABLE != 0) == self.wraps.1 && (flags & USED != 0) == self.wraps.1;
            if !is_used {
                return None;
            }
            let id = u16::from_le_bytes(ram.get(at + 12));
            let end = self.used + self.slots[usize::from(id)];
            self.wraps.1 ^= end >= self.size;
            self.used = end % self.size;
            return Some((id, u32::from_le_bytes(ram.get(at + 8))));
        }
        if u16::from_le_bytes(ram.get(DEVICE + 2)) == self.used {
            return None;
        }
        let at = DEVICE + 4 + 8 * u64::from(self.used % self.size);
        self.used = self.used.wrapping_add(1);
        Some((
            u32::from_le_bytes(ram.get(at)) as u16,
            u32::from_le_bytes(ram.get(at + 4)),
        ))
    }
}

/// Returns the bytes of a descriptor whose last two numbers are these.
pub fn descriptor(address: u64, length: u32, third: u16, fourth: u16) -> [u8; 16] {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&address.to_le_bytes());
    bytes[8..12].copy_from_slice(&length.to_le_bytes());
    bytes[12..14].copy_from_slice(&third.to_le_bytes());
    bytes[14..].copy_from_slice(&fourth.to_le_bytes());
    bytes
}
