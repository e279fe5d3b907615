// SPDX-License-Identifier: Apache-2.0
//! Rows of privileged instructions with all registers, some up to the end of a page, and fetches by random
//! translations.
//!
//! A hypervisor that carries out a row at once has to stop where the processor would: at the end of the page,
//! after which nothing may be mapped.

use crate::executor::{self, Input, Place};
use crate::random::{Digest, Random};
use bulkhead_guest::powerpc::cpu;
use bulkhead_guest::println;

/// Rows without translation, rows at the end of a page, and fetches.
const ROWS: u32 = 2000;
const EDGES: u32 = 500;
const FETCHES: u32 = 1000;
/// Instructions of a row at most. One drawn from a kind can be three of them.
const LONGEST: usize = 12;
/// The page of rows in RAM, its end, and its translated address.
const PAGE: u32 = 0x2000;
const END: u32 = 0x3000;
const TRANSLATED: u32 = 0x5000_0000;
/// TLBHI: 4K, valid. TLBLO: EX and WR, and all rights and zones.
const VALID_4K: u32 = 0xC0;
const EXECUTE_AND_WRITE: u32 = 0x300;
const RIGHTS: u32 = 0x3F0;
/// MSR: problem state, translation of instructions and of data.
const PROBLEM: u32 = 0x4000;
const INSTRUCTIONS: u32 = 0x20;
const DATA: u32 = 0x10;
/// `nop`.
const NOTHING: u32 = 0x6000_0000;
/// Registers that are read and written: SRR0, SRR1, SPRG0 to SPRG7, PID, ESR and DEAR.
const REGISTERS: [u32; 13] = [26, 27, 272, 273, 274, 275, 276, 277, 278, 279, 945, 980, 981];
/// Places of LR, the way to the row, and of ESR and DEAR, which QEMU 7.2 changes at a fetch, too.
const LINK: usize = 35;
const SYNDROME: usize = 41;
const ADDRESS: usize = 42;

/// A row of instructions.
struct Row {
    words: [u32; LONGEST],
    length: usize,
}

impl Row {
    fn draw(random: &mut Random) -> Self {
        let mut row = Self {
            words: [NOTHING; LONGEST],
            length: 0,
        };
        for _ in 0..=random.below(9) {
            row.add(random);
        }
        row
    }

    fn push(&mut self, word: u32) {
        if let Some(place) = self.words.get_mut(self.length) {
            *place = word;
            self.length += 1;
        }
    }

    fn add(&mut self, random: &mut Random) {
        let target = random.below(32) << 21;
        let source = random.below(32) << 16;
        let register = REGISTERS[random.below(REGISTERS.len() as u32) as usize];
        let halves = (register & 31) << 16 | (register >> 5) << 11;
        match random.below(9) {
            0 => self.push(0x7C00_00A6 | target),
            1 => self.push(0x7C00_0146 | random.draw() & 0x8000),
            2 => self.push(0x7C00_0106 | target),
            3 | 4 => self.push(0x7C00_02A6 | halves | target),
            5 | 6 => self.push(0x7C00_03A6 | halves | target),
            // `mfmsr`, `rlwinm` that clears EE, and `mtmsr`, if there is room for all three.
            7 if self.length + 3 <= LONGEST => {
                self.push(0x7C00_00A6 | target);
                self.push(0x5400_045E | target | target >> 5);
                self.push(0x7C00_0124 | target);
            }
            // `addi`.
            _ => self.push(0x3800_0000 | target | source | random.draw() & 0xFFFF),
        }
    }

    fn words(&self) -> &[u32] {
        self.words.get(..self.length).unwrap_or(&[])
    }
}

/// Runs all rows and fetches, and prints a digest of each kind.
pub fn suite(random: &mut Random) {
    let mut digest = Digest::new();
    for _ in 0..ROWS {
        let row = Row::draw(random);
        let code = END - 0x80 + 4 * random.below(32);
        run(random, &mut digest, &row, &Place::real(code));
    }
    println!("rows: {ROWS} without translation, {:08x}", digest.0);
    let mut digest = Digest::new();
    for _ in 0..EDGES {
        map(TRANSLATED, EXECUTE_AND_WRITE, 0);
        cpu::write_spr::<944>(0x5555_5555);
        let row = Row::draw(random);
        let inside = END - PAGE - 4 * row.length as u32;
        let place = Place {
            code: PAGE + inside,
            pc: TRANSLATED + inside,
            state: Some(INSTRUCTIONS | DATA),
        };
        run(random, &mut digest, &row, &place);
    }
    println!("rows: {EDGES} at the end of a page, {:08x}", digest.0);
    fetches(random);
}

/// Maps the page of rows, and no other one.
fn map(address: u32, rights: u32, process: u32) {
    cpu::invalidate_entries();
    cpu::write_spr::<945>(process);
    cpu::write_entry(5, address | VALID_4K, PAGE | rights);
}

fn run(random: &mut Random, digest: &mut Digest, row: &Row, place: &Place) {
    let mut input: Input = [0; 35];
    for word in &mut input {
        *word = random.draw();
    }
    // A mask of what XER has.
    input[33] &= 0xE000_007F;
    cpu::write_spr::<980>(0);
    cpu::write_spr::<981>(0);
    let state = executor::run_row(row.words(), &input, place);
    for (number, word) in state.0.iter().enumerate() {
        let is_of_fetch = place.state.is_some() && matches!(number, SYNDROME | ADDRESS);
        if number != LINK && !is_of_fetch {
            digest.add(*word);
        }
    }
}

/// Fetches an instruction by a random translation, in all modes that translate instructions.
fn fetches(random: &mut Random) {
    let mut digest = Digest::new();
    let [mut done, mut refused, mut misses] = [0_u32; 3];
    for _ in 0..FETCHES {
        map(TRANSLATED, random.draw() & RIGHTS, random.below(3));
        cpu::write_spr::<944>(random.draw());
        // QEMU 7.2 keeps the old rights until PID changes.
        let process = 1 + random.below(2);
        cpu::write_spr::<945>(process ^ 1);
        cpu::write_spr::<945>(process);
        cpu::write_spr::<980>(0);
        cpu::write_spr::<981>(0);
        let place = Place {
            code: PAGE,
            pc: TRANSLATED,
            state: Some(random.draw() & (PROBLEM | DATA) | INSTRUCTIONS),
        };
        let after = executor::run_row(&[NOTHING], &[0; 35], &place);
        match after.vector() {
            0xC00 => done += 1,
            0x400 => {
                refused += 1;
                digest.add(after.0[41]);
            }
            _ => misses += 1,
        }
        // QEMU 7.2 adds a bit of other processors to SRR1, and sets DEAR as for data.
        for word in [after.vector(), after.0[37], after.0[38] & 0xFFFF] {
            digest.add(word);
        }
    }
    println!(
        "rows: {FETCHES} fetches: {done} done, {refused} refused, {misses} misses, {:08x}",
        digest.0
    );
}
