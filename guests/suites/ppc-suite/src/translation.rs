// SPDX-License-Identifier: Apache-2.0
//! Random translations, and accesses by them in all modes.
//!
//! Entries never overlap, because the processor leaves open what happens then. Each has 16M of addresses of
//! its own, and leads into a window of RAM that nothing else uses. An access is a load or a store in a random
//! mode, process and setting of the zones.

use crate::executor::{self, CODE};
use crate::random::{Digest, Random};
use bulkhead_guest::powerpc::cpu;
use bulkhead_guest::println;

/// Entries of a map, besides the one for the instruction.
const ENTRIES: u32 = 8;
/// Accesses by a map.
const ACCESSES: u32 = 8;
/// Physical addresses that entries lead to, and their number.
const WINDOW: u32 = 0x0040_0000;
const WINDOW_SIZE: u32 = 0x0040_0000;
/// The first address that is translated.
const FIRST: u32 = 0x4000_0000;
/// Sizes of pages: 4K to 1M, as numbers of the field.
const SIZES: u32 = 5;
/// TLBHI.V; TLBLO.EX and WR.
const VALID: u32 = 0x40;
const EXECUTE_AND_WRITE: u32 = 0x300;
/// MSR: problem state, translation of instructions and of data.
const PROBLEM: u32 = 0x4000;
const INSTRUCTIONS: u32 = 0x20;
const DATA: u32 = 0x10;
/// `lwz r20, 0(r21)` and `stw r20, 0(r21)`.
const LOAD: u32 = 0x8295_0000;
const STORE: u32 = 0x9295_0000;

/// Maps after which a digest is printed.
const REPORTS: [u32; 3] = [500, 5_000, 100_000];

/// Makes maps and accesses, and prints digests of all of them.
pub fn suite(random: &mut Random) {
    let mut digest = Digest::new();
    let mut counts = [0_u32; 4];
    let mut maps = 0;
    for report in REPORTS {
        while maps < report {
            map(random, &mut digest, &mut counts);
            maps += 1;
        }
        let [done, refused, misses, others] = counts;
        println!(
            "translation: {maps} maps: {done} done, {refused} refused, {misses} misses, {others} others, {:08x}",
            digest.0
        );
    }
}

fn map(random: &mut Random, digest: &mut Digest, counts: &mut [u32; 4]) {
    cpu::invalidate_entries();
    let mut sizes = [0; ENTRIES as usize];
    for (slot, size) in (0..ENTRIES).zip(&mut sizes) {
        let number = 1 + random.below(SIZES);
        *size = 1024_u32 << (2 * number);
        let inside = *size - 1;
        let physical = (WINDOW + random.below(WINDOW_SIZE)) & !inside;
        cpu::write_spr::<945>(random.below(4));
        let high = (FIRST + (slot << 24)) | number << 7 | VALID;
        let low = physical | random.draw() & 0x3F0;
        cpu::write_entry(random.below(7) * ENTRIES + slot, high, low);
    }
    // The page of the instruction, for all processes, in a zone that is always open.
    cpu::write_spr::<945>(0);
    cpu::write_entry(
        63,
        CODE & !0xFFF | 1 << 7 | VALID,
        CODE & !0xFFF | EXECUTE_AND_WRITE,
    );
    for _ in 0..ACCESSES {
        let state = random.draw() & (PROBLEM | INSTRUCTIONS | DATA);
        let slot = random.below(ENTRIES);
        let size = sizes[slot as usize];
        let offset = random.below(size + size / 8) & !3;
        let address = if state & DATA == 0 {
            WINDOW + (offset & (WINDOW_SIZE - 1))
        } else {
            FIRST + (slot << 24) + offset
        };
        let process = random.below(4);
        cpu::write_spr::<944>(random.draw() & 0x3FFF_FFFF | 0x4000_0000);
        // QEMU 7.2 keeps the old rights until PID changes.
        cpu::write_spr::<945>(process ^ 1);
        cpu::write_spr::<945>(process);
        let mut input = [0; 35];
        input[20] = random.draw();
        input[21] = address;
        let instruction = if random.below(2) == 0 { LOAD } else { STORE };
        cpu::write_spr::<980>(0);
        cpu::write_spr::<981>(0);
        let after = executor::run(instruction, &input, Some(state));
        let vector = after.vector();
        let kind = match vector {
            0xC00 => 0,
            0x300 => 1,
            0x1100 => 2,
            _ => 3,
        };
        counts[kind] += 1;
        let [target, saved0, saved1] = [after.0[20], after.0[37], after.0[38]];
        for word in [vector, target, saved0, saved1] {
            digest.add(word);
        }
        if matches!(vector, 0x300 | 0x1100) {
            digest.add(after.0[41]);
            digest.add(after.0[42]);
        }
    }
}
