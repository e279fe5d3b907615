// SPDX-License-Identifier: Apache-2.0
//! A disk without a file system, written and read in order, past the kernel's cache.

use crate::linux::{File, fail, now};
use crate::report;

/// Operations of each kind.
const COUNT: usize = 64;
const LARGEST: usize = 64 << 10;
/// Sizes of an operation, with the names of its write and its read.
const SIZES: [(usize, [&str; 2]); 2] = [
    (4 << 10, ["disk-write-4", "disk-read-4"]),
    (LARGEST, ["disk-write-64", "disk-read-64"]),
];

/// Memory for operations past the cache, which wants whole pages.
#[repr(align(4096))]
struct Buffer([u8; LARGEST]);

/// Returns the first byte of an operation's data. The others count on from there.
fn first(number: usize, size: usize) -> u8 {
    (number * 7 + size / 4096) as u8
}

pub fn measure(disk: File) {
    let mut buffer = Buffer([0; LARGEST]);
    for (size, [write, read]) in SIZES {
        let bytes = buffer.0.get_mut(..size).unwrap_or_default();
        let mut spent = 0;
        disk.seek(0);
        for number in 0..COUNT {
            let first = first(number, size);
            for (place, byte) in bytes.iter_mut().enumerate() {
                *byte = first.wrapping_add(place as u8);
            }
            let begun = now();
            let written = disk.write(bytes);
            spent += now() - begun;
            check(written == size, "a write is short");
        }
        report(write, spent / COUNT as u64);
        spent = 0;
        disk.seek(0);
        for number in 0..COUNT {
            let begun = now();
            let got = disk.read_some(bytes);
            spent += now() - begun;
            let first = first(number, size);
            let mut all = bytes.iter().enumerate();
            let is_right = all.all(|(place, byte)| *byte == first.wrapping_add(place as u8));
            check(got == size && is_right, "the disk has other bytes");
        }
        report(read, spent / COUNT as u64);
    }
}

fn check(is_right: bool, what: &str) {
    if !is_right {
        fail(format_args!("{what}"));
    }
}
