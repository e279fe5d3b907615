// SPDX-License-Identifier: Apache-2.0
//! Accesses that do not go through: forms that a syndrome does not describe, holes, fetches and table walks
//! that end where there is no memory. The bare board answers most of them in its own way, so they run under
//! the hypervisor only. The health action must be `inject`.
//!
//! The rule: an access to an emulated register is done exactly if the CPU describes the access (Arm ARM DDI
//! 0487 ESR_ELx.ISV) or the instruction is of a form that is decoded ([`crate::decoded`]), and the access is
//! aligned. An access that is not aligned is an alignment fault, everything else an external abort. Neither
//! changes a register or the device.

use bulkhead_guest::println;
use bulkhead_guest::report::Report;
use bulkhead_guest::vm::exception::class;
use bulkhead_guest::vm::floating_point;
use bulkhead_guest::vm::sandbox::{DEVICES, PROBED, STACK, Sandbox};
use bulkhead_guest::vm::{bus, gic, is_hypervised, pl011};

use crate::{Case, Level, check, class_at, start};

/// Fault status of an abort (ISS bits 5:0).
const STATUS: u64 = 0x3F;
const ADDRESS_SIZE: u64 = 0x00;
const EXTERNAL: u64 = 0x10;
const ALIGNMENT: u64 = 0x21;
const PERMISSION: u64 = 0x0C;
/// ISS bits of a data abort: WnR; FnV.
const WRITE: u64 = 1 << 6;
const FNV: u64 = 1 << 10;

/// Emulated registers: of the interrupt controller (finished in the backend) and of the UART (in the kernel).
const REGISTERS: [(&str, u64); 2] = [
    (
        "interrupt controller",
        DEVICES + gic::DISTRIBUTOR + gic::offset::SET_ENABLE + 4,
    ),
    ("UART", DEVICES + pl011::BASE + 0x24),
];
/// A valid block without a kind: at EL0 too, access flag, inner shareable; a table (D8.3.1).
const BLOCK: u64 = 1 | 1 << 10 | 3 << 8 | 1 << 6 | 1 << 2;
const TABLE: u64 = 3;
/// Guest-physical addresses where the default machine has nothing, and beyond what stage 2 can translate.
const HOLE: u64 = 0x1000;
const BEYOND: u64 = 1 << 41;

/// Forms that are described, so they work: name, word. x1 is the address.
const DESCRIBED: &[(&str, u32)] = &[
    ("LDR w", 0xB940_0022),
    ("LDR x of a word's width: LDRSW", 0xB980_0022),
    ("LDAR", 0x88DF_FC22),
    ("LDTR", 0xB840_0822),
    ("STR of zero", 0xB900_003F),
    ("STLR of zero", 0x889F_FC3F),
    ("PRFM", 0xF980_0020),
    ("DC CIVAC", 0xD50B_7E21),
    ("DC CVAC", 0xD50B_7A21),
    ("IC IVAU", 0xD50B_7521),
];
/// Forms that are not, and are not decoded: name, word, whether it is a store.
const REFUSED: &[(&str, u32, bool)] = &[
    ("LDR that loads its own base", 0xB840_4421, false),
    ("LDP of one register twice", 0x2940_0822, false),
    ("LDR s", 0xBD40_0020, false),
    ("STR d", 0xFD00_0020, true),
    ("STR s, post-indexed", 0xBC00_4420, true),
    ("LDR q", 0x3DC0_0020, false),
    ("LDP q", 0xAD40_0420, false),
    ("LD1", 0x4C40_7020, false),
    ("ST1", 0x4C00_7020, true),
    ("LDXR", 0x885F_7C22, false),
    ("LDAXR", 0x885F_FC22, false),
    ("DC ZVA", 0xD50B_7421, true),
];

pub fn run(report: &mut Report, sandbox: &mut Sandbox) {
    floating_point::enable();
    alignment(report, sandbox);
    if !is_hypervised() {
        report.skip("what only the hypervisor sees", "there is none");
        return;
    }
    emulated(report, sandbox);
    across_pages(report, sandbox);
    unaligned(report, sandbox);
    outside(report, sandbox);
    walks(report, sandbox);
    fetches(report, sandbox);
}

pub fn both(mut action: impl FnMut(Level)) {
    action(Level::El1);
    action(Level::El0);
}

/// Makes one access of form `word` at `address`, which must be an abort with this status.
fn aborts(
    report: &mut Report,
    sandbox: &mut Sandbox,
    level: Level,
    (name, words): (&'static str, &'static [u32]),
    (address, rest): (u64, (u64, u64)),
) {
    let case = Case {
        name,
        words,
        registers: [address, 0, 0],
        class: Some((class::DATA_ABORT, 0)),
        rest,
    };
    let outcome = check(report, sandbox, level, &case);
    report.equal("its address", outcome.address, address);
}

/// Exclusives want alignment everywhere; the guest's own affair.
fn alignment(report: &mut Report, sandbox: &mut Sandbox) {
    both(|level| {
        let access = ("LDXR that is not aligned", &[0x885F_7C22][..]);
        aborts(report, sandbox, level, access, (STACK + 2, (STATUS, ALIGNMENT)));
    });
}

