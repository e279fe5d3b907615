// SPDX-License-Identifier: Apache-2.0
//! Each privileged instruction in supervisor state and in problem state.

use crate::executor::{self, Input, State};
use crate::random::{Digest, Random};
use bulkhead_guest::powerpc::cpu;
use bulkhead_guest::println;

/// Turns of each instruction, with other registers each time.
const TURNS: u32 = 32;
/// The registers that the instructions name.
const TARGET: u32 = 20;
const FIRST: u32 = 21;
const SECOND: u32 = 22;

/// Values that an instruction's target register may have.
#[derive(Clone, Copy)]
enum Operand {
    /// Any.
    Any,
    /// Any combination of these bits.
    Bits(u32),
    /// Always this value.
    Only(u32),
}

/// An instruction.
struct Case {
    name: &'static str,
    number: u32,
    word: u32,
    operand: Operand,
    /// False if the value that it reads depends on time, or on the kind of board.
    is_stable: bool,
}

const fn case(name: &'static str, number: u32, word: u32, operand: Operand, is_stable: bool) -> Case {
    Case {
        name,
        number,
        word: word | TARGET << 21,
        operand,
        is_stable,
    }
}

/// Returns the field of a register whose number is in two exchanged halves.
const fn halves(number: u32) -> u32 {
    (number & 31) << 16 | (number >> 5) << 11
}

const fn write(number: u32, operand: Operand) -> Case {
    case("mtspr", number, 0x7C00_03A6 | halves(number), operand, true)
}

const fn read(number: u32) -> Case {
    case("mfspr", number, 0x7C00_02A6 | halves(number), Operand::Any, true)
}

const fn read_changing(number: u32) -> Case {
    case("mfspr", number, 0x7C00_02A6 | halves(number), Operand::Any, false)
}

const fn write_device(number: u32, operand: Operand) -> Case {
    case("mtdcr", number, 0x7C00_0386 | halves(number), operand, true)
}

const fn read_device(number: u32, is_stable: bool) -> Case {
    case(
        "mfdcr",
        number,
        0x7C00_0286 | halves(number),
        Operand::Any,
        is_stable,
    )
}

const fn plain(name: &'static str, word: u32) -> Case {
    Case {
        name,
        number: 0,
        word,
        operand: Operand::Any,
        is_stable: true,
    }
}

const fn entry(name: &'static str, word: u32) -> Case {
    plain(name, word | TARGET << 21 | FIRST << 16)
}

/// QEMU 7.2 forgets the zone and the attributes of an entry, and a search that finds nothing leaves
/// its target open.
const fn entry_read(name: &'static str, word: u32) -> Case {
    Case {
        is_stable: false,
        ..entry(name, word)
    }
}

const fn line(name: &'static str, word: u32) -> Case {
    plain(name, word | FIRST << 16 | SECOND << 11)
}

/// CE, EE and DE: bits of MSR after which the program goes on as before. QEMU 7.2 leaves ME as it is.
const HARMLESS: u32 = 0x2_8200;

/// The instructions. Each register is written before it is read, because values after a reset differ.
static CASES: &[Case] = &[
    plain("mfmsr", 0x7C00_00A6 | TARGET << 21),
    case("mtmsr", 0, 0x7C00_0124, Operand::Bits(HARMLESS), true),
    plain("wrtee", 0x7C00_0106 | TARGET << 21),
    plain("wrteei 0", 0x7C00_0146),
    plain("wrteei 1", 0x7C00_8146),
    plain("rfi", 0x4C00_0064),
    plain("rfci", 0x4C00_0066),
    write(26, Operand::Any),
    read(26),
    write(27, Operand::Any),
    read(27),
    write(990, Operand::Any),
    read(990),
    write(991, Operand::Any),
    read(991),
    write(272, Operand::Any),
    read(272),
    write(273, Operand::Any),
    read(273),
    write(274, Operand::Any),
    read(274),
    write(275, Operand::Any),
    read(275),
    write(276, Operand::Any),
    read(276),
    write(277, Operand::Any),
    read(277),
    write(278, Operand::Any),
    read(278),
    write(279, Operand::Any),
    read(279),
    read(287),
    write(945, Operand::Any),
    read(945),
    write(944, Operand::Any),
    read(944),
    write(947, Operand::Any),
    read(947),
    write(953, Operand::Any),
    read(953),
    write(954, Operand::Any),
    read(954),
    write(956, Operand::Any),
    read(956),
    write(1018, Operand::Any),
    read(1018),
    write(1019, Operand::Any),
    read(1019),
    write(980, Operand::Any),
    read(980),
    write(981, Operand::Any),
    read(981),
    write(982, Operand::Only(0)),
    read(982),
    write(984, Operand::Any),
    read_changing(984),
    write(986, Operand::Bits(0xC340_0000)),
    read(986),
    write(987, Operand::Only(0)),
    read_changing(987),
    write(1010, Operand::Only(0)),
    read(1010),
    write(1008, Operand::Any),
    read_changing(1008),
    write(1012, Operand::Any),
    read(1012),
    write(1013, Operand::Any),
    read(1013),
    write(1014, Operand::Any),
    read(1014),
    write(1015, Operand::Any),
    read(1015),
    write_device(0xC0, Operand::Any),
    read_device(0xC0, false),
    write_device(0xC2, Operand::Any),
    read_device(0xC2, true),
    write_device(0xC3, Operand::Any),
    read_device(0xC3, true),
    write_device(0xC4, Operand::Any),
    read_device(0xC4, true),
    write_device(0xC5, Operand::Any),
    read_device(0xC5, true),
    read_device(0xC6, false),
    entry("tlbwe 0", 0x7C00_07A4),
    entry("tlbwe 1", 0x7C00_07A4 | 1 << 11),
    entry_read("tlbre 0", 0x7C00_0764),
    entry_read("tlbre 1", 0x7C00_0764 | 1 << 11),
    entry_read("tlbsx", 0x7C00_0724 | SECOND << 11),
    entry_read("tlbsx.", 0x7C00_0725 | SECOND << 11),
    plain("tlbia", 0x7C00_02E4),
    plain("tlbsync", 0x7C00_046C),
    line("dccci", 0x7C00_038C),
    line("iccci", 0x7C00_078C),
    line("dcbi", 0x7C00_03AC),
];

