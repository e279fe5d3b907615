// SPDX-License-Identifier: Apache-2.0
//! 32-bit programs under a 64-bit kernel. An instruction of AArch32 state at EL0 that traps to the hypervisor
//! (waiting, emulated registers) goes on at the right instruction. It may be 16 or 32 bits long, conditional
//! or in an IT block. Exceptions that belong to the kernel come to its vector for such programs.
//!
//! WFI in an IT block is left out: QEMU 7.2 gives the hypervisor the IT state of the instruction after it.
//! Every piece of code ends with an exception. Waiting ends with the virtual timer that ends a run, because
//! interrupts are masked.

use bulkhead_guest::report::Report;
use bulkhead_guest::vm::bus;
use bulkhead_guest::vm::exception::class;
use bulkhead_guest::vm::register::Register;
use bulkhead_guest::vm::sandbox::{NARROW_CODE, NARROW_DEVICES, Sandbox};
use bulkhead_guest::vm::{gic, pl011};

use crate::{Level, start};

/// Exception classes of AArch32 state: SVC, a trapped MCR or MRC of CP15, BKPT.
const SVC32: u64 = 0x11;
const CP15: u64 = 0x03;
const BKPT32: u64 = 0x38;
/// The vector of a synchronous exception from AArch32 state.
const VECTOR: u64 = 12;
/// r1 and r2 at the start.
const R1: u64 = 0x55;
const R2: u64 = 0x77;

/// Code, and what is to be seen at its end: exception class, offset of the instruction it came to, r1, r2.
struct Program {
    name: &'static str,
    t32: bool,
    words: &'static [u32],
    class: u64,
    offset: u64,
    registers: [u64; 2],
}

/// Returns two T32 instructions of 16 bits each as one word.
const fn pair(first: u32, second: u32) -> u32 {
    second << 16 | first
}

const PROGRAMS: &[Program] = &[
    Program {
        name: "A32: MOV, WFI, ADD, SVC",
        t32: false,
        words: &[0xE3A0_1002, 0xE320_F003, 0xE281_1003, 0xEF00_0005],
        class: SVC32,
        offset: 16,
        registers: [5, R2],
    },
    Program {
        name: "A32: CMP r0, r0, WFINE, ADD, SVC",
        t32: false,
        words: &[0xE150_0000, 0x1320_F003, 0xE281_1003, 0xEF00_0005],
        class: SVC32,
        offset: 16,
        registers: [R1 + 3, R2],
    },
    Program {
        name: "T32: NOP, WFI, MOVS, ADDS, SVC",
        t32: true,
        words: &[pair(0xBF00, 0xBF30), pair(0x2102, 0x3103), pair(0xDF05, 0xBF00)],
        class: SVC32,
        offset: 10,
        registers: [5, R2],
    },
    Program {
        name: "T32: WFI.W, MOVS, SVC",
        t32: true,
        words: &[pair(0xF3AF, 0x8003), pair(0x2102, 0xDF05)],
        class: SVC32,
        offset: 8,
        registers: [2, R2],
    },
    Program {
        name: "A32: UDF",
        t32: false,
        words: &[0xE7F0_00F0],
        class: class::UNKNOWN,
        offset: 0,
        registers: [R1, R2],
    },
    Program {
        name: "T32: BKPT",
        t32: true,
        words: &[pair(0xBE01, 0xBF00)],
        class: BKPT32,
        offset: 0,
        registers: [R1, R2],
    },
    Program {
        name: "A32: HVC",
        t32: false,
        words: &[0xE140_0070],
        class: class::UNKNOWN,
        offset: 0,
        registers: [R1, R2],
    },
    Program {
        name: "A32: MRC of SCTLR",
        t32: false,
        words: &[0xEE11_1F10],
        class: class::UNKNOWN,
        offset: 0,
        registers: [R1, R2],
    },
    Program {
        name: "A32: MRC of TPIDRURW, then of CNTKCTL",
        t32: false,
        words: &[0xEE0D_2F50, 0xEE1D_1F50, 0xEE1E_1F11],
        class: class::UNKNOWN,
        offset: 8,
        registers: [R2, R2],
    },
];

pub fn run(report: &mut Report, sandbox: &mut Sandbox) {
    if Register::PFR0.read() & 0xF != 2 {
        report.skip("32-bit programs", "the CPU has no AArch32 state");
        return;
    }
    for program in PROGRAMS {
        check(report, sandbox, program);
    }
    counter(report, sandbox);
    emulated(report, sandbox);
}

