// SPDX-License-Identifier: Apache-2.0
//! A hostile driver of virtio devices: random registers, and rings full of random descriptors that change
//! while they are in use.
//!
//! Bootargs: `windows=N` (1) is the number of its devices, from 0x0b000000 on, and `rounds=N` (200) the
//! number of times that it starts a device and floods it.
#![no_std]
#![no_main]
#![forbid(unsafe_code)]

use core::sync::atomic::{AtomicU32, Ordering};

use bulkhead_guest::random::Random;
use bulkhead_guest::vm::{Machine, bus, psci};
use bulkhead_guest::{arguments, println};

bulkhead_guest::vm_main!(main);

/// The address of the first device, and the distance to the next one.
const BASE: u64 = 0x0b00_0000;
const STRIDE: u64 = 0x1000;
/// Registers (Virtio 1.2, table 4.1).
const FEATURES_SELECT: u64 = 0x024;
const FEATURES: u64 = 0x020;
const QUEUE_SELECT: u64 = 0x030;
const QUEUE_SIZE: u64 = 0x038;
const QUEUE_READY: u64 = 0x044;
const NOTIFY: u64 = 0x050;
const STATUS: u64 = 0x070;
const QUEUE_PLACES: [u64; 3] = [0x080, 0x090, 0x0a0];
/// Words of the rings.
const WORDS: usize = 4096;
/// Descriptors of a queue.
const SIZE: u32 = 64;
/// Offsets of the driver's ring and of the device's ring, after the descriptors.
const DRIVER: u64 = 0x1000;
const DEVICE: u64 = 0x2000;

#[repr(align(4096))]
struct Rings([AtomicU32; WORDS]);

static RINGS: Rings = Rings([const { AtomicU32::new(0) }; WORDS]);

fn main(machine: Machine) {
    let number = |key, default| arguments::number(machine.bootargs(), key, default);
    let (windows, rounds) = (number("windows", 1), number("rounds", 200));
    let mut random = Random::new(99);
    let mut accepted = 0_u64;
    for _ in 0..rounds {
        let device = BASE + STRIDE * random.below(windows);
        wild_registers(device, &mut random);
        accepted += u64::from(flood(device, &mut random));
    }
    println!("virtio-wild: {rounds} rounds, {accepted} with queues");
    psci::system_off()
}

/// Reads and writes registers at random.
fn wild_registers(device: u64, random: &mut Random) {
    for _ in 0..16 {
        let at = device + random.below(0x120);
        match random.below(4) {
            0 => drop(bus::read_u32(at & !3)),
            1 => drop(bus::read_u8(at)),
            2 => bus::write_u8(at, random.draw() as u8),
            _ => bus::write_u32(at & !3, random.draw() as u32),
        }
    }
}

/// Starts the device as a driver does, with rings that make no sense, and changes them while the device
/// looks. Returns whether the device took its first queue.
fn flood(device: u64, random: &mut Random) -> bool {
    let write = |register, value| bus::write_u32(device + register, value);
    for status in [0, 1, 3] {
        write(STATUS, status);
    }
    // Version 1, and some features of the queues: indirect tables, event indices.
    for (half, features) in [(1, 1), (0, random.draw() as u32 & 3 << 28)] {
        write(FEATURES_SELECT, half);
        write(FEATURES, features);
    }
    write(STATUS, 11);
    let rings = core::ptr::from_ref(&RINGS).addr() as u64;
    for queue in 0..2 {
        write(QUEUE_SELECT, queue);
        write(QUEUE_SIZE, SIZE);
        for (register, offset) in QUEUE_PLACES.into_iter().zip([0, DRIVER, DEVICE]) {
            write(register, (rings + offset) as u32);
            write(register + 4, 0);
        }
        write(QUEUE_READY, 1);
    }
    write(QUEUE_SELECT, 0);
    let is_ready = bus::read_u32(device + QUEUE_READY) == 1;
    write(STATUS, 15);
    for _ in 0..4 {
        scribble(rings, random);
        write(NOTIFY, random.below(3) as u32);
        scribble(rings, random);
    }
    is_ready
}

/// Fills the rings with descriptors, half of them inside the own memory.
fn scribble(rings: u64, random: &mut Random) {
    for _ in 0..64 {
        let Some(descriptor) = RINGS.0.chunks_exact(4).nth(random.below(SIZE.into()) as usize) else {
            return;
        };
        let address = if random.below(2) == 0 {
            rings + random.below(0x8000)
        } else {
            random.draw()
        };
        let length = if random.below(8) == 0 {
            random.draw()
        } else {
            random.below(0x400)
        };
        let words = [address, address >> 32, length, random.draw() & 0x003f_0007];
        for (word, value) in descriptor.iter().zip(words) {
            word.store(value as u32, Ordering::Relaxed);
        }
    }
    for (index, word) in RINGS.0.iter().skip(DRIVER as usize / 4).take(40).enumerate() {
        let value = if index == 0 {
            random.below(SIZE.into()) << 16
        } else {
            random.draw() & 0x003f_003f
        };
        word.store(value as u32, Ordering::Release);
    }
}