fn emulated(report: &mut Report, sandbox: &mut Sandbox) {
    for (device, address) in REGISTERS {
        println!("registers of the {device}:");
        let before = bus::read_u32(address & 0x3FFF_FFFF);
        both(|level| {
            for (name, word) in DESCRIBED {
                let case = Case {
                    name,
                    words: core::slice::from_ref(word),
                    registers: [address, 0, 0],
                    class: None,
                    rest: (0, 0),
                };
                check(report, sandbox, level, &case);
            }
            for (name, word, store) in REFUSED {
                let write = if *store { WRITE } else { 0 };
                let rest = (STATUS | WRITE | FNV, EXTERNAL | write);
                let access = (*name, core::slice::from_ref(word));
                aborts(report, sandbox, level, access, (address, rest));
            }
        });
        report.equal(
            "the register is as before",
            bus::read_u32(address & 0x3FFF_FFFF),
            before,
        );
    }
}

/// Checks that a pair is refused whose second register is in another page: that page may be anybody's.
fn across_pages(report: &mut Report, sandbox: &mut Sandbox) {
    let last = DEVICES + pl011::BASE + 0xFFC;
    both(|level| {
        let pair = ("pair over the end of a page", &[0x2940_0C22][..]);
        aborts(report, sandbox, level, pair, (last, (STATUS | WRITE, EXTERNAL)));
    });
}

/// Registers are device memory: an unaligned access is an alignment fault, no register is read or written.
fn unaligned(report: &mut Report, sandbox: &mut Sandbox) {
    for (_, register) in REGISTERS {
        both(|level| {
            let load = ("load that is not aligned", &[0xB940_0022][..]);
            let status = STATUS | WRITE;
            aborts(report, sandbox, level, load, (register + 1, (status, ALIGNMENT)));
            let load = ("half-word load that is not aligned", &[0x7940_0022][..]);
            aborts(report, sandbox, level, load, (register + 3, (status, ALIGNMENT)));
            let load = ("pair that is not aligned", &[0xA940_0C22][..]);
            aborts(report, sandbox, level, load, (register, (status, ALIGNMENT)));
            let store = ("store that is not aligned", &[0xB900_003F][..]);
            aborts(
                report,
                sandbox,
                level,
                store,
                (register + 2, (status, ALIGNMENT | WRITE)),
            );
        });
    }
}

/// Checks accesses where the machine has nothing.
fn outside(report: &mut Report, sandbox: &mut Sandbox) {
    for place in [
        0,
        HOLE,
        gic::DISTRIBUTOR - 4,
        pl011::BASE + 0x1000,
        0x3FFF_FFFC,
        0xFF_FFFF_FFFC,
    ] {
        sandbox.look_at(place);
        let address = PROBED + (place & 0x3FFF_FFFF);
        both(|level| {
            let load = ("load where nothing is", &[0xB940_0022][..]);
            aborts(
                report,
                sandbox,
                level,
                load,
                (address, (STATUS | WRITE | FNV, EXTERNAL)),
            );
            let store = ("store where nothing is", &[0xB900_003F][..]);
            aborts(
                report,
                sandbox,
                level,
                store,
                (address, (STATUS | WRITE | FNV, EXTERNAL | WRITE)),
            );
            let pair = ("pair where nothing is", &[0x2940_0C22][..]);
            aborts(
                report,
                sandbox,
                level,
                pair,
                (address, (STATUS | WRITE | FNV, EXTERNAL)),
            );
        });
    }
}

/// Translation tables of the guest's own that lead nowhere.
fn walks(report: &mut Report, sandbox: &mut Sandbox) {
    for (table, what) in [
        (HOLE, "walk through a table where nothing is"),
        (
            gic::DISTRIBUTOR,
            "walk through a table in the interrupt controller",
        ),
        (pl011::BASE, "walk through a table in the UART"),
    ] {
        sandbox.describe(table | TABLE);
        both(|level| {
            aborts(
                report,
                sandbox,
                level,
                (what, &[0xB940_0022]),
                (PROBED, (STATUS | FNV, EXTERNAL)),
            );
        });
    }
    // More than the 40 bits of TCR_EL1.IPS: EL1's own.
    sandbox.describe(BEYOND | BLOCK);
    both(|level| {
        let access = ("output address beyond its size", &[0xB940_0022][..]);
        // Level 1 of the walk.
        aborts(
            report,
            sandbox,
            level,
            access,
            (PROBED, (STATUS, ADDRESS_SIZE | 1)),
        );
    });
    sandbox.describe(BEYOND | TABLE);
    both(|level| {
        let access = ("table beyond its size", &[0xB940_0022][..]);
        aborts(
            report,
            sandbox,
            level,
            access,
            (PROBED, (STATUS, ADDRESS_SIZE | 1)),
        );
    });
}

/// `BR x1` to where no code can be.
fn fetches(report: &mut Report, sandbox: &mut Sandbox) {
    for (descriptor, level, status) in [
        // Executable at EL0 by stage 1; nothing is there, or an emulated device.
        (BLOCK, Level::El0, EXTERNAL),
        // Memory that EL0 may write is never executable at EL1 (D8.4.3): stage 1 says so.
        (BLOCK, Level::El1, PERMISSION | 1),
        (HOLE | TABLE, Level::El0, EXTERNAL),
        (HOLE | TABLE, Level::El1, EXTERNAL),
    ] {
        sandbox.describe(descriptor);
        for offset in [HOLE, gic::DISTRIBUTOR, pl011::BASE] {
            let start = start(level, [PROBED + offset, 0, 0]);
            let outcome = sandbox.run(&[0xD61F_0020], &start);
            report.equal(
                "fetch: class",
                outcome.class(),
                class_at(level, class::INSTRUCTION_ABORT),
            );
            report.equal("fetch: status", outcome.syndrome & STATUS, status);
            report.equal("fetch: program counter", outcome.pc, PROBED + offset);
            report.equal("fetch: address", outcome.address, PROBED + offset);
        }
    }
}
