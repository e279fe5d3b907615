// SPDX-License-Identifier: Apache-2.0
//! Privilege level 3, and stacks of their own for exceptions: descriptors, a task state segment, and
//! translation tables that let programs reach memory (AMD APM volume 2, 4.8, 5.3 and 12.2).

use core::arch::asm;
use core::cell::UnsafeCell;

/// Bytes of each stack.
const STACK: usize = 8 << 10;
/// Selectors of code and stack of privilege level 3.
pub(super) const SELECTORS: (u64, u64) = (0x33, 0x2B);
const TASK: u16 = 0x38;
/// A table, or a page of 1 GiB, for everybody to read and write.
const TABLE: u64 = 7;
const PAGE: u64 = 0x87;
/// The segments as the program has them already, then data and code of level 3.
const SEGMENTS: [u64; 7] = [
    0,
    0,
    0x00AF_9B00_0000_FFFF,
    0x00CF_9300_0000_FFFF,
    0x00CF_9B00_0000_FFFF,
    0x00CF_F300_0000_FFFF,
    0x00AF_FB00_0000_FFFF,
];

#[repr(C, align(4096))]
struct Tables {
    root: [u64; 512],
    directory: [u64; 512],
    segments: [u64; 9],
    /// Words of 4 bytes: RSP0 is the second and third one, and IST1 the tenth and eleventh one.
    task: [u32; 26],
    stacks: [[u8; STACK]; 2],
}

struct Place(UnsafeCell<Tables>);

// SAFETY: one processor fills them before it loads them; then hardware uses them.
unsafe impl Sync for Place {}

static TABLES: Place = Place(UnsafeCell::new(Tables {
    root: [0; 512],
    directory: [0; 512],
    segments: [0; 9],
    task: [0; 26],
    stacks: [[0; STACK]; 2],
}));

/// Loads tables with which [`super::attempt::run_user`] works, and with a stack for exceptions: number 1 of
/// [`super::exception::use_stack`]. One processor does so, once.
pub fn open() {
    // SAFETY: nothing is loaded yet, and nothing else refers to the tables.
    let tables = unsafe { &mut *TABLES.0.get() };
    let [outer, first] = [0, 1].map(|index| (&raw const tables.stacks[index]) as u64 + STACK as u64);
    tables.root[0] = (&raw const tables.directory) as u64 | TABLE;
    for (entry, number) in tables.directory.iter_mut().zip(0..4) {
        *entry = number << 30 | PAGE;
    }
    (tables.task[1], tables.task[9], tables.task[25]) = (outer as u32, first as u32, 104 << 16);
    let task = (&raw const tables.task) as u64;
    tables.segments[..7].copy_from_slice(&SEGMENTS);
    tables.segments[7] = 103 | (task & 0xFF_FFFF) << 16 | 0x89 << 40 | (task >> 24 & 0xFF) << 56;
    tables.segments[8] = task >> 32;
    let base = (&raw const tables.segments) as u64;
    let pointer: [u16; 5] = [
        9 * 8 - 1,
        base as u16,
        (base >> 16) as u16,
        (base >> 32) as u16,
        0,
    ];
    let root = (&raw const tables.root) as u64;
    // SAFETY: the selectors in use mean the same as before, all memory is where it was, and the tables stay.
    unsafe {
        asm!("lgdt [{pointer}]", "ltr {task:x}", "mov cr3, {root}",
             pointer = in(reg) pointer.as_ptr(), task = in(reg) TASK, root = in(reg) root);
    }
}
