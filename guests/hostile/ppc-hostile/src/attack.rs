// SPDX-License-Identifier: Apache-2.0
//! The operations.

use crate::executor::{self, CODE, Input};
use bulkhead_guest::powerpc::cpu;
use bulkhead_guest::random::Random;

/// MSR: wait, interrupts of both kinds, problem state, both translations.
const WAIT: u32 = 0x4_0000;
const CRITICAL: u32 = 0x2_0000;
const INTERRUPTS: u32 = 0x8000;
const PROBLEM: u32 = 0x4000;
const TRANSLATIONS: u32 = 0x30;
/// TLBHI: a valid page of 4K. TLBLO: code.
const VALID: u32 = 0x40;
const PAGE_4K: u32 = 0x80;
const EXECUTE: u32 = 0x200;
/// TCR: interrupts of PIT; what the watchdog does last.
const TIMER_INTERRUPT: u32 = 0x0400_0000;
const WATCHDOG_RESET: u32 = 0x3000_0000;
/// Ticks after which the timer ends an operation.
const LONGEST: u32 = 3000;
/// The page of the console.
const CONSOLE: u32 = 0xEF60_0000;
/// `bdnz` to itself, and the place of CTR in the registers.
const TURN: u32 = 0x4200_0000;
const CTR: usize = 34;
/// The register with the address of an access, as a field of RA.
const ADDRESS: usize = 21;
const BY_ADDRESS: u32 = (ADDRESS as u32) << 16;

/// Extended opcodes of the privileged instructions.
const EXTENDED: [u32; 18] = [
    83, 146, 131, 163, 339, 467, 323, 451, 946, 978, 914, 370, 566, 454, 966, 470, 486, 998,
];
const MOVE_TO_SPR: u32 = 467;
const MOVE_FROM_DCR: u32 = 323;
const MOVE_TO_DCR: u32 = 451;
/// `rfi`.
const RETURN: u32 = 0x4C00_0064;
/// Registers that the way back needs: EVPR, DBCR0, TCR, SRR2 and SRR3.
const NEEDED: [u32; 5] = [982, 1010, 986, 990, 991];
/// Loads, stores and `dcbz` with two registers for the address.
const INDEXED: [u32; 12] = [20, 23, 87, 119, 150, 151, 215, 247, 534, 662, 918, 1014];

/// Puts the machine back: the page of the instruction, and a timer that ends every operation.
pub fn mend() {
    cpu::invalidate_entries();
    cpu::write_spr::<944>(0x4000_0000);
    cpu::write_spr::<945>(0);
    cpu::write_entry(63, CODE | PAGE_4K | VALID, CODE | EXECUTE);
    cpu::write_dcr::<0xC2>(0);
    cpu::write_dcr::<0xC0>(u32::MAX);
    cpu::write_spr::<986>(TIMER_INTERRUPT);
    cpu::write_spr::<984>(u32::MAX);
    cpu::write_spr::<987>(LONGEST);
}

fn word(random: &mut Random) -> u32 {
    random.draw() as u32
}

/// Returns a word that may be an instruction: any but words of primary opcodes 56 to 62 besides 59, which are
/// no instructions of a 405. QEMU 7.2 decodes some of them (vectors, opcode 60), and ends at their exception.
fn any(random: &mut Random) -> u32 {
    let instruction = word(random);
    match instruction >> 26 {
        56..=58 | 60..=62 => instruction ^ 1 << 31,
        _ => instruction,
    }
}

fn below(random: &mut Random, limit: u32) -> u32 {
    random.below(limit.into()) as u32
}

fn choose(random: &mut Random, words: &[u32]) -> u32 {
    words[below(random, words.len() as u32) as usize]
}

/// Returns random registers, none of which lets a processor wait for ever.
fn registers(random: &mut Random) -> Input {
    let mut input = [0; 35];
    input.fill_with(|| word(random) & !WAIT);
    input
}

/// Returns an instruction of primary opcode 31, with random registers.
fn extended(random: &mut Random, opcode: u32) -> u32 {
    31 << 26 | word(random) & 0x03FF_F801 | opcode << 1
}

fn run(instruction: u32, input: &Input, state: u32) -> u32 {
    executor::run(instruction, input, Some(state)).vector()
}