/// Runs all instructions in supervisor state, and prints a digest of each.
pub fn in_supervisor_state(random: &mut Random) {
    let mut all = Digest::new();
    for case in CASES {
        let mut digest = Digest::new();
        for _ in 0..TURNS {
            let input = registers(random, case);
            prepare(random);
            let state = executor::run(case.word, &input, None);
            tidy();
            note(&mut digest, &state, case.is_stable);
        }
        println!("supervisor: {} {} {:08x}", case.name, case.number, digest.0);
        all.add(digest.0);
    }
    println!("supervisor: {} instructions, {:08x}", CASES.len(), all.0);
}

/// Runs all instructions in problem state: each is a program interrupt, and has no other effect.
pub fn in_problem_state(random: &mut Random) {
    const PROBLEM: u32 = 0x4000;
    const PRIVILEGED: u32 = 0x0400_0000;
    let (mut count, mut wrong) = (0, 0);
    // QEMU 7.2 lets programs use SRR2 and SRR3.
    for case in CASES.iter().filter(|case| !matches!(case.number, 990 | 991)) {
        count += 1;
        for _ in 0..TURNS {
            let input = registers(random, case);
            let state = executor::run(case.word, &input, Some(PROBLEM));
            let is_kept = state.0[..32] == input[..32];
            let [saved0, saved1] = [state.0[37], state.0[38]];
            let is_right = state.vector() == 0x700 && state.0[41] == PRIVILEGED;
            if !is_kept || !is_right || saved0 != executor::CODE || saved1 != PROBLEM {
                wrong += 1;
                println!("problem: {} {}: {:x?}", case.name, case.number, &state.0[36..]);
            }
        }
    }
    println!("problem: {count} instructions, {wrong} wrong");
}

/// Draws registers for an instruction.
fn registers(random: &mut Random, case: &Case) -> Input {
    let mut input = [0; 35];
    for word in &mut input {
        *word = random.draw();
    }
    let target = &mut input[TARGET as usize];
    *target = match case.operand {
        Operand::Any => *target,
        Operand::Bits(bits) => *target & bits,
        Operand::Only(0) if case.number == 982 => executor::vectors(),
        Operand::Only(value) => value,
    };
    if case.name.starts_with("tlbwe") {
        // No page is smaller than 4K, which QEMU 7.2 does not survive, and reserved bits are 0.
        if case.word >> 11 & 1 == 0 {
            *target = *target & 0xFFFF_FFC0 | 0x80;
        }
    }
    if case.name == "dcbi" {
        // The line of the program is not to be lost.
        input[FIRST as usize] = 0x3000;
        input[SECOND as usize] &= 0xFF;
    }
    // A mask of what XER has.
    input[33] &= 0xE000_007F;
    input
}

/// Sets the registers that returns from interrupts go by.
fn prepare(random: &mut Random) {
    cpu::write_spr::<26>(executor::CODE + 4);
    cpu::write_spr::<990>(executor::CODE + 4);
    cpu::write_spr::<27>(random.draw() & 0x0200);
    cpu::write_spr::<991>(random.draw() & 0x0200);
    cpu::write_spr::<980>(0);
    cpu::write_spr::<981>(0);
}

/// Puts the processor back into a state in which the program can go on.
fn tidy() {
    cpu::write_spr::<982>(executor::vectors());
    cpu::write_spr::<986>(0);
    cpu::write_dcr::<0xC2>(0);
}

/// Adds what can be seen of an instruction to a digest.
fn note(digest: &mut Digest, state: &State, is_stable: bool) {
    for (number, word) in state.0.iter().enumerate() {
        // LR is the way to the instruction, and a target may change with time.
        let is_left_out = number == 35 || number == TARGET as usize && !is_stable;
        if !is_left_out {
            digest.add(*word);
        }
    }
}
