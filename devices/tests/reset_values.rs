// SPDX-License-Identifier: Apache-2.0
//! Devices that no board of the emulator has in this form: each register after a reset, against the standard
//! or the data sheet of the device.

use bulkhead_devices::flash::{Bank, Loaded};
use bulkhead_devices::ivshmem::{CONFIG_SIZE, Function, Place, REGISTERS_SIZE};
use bulkhead_devices::virtio_mmio::{Effect, Window};

/// Bytes of a bank of QEMU's `virt` board.
const BANK: u32 = 64 << 20;

/// Returns the low bytes that a chip of the bank gives in a mode, for each word of its first 256.
fn words_of_chip(command: u64) -> [u8; 256] {
    let mut bank = Bank::new();
    bank.store(0, 4, command << 16 | command, BANK);
    let mut words = [0; 256];
    for (word, offset) in words.iter_mut().zip((0..).step_by(4)) {
        let Loaded::Value(both, _) = bank.load(offset, 4, BANK) else {
            panic!("the bytes of the bank");
        };
        assert_eq!(both >> 16, both & 0xFFFF, "two chips side by side");
        *word = both as u8;
    }
    words
}

/// JESD68.01, 2 (the query structure), JEP137 (command sets), P30 data sheet (write buffer of 64 bytes).
/// Words that are not here are 0.
#[test]
fn the_query_of_the_flash_is_that_of_the_standard() {
    let expected = [
        (0x10, *b"QRY"),
        // Command set 1 of Intel, and its table.
        (0x13, [0x01, 0x00, 0x31]),
        // The supply: 4.5 to 5.5 V.
        (0x1B, [0x45, 0x55, 0x00]),
        // A word and a buffer take 2^7 us, a sector 2^10 ms.
        (0x1F, [7, 7, 10]),
        // At most 2^4 times as long.
        (0x23, [4, 4, 4]),
        // A chip of 2^25 bytes, with 8 and 16 bits.
        (0x27, [25, 0x02, 0x00]),
        // A buffer of 2^6 bytes, one region.
        (0x2A, [6, 0, 1]),
        // 256 sectors, each of 512 times 256 bytes of a chip.
        (0x2D, [0xFF, 0x00, 0x00]),
        (0x30, [0x02, b'P', b'R']),
        (0x33, *b"I10"),
        (0x3F, [0x01, 0, 0]),
    ];
    let mut words = [0; 256];
    for (at, bytes) in expected {
        words[at..at + 3].copy_from_slice(&bytes);
    }
    assert_eq!(words_of_chip(0x98), words);
}

/// P30 data sheet, device identifier codes: Intel, no locked sector; status register: ready.
#[test]
fn the_flash_identifies_itself_and_is_ready() {
    let mut words = [0; 256];
    words[..2].copy_from_slice(&[0x89, 0x18]);
    assert_eq!(words_of_chip(0x90), words);
    assert_eq!(words_of_chip(0x70), [0x80; 256]);
    let mut bank = Bank::new();
    assert!(bank.is_array());
    assert_eq!(bank.load(0, 4, BANK), Loaded::Array);
    bank.store(0, 4, 0x0020_0020, BANK);
    bank.reset();
    assert!(bank.is_array(), "a reset ends a sequence of commands");
}

/// PCI 3.0, 6.1 (the header of type 0) and docs/specs/ivshmem-spec.rst of QEMU. Words that are not here
/// are 0.
#[test]
fn the_header_of_the_shared_memory_is_that_of_the_standard() {
    let place = Place {
        registers: 0x3E00_0000,
        memory: 0x1_1000_0000,
        size: 0x10_0000,
        position: 2,
    };
    let expected = [
        (0x00, 0x1110_1AF4),
        // A RAM controller of revision 0.
        (0x08, 0x0500_0000),
        // Memory of 32 bits, and memory of 64 bits that can be prefetched.
        (0x10, 0x3E00_0000),
        (0x18, 0x1000_000C),
        (0x1C, 0x0000_0001),
        (0x2C, 0x1100_1AF4),
        // Pin A, no line.
        (0x3C, 0x0000_0100),
    ];
    let mut function = Function::new();
    for offset in (0..CONFIG_SIZE as u16).step_by(4) {
        let found = expected.iter().find(|(at, _)| *at == offset);
        let word = found.map_or(0, |(_, word)| *word);
        assert_eq!(function.read_config(&place, offset, 4), word, "{offset:#x}");
    }
    for offset in (0..REGISTERS_SIZE).step_by(4) {
        let position = if offset == 8 { 2 } else { 0 };
        assert_eq!(function.read_register(&place, offset, 4), position, "{offset:#x}");
    }
    assert!(!function.level());
}

/// Registers of Virtio 1.2, 4.2.2, that a driver may read, as they are after a reset (4.2.2.1).
const VIRTIO: [(u64, u32); 14] = [
    (0x000, 0x7472_6976),
    (0x004, 2),
    (0x008, 2),
    (0x00C, 0x484B_4C42),
    // VIRTIO_BLK_F_RO, in the lower half of the features.
    (0x010, 1 << 5),
    (0x034, 64),
    (0x044, 0),
    (0x060, 0),
    (0x070, 0),
    // No shared memory: length and base are all ones.
    (0x0B0, u32::MAX),
    (0x0B4, u32::MAX),
    (0x0B8, u32::MAX),
    (0x0BC, u32::MAX),
    (0x0FC, 0),
];

/// Compares the registers of each queue.
fn is_reset(window: &Window<2>) {
    for (offset, value) in VIRTIO {
        assert_eq!(window.read(offset, 4, |_, _| {}), value.into(), "{offset:#x}");
    }
}

#[test]
fn the_registers_of_a_virtio_window_are_those_of_the_standard_after_each_reset() {
    let mut window = Window::<2>::new(2, 1 << 5, 64);
    is_reset(&window);
    // A driver writes status, features and a queue until the queue is ready.
    for (offset, value) in [
        (0x070, 1),
        (0x070, 3),
        (0x014, 1),
        (0x024, 1),
        (0x020, 1),
        (0x070, 11),
        (0x030, 1),
        (0x038, 8),
        (0x044, 1),
        (0x070, 15),
    ] {
        window.write(offset, 4, value);
    }
    let read = |offset| window.read(offset, 4, |_, _| {});
    assert_eq!((read(0x010), read(0x044), read(0x070)), (1, 1, 15));
    window.interrupt.raise(1);
    assert_eq!(window.write(0x070, 4, 0), Effect::Reset);
    is_reset(&window);
    for queue in [1, 0] {
        window.write(0x030, 4, queue);
        is_reset(&window);
    }
}
