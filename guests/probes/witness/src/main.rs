// SPDX-License-Identifier: Apache-2.0
//! A VM that watches what is its own: a mebibyte of memory with a pattern, all FP registers, and system
//! registers with values that only it knows. Others run on its CPU. They must not change or see any of this.
//!
//! Bootargs: `seconds=N` (1), after which it switches itself off. Each round fills everything with new
//! values, lets others run, and compares. The program prints `witness: second N, rounds R, differences D`
//! each second.
#![no_std]
#![no_main]
#![forbid(unsafe_code)]

use bulkhead_guest::vm::register::WRITABLE;
use bulkhead_guest::vm::timer::{self, Timer};
use bulkhead_guest::vm::{Machine, RAM_BASE, bus, floating_point, gic};
use bulkhead_guest::{arguments, println};

bulkhead_guest::vm_main!(main);

/// Memory with a pattern: after the program, at the end of 2 MiB.
const MEMORY: u64 = RAM_BASE + 0x10_0000;
/// Bytes of it, and bytes between two words that are looked at in one round.
const SIZE: u64 = 0x10_0000;
const STRIDE: u64 = 4096 + 8;
/// Time others get in a round.
const PAUSE_MICROSECONDS: u64 = 500;

fn main(machine: Machine) {
    let seconds = arguments::number(machine.bootargs(), "seconds", 1);
    gic::init_distributor();
    gic::init_cpu();
    gic::enable(Timer::Virtual.line());
    floating_point::enable();
    let (mut rounds, mut differences) = (0_u64, 0_u64);
    for second in 1..=seconds {
        let end = Timer::Virtual.now() + timer::frequency();
        while Timer::Virtual.now() < end {
            rounds += 1;
            differences += round(rounds);
        }
        println!("witness: second {second}, rounds {rounds}, differences {differences}");
    }
}

/// Fills everything, lets others run, compares; the number of differences.
fn round(seed: u64) -> u64 {
    floating_point::fill(seed);
    for (register, mask) in WRITABLE {
        register.write(pattern(seed) & mask);
    }
    for address in words(seed) {
        bus::write_u64(address, pattern(seed ^ address));
    }
    timer::nap(PAUSE_MICROSECONDS);
    let registers = WRITABLE
        .iter()
        .filter(|(register, mask)| (register.read() ^ pattern(seed)) & mask != 0);
    let memory = words(seed).filter(|address| bus::read_u64(*address) != pattern(seed ^ address));
    u64::from(floating_point::differences(seed)) + registers.count() as u64 + memory.count() as u64
}

/// Returns the words of one round.
fn words(seed: u64) -> impl Iterator<Item = u64> {
    let first = (seed * 64 % STRIDE) & !7;
    (first..SIZE)
        .step_by(STRIDE as usize)
        .map(|offset| MEMORY + offset)
}

fn pattern(seed: u64) -> u64 {
    (seed | 1 << 63).wrapping_mul(0x9E37_79B9_7F4A_7C15)
}
