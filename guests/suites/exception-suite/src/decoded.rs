// SPDX-License-Identifier: Apache-2.0
//! Loads and stores of device registers that no syndrome describes: forms with write-back, and pairs. Each of
//! them must do what single loads and stores of the same registers do, and move its base. The bare board does
//! the same by itself.

use bulkhead_guest::println;
use bulkhead_guest::report::Report;
use bulkhead_guest::vm::sandbox::{DEVICES, Outcome, Sandbox};
use bulkhead_guest::vm::{bus, gic, pl011};

use crate::memory::both;
use crate::{Level, start};

/// Two neighbouring registers that keep what is written, of the interrupt controller (finished in the
/// backend) and of the UART (in the kernel: the divisors), and values that they can hold.
const DEVICE_PAIRS: [(&str, u64, [u32; 2]); 2] = [
    (
        "interrupt controller",
        gic::DISTRIBUTOR + gic::offset::PRIORITY + 40,
        [0xA0A0_A0A0, 0xB0C0_B0C0],
    ),
    ("UART", pl011::BASE + 0x24, [0x89AB, 0x15]),
];

/// A form: the data is x2 and x3, the base is x1.
struct Form {
    name: &'static str,
    word: u32,
    /// The distance of the first byte from the base, and the distance by which the base moves.
    distance: (i64, i64),
    /// Bytes of a register, the number of registers.
    shape: (u64, usize),
    signed: bool,
}

const fn form(
    name: &'static str,
    word: u32,
    distance: (i64, i64),
    shape: (u64, usize),
    signed: bool,
) -> Form {
    Form {
        name,
        word,
        distance,
        shape,
        signed,
    }
}

const LOADS: &[Form] = &[
    form("LDR w, post-indexed", 0xB840_4422, (0, 4), (4, 1), false),
    form("LDR w, pre-indexed", 0xB840_4C22, (4, 4), (4, 1), false),
    form("LDRSW, post-indexed", 0xB880_4422, (0, 4), (4, 1), true),
    form("LDRH, post-indexed", 0x7840_2422, (0, 2), (2, 1), false),
    form("LDRB, post-indexed", 0x3840_1422, (0, 1), (1, 1), false),
    form("LDRSB x, pre-indexed", 0x389F_FC22, (-1, -1), (1, 1), true),
    form("LDP", 0x2940_0C22, (0, 0), (4, 2), false),
    form("LDNP", 0x2840_0C22, (0, 0), (4, 2), false),
    form("LDPSW", 0x6940_0C22, (0, 0), (4, 2), true),
    form("LDP, post-indexed", 0x28C1_0C22, (0, 8), (4, 2), false),
    form("LDP, pre-indexed", 0x29FF_0C22, (-8, -8), (4, 2), false),
];
const STORES: &[Form] = &[
    form("STR w, post-indexed", 0xB800_4422, (0, 4), (4, 1), false),
    form("STR w, pre-indexed", 0xB800_4C22, (4, 4), (4, 1), false),
    form("STP", 0x2900_0C22, (0, 0), (4, 2), false),
    form("STNP", 0x2800_0C22, (0, 0), (4, 2), false),
    form("STP, post-indexed", 0x2881_0C22, (0, 8), (4, 2), false),
];

pub fn run(report: &mut Report, sandbox: &mut Sandbox) {
    for (device, address, values) in DEVICE_PAIRS {
        println!("decoded accesses to the {device}:");
        let before = read_pair(address);
        both(|level| {
            // The interrupt controller has no registers of half-words.
            for load in LOADS
                .iter()
                .filter(|load| load.shape.0 != 2 || address >= pl011::BASE)
            {
                write_pair(address, values);
                check_load(report, sandbox, level, (load, address));
            }
            for store in STORES {
                check_store(report, sandbox, level, (store, address, values));
            }
            write_pair(address, values);
            high_registers(report, sandbox, level, address);
        });
        write_pair(address, before);
    }
    both(|level| stack_pointer(report, sandbox, level));
    if !gic::is_version2() {
        both(|level| double_words(report, sandbox, level));
    }
}

fn read_pair(address: u64) -> [u32; 2] {
    [bus::read_u32(address), bus::read_u32(address + 4)]
}

fn write_pair(address: u64, [first, second]: [u32; 2]) {
    bus::write_u32(address, first);
    bus::write_u32(address + 4, second);
}