/// Executes any word in problem state.
pub fn any_word(random: &mut Random) -> u32 {
    let (instruction, input) = (any(random), registers(random));
    run(instruction, &input, PROBLEM | TRANSLATIONS | INTERRUPTS)
}

/// Executes a privileged instruction in supervisor state.
pub fn privileged(random: &mut Random) -> u32 {
    let opcode = choose(random, &EXTENDED);
    let mut instruction = extended(random, opcode);
    let spr = instruction >> 16 & 31 | (instruction >> 11 & 31) << 5;
    if below(random, 20) == 0 || opcode == MOVE_TO_SPR && NEEDED.contains(&spr) {
        instruction = RETURN;
    }
    let input = registers(random);
    let modes = word(random) & TRANSLATIONS;
    run(instruction, &input, modes | INTERRUPTS)
}

/// Reads or writes a device control register of any number.
pub fn device_register(random: &mut Random) -> u32 {
    let opcode = choose(random, &[MOVE_FROM_DCR, MOVE_TO_DCR]);
    let instruction = extended(random, opcode);
    let input = registers(random);
    run(instruction, &input, INTERRUPTS | CRITICAL)
}

/// Loads or stores at any address that is no RAM of the VM's.
pub fn memory(random: &mut Random) -> u32 {
    let mut input = registers(random);
    input[ADDRESS] |= 0x0100_0000;
    if input[ADDRESS] & !0xFFF == CONSOLE {
        input[ADDRESS] ^= 0x0800_0000;
    }
    let target = below(random, 20) << 21;
    let instruction = if below(random, 3) == 0 {
        input[0] = 0;
        31 << 26 | target | BY_ADDRESS | choose(random, &INDEXED) << 1
    } else {
        (32 + below(random, 16)) << 26 | target | BY_ADDRESS
    };
    run(instruction, &input, INTERRUPTS)
}

/// Makes random entries, zones and processes, and an access by them in any mode. They lead to RAM that
/// nothing uses, or out of it.
pub fn translation(random: &mut Random) -> u32 {
    let mut address = 0;
    for _ in 0..4 {
        let size = below(random, 8);
        let high = word(random) & 0xFFFF_FC7F | 0x8000_0000 | size << 7;
        let mut low = word(random) & 0x007F_FFFF | 0x0040_0000;
        if size == 7 || below(random, 4) == 0 {
            low = word(random) | 0x0100_0000;
        }
        cpu::write_spr::<945>(below(random, 4));
        cpu::write_entry(below(random, 63), high, low);
        address = high & !0xFFF | word(random) & 0x3FFC;
    }
    cpu::write_spr::<945>(0);
    cpu::write_entry(63, CODE | PAGE_4K | VALID, CODE | EXECUTE);
    cpu::write_spr::<944>(word(random) & 0x3FFF_FFFF | 0x4000_0000);
    cpu::write_spr::<945>(below(random, 4));
    let mut input = registers(random);
    input[ADDRESS] = address;
    let instruction = (32 + below(random, 14)) << 26 | below(random, 20) << 21 | BY_ADDRESS;
    let state = word(random) & PROBLEM | TRANSLATIONS | INTERRUPTS;
    run(instruction, &input, state)
}

/// Sets the timers in any way, and runs a loop that lets interrupts through or not.
pub fn timers(random: &mut Random) -> u32 {
    cpu::write_spr::<987>(word(random) & 0xFFF);
    cpu::write_spr::<984>(word(random));
    cpu::write_spr::<986>(word(random) & !WATCHDOG_RESET);
    cpu::write_spr::<987>(word(random) & 0xFFFF);
    let mut input = registers(random);
    input[CTR] = 1 + below(random, 2000);
    let state = word(random) & (CRITICAL | INTERRUPTS);
    run(TURN, &input, state)
}

/// Executes any word or any privileged instruction, with any registers, in any mode.
pub fn wild(random: &mut Random) {
    let instruction = match below(random, 3) {
        0 => any(random),
        1 => 0x4C00_0066,
        _ => {
            let opcode = choose(random, &EXTENDED);
            extended(random, opcode)
        }
    };
    let mut input = [0; 35];
    input.fill_with(|| word(random));
    executor::run(instruction, &input, Some(word(random)));
}