fn check(report: &mut Report, sandbox: &mut Sandbox, program: &Program) {
    let start = start(Level::El0, [R1, R2, 0]);
    let outcome = sandbox.run_narrow(program.words, program.t32, &start);
    report.equal(
        program.name,
        (outcome.vector, outcome.class()),
        (VECTOR, program.class),
    );
    // The return address of SVC is after it; the offsets above say so.
    report.equal("  where", outcome.pc.wrapping_sub(NARROW_CODE), program.offset);
    let [_, r1, r2, ..] = outcome.general;
    report.equal("  r1 and r2", [r1, r2], program.registers);
}

/// `MRRC p15, 1, r1, r2, c14`: the virtual counter, which this kernel does not let programs read.
fn counter(report: &mut Report, sandbox: &mut Sandbox) {
    let start = start(Level::El0, [R1, R2, 0]);
    let outcome = sandbox.run_narrow(&[0xEC52_1F1E], false, &start);
    let seen = (
        outcome.vector,
        outcome.class() == CP15 || outcome.class() == CP15 + 1,
    );
    report.equal("A32: the counter is the kernel's to give", seen, (VECTOR, true));
}

/// Registers of virtual devices: loads and stores of a word, a halfword and a byte, in 16 and in 32 bits.
fn emulated(report: &mut Report, sandbox: &mut Sandbox) {
    let priorities = gic::DISTRIBUTOR + gic::offset::PRIORITY + 64;
    bus::write_u32(priorities, 0x2040_6080);
    let mut load = |name: &str, words: &[u32], t32: bool, address: u64, want: u64, length: u64| {
        let start = start(Level::El0, [R1, NARROW_DEVICES + address, 0]);
        let outcome = sandbox.run_narrow(words, t32, &start);
        let [_, r1, ..] = outcome.general;
        report.equal(
            name,
            (outcome.class(), outcome.pc.wrapping_sub(NARROW_CODE), r1),
            (SVC32, length, want),
        );
    };
    let word = u64::from(bus::read_u32(priorities));
    load(
        "A32: LDR of an emulated register",
        &[0xE592_1000, 0xEF00_0000],
        false,
        priorities,
        word,
        8,
    );
    load(
        "T32: LDR of it, 16 bits",
        &[pair(0x6811, 0xDF00)],
        true,
        priorities,
        word,
        4,
    );
    load(
        "T32: LDRB of it, 16 bits",
        &[pair(0x7811, 0xDF00)],
        true,
        priorities,
        word & 0xFF,
        4,
    );
    load(
        "T32: LDR.W of it",
        &[pair(0xF8D2, 0x1000), pair(0xDF00, 0xBF00)],
        true,
        priorities,
        word,
        6,
    );
    // LDRSB r1, [r2, #3]
    load(
        "A32: LDRSB of it",
        &[0xE1D2_10D3, 0xEF00_0000],
        false,
        priorities,
        0x20,
        8,
    );
    let flags = u64::from(bus::read_u32(pl011::BASE + 0x18));
    load(
        "T32: LDR of the UART's flags",
        &[pair(0x6811, 0xDF00)],
        true,
        pl011::BASE + 0x18,
        flags,
        4,
    );
    // CMP r0, r0; ITE EQ; LDREQ r1, [r2]; MOVNE r1, #9; SVC.
    let block = [pair(0x4280, 0xBF0C), pair(0x6811, 0x2109), pair(0xDF00, 0xBF00)];
    load(
        "T32: LDR of it in an IT block",
        &block,
        true,
        priorities,
        word,
        10,
    );
    stored(report, sandbox, priorities);
}

fn stored(report: &mut Report, sandbox: &mut Sandbox, priorities: u64) {
    // STRB r1, [r2, #1]; SVC.
    let start = start(Level::El0, [0xF8, NARROW_DEVICES + priorities, 0]);
    let outcome = sandbox.run_narrow(&[pair(0x7051, 0xDF00)], true, &start);
    report.equal(
        "T32: STRB to it, 16 bits",
        (
            outcome.class(),
            outcome.pc.wrapping_sub(NARROW_CODE),
            bus::read_u32(priorities),
        ),
        (SVC32, 4, 0x2040_F880),
    );
}
