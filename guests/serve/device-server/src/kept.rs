// SPDX-License-Identifier: Apache-2.0
//! The registers of the devices, which outlive this program: the hypervisor keeps them beside each window
//! until the client starts anew.
//!
//! The words are marked as invalid while they are written. A life that ends in between leaves words that the
//! next one does not believe; its client then has to reset the device.
//!
//! A page of the task's memory counts the lives since the last cold start, which clears that memory.

use bulkhead_abi::hypercall::{KEPT_GROUP, KEPT_WORDS};
use bulkhead_devices::virtio_mmio::{Kept, QueuePlace};
use bulkhead_guest::hypercall::Handle;
use bulkhead_guest::service;

/// Bytes of the page with the count.
const PAGE: usize = 4096;
/// The mark of words that are whole.
const VALID: u64 = u64::from_le_bytes(*b"KEPTKEPT");
/// The words before those of the queues: the mark, status, features, two of selects.
const HEAD: usize = 5;
/// The words of a queue.
const QUEUE: usize = 4;

/// Counts this life in the first page of the memory. Returns the number of lives since the cold start, and
/// the rest of the memory.
pub fn count_life(memory: &'static mut [u8]) -> Option<(u64, &'static mut [u8])> {
    let (page, rest) = memory.split_at_mut_checked(PAGE)?;
    let count = page.first_chunk_mut()?;
    let lives = u64::from_le_bytes(*count).saturating_add(1);
    *count = lives.to_le_bytes();
    Some((lives, rest))
}

/// Keeps the registers of a device.
pub fn keep<const QUEUES: usize>(service: Handle, window: u8, kept: &Kept<QUEUES>) {
    let [device, driver, queue] = kept.selects.map(u64::from);
    let head = [0, kept.status.into(), kept.accepted, device | driver << 32, queue];
    let queues = kept.queues.iter().flat_map(|(place, is_ready)| {
        let size = u64::from(place.size) | u64::from(*is_ready) << 32;
        [size, place.descriptors, place.driver, place.device]
    });
    let mut words = [0; KEPT_WORDS];
    let places = words.iter_mut();
    places
        .zip(head.into_iter().chain(queues))
        .for_each(|(place, word)| *place = word);
    // A client that starts anew meanwhile has no registers to keep.
    let put = |group: usize, [a, b, c]: [u64; KEPT_GROUP]| {
        let _ = service::keep(service, window, group * KEPT_GROUP, [a, b, c]);
    };
    let (groups, _) = words.as_chunks();
    for (number, group) in groups.iter().enumerate() {
        put(number, *group);
    }
    if let Some([_, b, c]) = groups.first() {
        put(0, [VALID, *b, *c]);
    }
}

/// Returns the registers of a device, if an earlier life has kept them.
pub fn find<const QUEUES: usize>(service: Handle, window: u8) -> Option<Kept<QUEUES>> {
    let mut words = [0; KEPT_WORDS];
    let (groups, _) = words.as_chunks_mut();
    for (number, group) in groups.iter_mut().enumerate() {
        *group = service::kept(service, window, number * KEPT_GROUP).ok()?;
    }
    let word = |index: usize| words.get(index).copied().unwrap_or(0);
    (word(0) == VALID).then(|| Kept {
        status: word(1) as u8,
        accepted: word(2),
        selects: [word(3) as u32, (word(3) >> 32) as u32, word(4) as u32],
        queues: core::array::from_fn(|queue| {
            let first = HEAD + queue * QUEUE;
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
