// SPDX-License-Identifier: Apache-2.0
//! The registers of the devices, in memory that a warm start leaves alone.
//!
//! A slot is marked as invalid while it is written. A life that ends in between leaves a slot that the next
//! one does not believe; its client then has to reset the device.

use bulkhead_devices::virtio_mmio::{Kept, QueuePlace};

/// Bytes of the shelf.
const SHELF: usize = 4096;
const WORD: usize = 8;
/// The words of a slot: the mark, status, features, two of selects, and four for each of two queues.
const WORDS: usize = 5 + 2 * QUEUE;
const QUEUE: usize = 4;
/// "KEPT" twice: memory after a cold start is 0.
const VALID: u64 = u64::from_le_bytes(*b"KEPTKEPT");
/// The place of the number of lives, behind all slots.
const LIVES: usize = SHELF - WORD;

/// The slots of all devices.
pub struct Shelf {
    bytes: &'static mut [u8],
}

impl Shelf {
    /// Splits the memory of the task into the shelf and the rest.
    pub fn split(memory: &'static mut [u8]) -> Option<(Self, &'static mut [u8])> {
        let (bytes, rest) = memory.split_at_mut_checked(SHELF)?;
        Some((Self { bytes }, rest))
    }

    /// Counts this life. Returns the number of lives since the cold start.
    pub fn count_life(&mut self) -> u64 {
        let lives = self.word(LIVES).saturating_add(1);
        self.set(LIVES, lives);
        lives
    }

    fn word(&self, at: usize) -> u64 {
        let bytes = self.bytes.get(at..).and_then(<[u8]>::first_chunk);
        bytes.map_or(0, |bytes| u64::from_le_bytes(*bytes))
    }

    fn set(&mut self, at: usize, value: u64) {
        if let Some(bytes) = self.bytes.get_mut(at..).and_then(<[u8]>::first_chunk_mut) {
            *bytes = value.to_le_bytes();
        }
        // A life can end behind each store: they stay in this order.
        core::sync::atomic::compiler_fence(core::sync::atomic::Ordering::SeqCst);
    }

    /// Forgets a device.
    pub fn forget(&mut self, slot: usize) {
        self.set(slot * WORDS * WORD, 0);
    }

    /// Keeps the registers of a device.
    pub fn keep<const QUEUES: usize>(&mut self, slot: usize, kept: &Kept<QUEUES>) {
        let first = slot * WORDS * WORD;
        self.set(first, 0);
        let [device, driver, queue] = kept.selects.map(u64::from);
        let head = [kept.status.into(), kept.accepted, device | driver << 32, queue];
        let queues = kept.queues.iter().flat_map(|(place, is_ready)| {
            let size = u64::from(place.size) | u64::from(*is_ready) << 32;
            [size, place.descriptors, place.driver, place.device]
        });
        for (index, word) in head.into_iter().chain(queues).enumerate() {
            self.set(first + (1 + index) * WORD, word);
        }
        self.set(first, VALID);
    }

    /// Returns the registers of a device, if an earlier life has kept them.
    pub fn find<const QUEUES: usize>(&self, slot: usize) -> Option<Kept<QUEUES>> {
        let word = |index: usize| self.word((slot * WORDS + index) * WORD);
        (word(0) == VALID).then(|| Kept {
            status: word(1) as u8,
            accepted: word(2),
            selects: [word(3) as u32, (word(3) >> 32) as u32, word(4) as u32],
            queues: core::array::from_fn(|queue| {
                let first = 5 + queue * QUEUE;
                let place = QueuePlace {
                    size: word(first) as u16,
                    descriptors: word(first + 1),
                    driver: word(first + 2),
                    device: word(first + 3),
                };
                (place, word(first) >> 32 & 1 != 0)
            }),
        })
    }
}