/// Runs a form. Returns the outcome and the registers that must come out, except for those that are loaded.
fn run_form(
    report: &mut Report,
    sandbox: &mut Sandbox,
    level: Level,
    (form, address, values): (&Form, u64, [u32; 2]),
) -> (Outcome, [u64; 31]) {
    let (distance, moved) = form.distance;
    let base = (DEVICES + address).wrapping_add_signed(-distance);
    let begin = start(level, [base, values[0].into(), values[1].into()]);
    let outcome = sandbox.run(&[form.word], &begin);
    println!("{} at {level:?}:", form.name);
    report.check("comes to its end", outcome.finished());
    let mut expected = begin.general;
    expected[1] = base.wrapping_add_signed(moved);
    (outcome, expected)
}

fn check_load(report: &mut Report, sandbox: &mut Sandbox, level: Level, (form, address): (&Form, u64)) {
    let (outcome, mut expected) = run_form(report, sandbox, level, (form, address, [1, 2]));
    let (size, count) = form.shape;
    for (register, word) in expected[2..].iter_mut().zip(read_pair(address)).take(count) {
        let shift = 64 - 8 * size;
        let high = u64::from(word) << shift;
        *register = if form.signed {
            (high as i64 >> shift) as u64
        } else {
            high >> shift
        };
    }
    report.check("has loaded a value", expected[2] != 0);
    report.check("all registers", outcome.general == expected);
}

fn check_store(
    report: &mut Report,
    sandbox: &mut Sandbox,
    level: Level,
    (form, address, values): (&Form, u64, [u32; 2]),
) {
    write_pair(address, [0, 0]);
    let (outcome, expected) = run_form(report, sandbox, level, (form, address, values));
    report.check("all registers", outcome.general == expected);
    let mut stored = values;
    if form.shape.1 == 1 {
        stored[1] = 0;
    }
    report.equal("the device has the values", read_pair(address), stored);
}

/// Registers that an exception handler saves only if it must: LDR w21, [x20], #4.
fn high_registers(report: &mut Report, sandbox: &mut Sandbox, level: Level, address: u64) {
    let mut begin = start(level, [0; 3]);
    begin.general[20] = DEVICES + address;
    let outcome = sandbox.run(&[0xB840_4695], &begin);
    println!("x20 and x21 at {level:?}:");
    report.check("comes to its end", outcome.finished());
    let mut expected = begin.general;
    expected[20] += 4;
    expected[21] = bus::read_u32(address).into();
    report.check("all registers", outcome.general == expected);
}

/// MOV x4, sp; MOV sp, x1; LDR w2, [sp], #8; MOV x1, sp; MOV sp, x4. The stack pointer must be aligned to 16.
fn stack_pointer(report: &mut Report, sandbox: &mut Sandbox, level: Level) {
    for address in [gic::DISTRIBUTOR + gic::offset::PRIORITY + 48, pl011::BASE + 0x30] {
        let begin = start(level, [DEVICES + address, 0, 0]);
        let code = [0x9100_03E4, 0x9100_003F, 0xB840_87E2, 0x9100_03E1, 0x9100_009F];
        let outcome = sandbox.run(&code, &begin);
        println!("the stack pointer as a base at {level:?}:");
        report.check("comes to its end", outcome.finished());
        report.equal("it has moved", outcome.general[1], DEVICES + address + 8);
        report.equal("the value", outcome.general[2], u64::from(bus::read_u32(address)));
    }
}

/// STR x2, [x1], #8 and LDP x2, x3, [x1] on GICD_IROUTER of lines 40 and 41: any CPU instead of the first
/// one.
fn double_words(report: &mut Report, sandbox: &mut Sandbox, level: Level) {
    const ROUTER: u64 = gic::DISTRIBUTOR + 0x6000 + 8 * 40;
    const ANY: u64 = 1 << 31;
    println!("double words at {level:?}:");
    let begin = start(level, [DEVICES + ROUTER, ANY, 0]);
    // The store twice, back to the first one by LDP x2, x3, [x1, #-16]!
    let outcome = sandbox.run(&[0xF800_8422, 0xF800_8422, 0xA9FF_0C22], &begin);
    report.check("comes to its end", outcome.finished());
    let mut expected = begin.general;
    expected[3] = ANY;
    report.check("all registers", outcome.general == expected);
    let begin = start(level, [DEVICES + ROUTER, 0, 0]);
    // STP x2, x3, [x1]: as it was.
    let outcome = sandbox.run(&[0xA900_0C22], &begin);
    report.check("comes to its end", outcome.finished());
    report.equal("the first router", bus::read_u32(ROUTER), 0);
}
