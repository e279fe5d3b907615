// SPDX-License-Identifier: Apache-2.0
//! The registers that are kept for a later life, when a life ends between any two of its calls.
#![forbid(unsafe_code)]

use bulkhead_abi::hypercall::{KEPT_GROUP, KEPT_WORDS, groups_to_keep};
use bulkhead_devices::virtio_mmio::{Kept, STATUS, Window};

type Words = [u64; KEPT_WORDS];

/// A driver that finds a device, sets two queues up, goes, and comes again.
const STORES: &[(u64, u64)] = &[
    (STATUS, 0),
    (STATUS, 1),
    (STATUS, 3),
    (0x14, 1),
    (0x14, 0),
    (0x24, 1),
    (0x20, 1),
    (0x24, 0),
    (0x20, 0),
    (STATUS, 11),
    (0x30, 0),
    (0x38, 128),
    (0x80, 0x1000),
    (0x84, 1),
    (0x90, 0x2000),
    (0x94, 1),
    (0xA0, 0x3000),
    (0xA4, 1),
    (0x44, 1),
    (0x30, 1),
    (0x38, 64),
    (0x80, 0x5000),
    (0x84, 1),
    (0x90, 0x6000),
    (0x94, 1),
    (0xA0, 0x7000),
    (0xA4, 1),
    (0x44, 1),
    (STATUS, 15),
    (STATUS, 0),
    (STATUS, 1),
    (STATUS, 3),
    (0x24, 1),
    (0x20, 1),
    (STATUS, 11),
    (0x30, 0),
    (0x38, 32),
    (0x80, 0x9000),
    (0x44, 1),
    (STATUS, 15),
];

/// A life of a server: its device, and what it knows to be kept.
struct Life {
    window: Window<2>,
    known: Words,
}

impl Life {
    /// Begins with what an earlier life has kept.
    fn new(kept: &Words) -> Self {
        let mut window = Window::new(1, 0, 128);
        if let Some(registers) = Kept::from_words(kept) {
            window.restore(&registers);
        }
        Self { window, known: *kept }
    }

    /// Does a store, and keeps the registers before the driver goes on. Returns false if the life has ended
    /// before that: it has `calls` calls left.
    fn store(&mut self, (offset, value): (u64, u64), kept: &mut Words, calls: &mut u32) -> bool {
        let _ = self.window.write(offset, 4, value);
        let wanted = self.window.keep().to_words();
        for (first, group) in groups_to_keep(&self.known, &wanted) {
            let Some(left) = calls.checked_sub(1) else {
                return false;
            };
            *calls = left;
            kept[first..first + KEPT_GROUP].copy_from_slice(&group);
        }
        self.known = wanted;
        true
    }
}

/// Does all stores, while lives end after so many calls each. Returns the registers after each store, and the
/// number of lives.
fn drive(ends: &[u32]) -> (Vec<Option<Kept<2>>>, usize) {
    let mut ends = ends.iter().copied();
    let mut calls = ends.next().unwrap_or(u32::MAX);
    let mut kept = [0; KEPT_WORDS];
    let (mut life, mut lives) = (Life::new(&kept), 1);
    let mut seen = Vec::new();
    for store in STORES {
        while !life.store(*store, &mut kept, &mut calls) {
            // The access was not answered, so it comes again.
            calls = ends.next().unwrap_or(u32::MAX);
            (life, lives) = (Life::new(&kept), lives + 1);
        }
        seen.push(Kept::from_words(&kept));
        assert_eq!(seen.last(), Some(&Some(life.window.keep())));
    }
    (seen, lives)
}

#[test]
fn a_driver_that_meets_no_end_finds_its_registers_kept() {
    let (seen, lives) = drive(&[]);
    let last = seen.last().unwrap().unwrap();
    assert_eq!((lives, last.status, last.queues[0].1), (1, 15, true));
}

#[test]
fn an_end_between_any_two_calls_loses_no_register() {
    let (right, _) = drive(&[]);
    for first in 0..60 {
        let (seen, lives) = drive(&[first]);
        assert_eq!(seen, right, "an end after {first} calls");
        assert!(lives == 2 || first > 40, "{first}");
        for second in 0..12 {
            assert_eq!(
                drive(&[first, second, second]).0,
                right,
                "ends after {first}, {second}"
            );
        }
    }
}

#[test]
fn a_server_that_dies_after_every_nth_call_gets_on() {
    let (right, _) = drive(&[]);
    for nth in 1..6 {
        let (seen, lives) = drive(&[nth; 100]);
        assert_eq!(seen, right, "an end after each {nth} calls");
        assert!(lives > 8, "{nth}: {lives}");
    }
}
