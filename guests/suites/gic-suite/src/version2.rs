// SPDX-License-Identifier: Apache-2.0
//! Features that only a GICv2 has (Arm IHI 0048B): identification, lists of targets, software-generated
//! interrupts that stay apart by sender, and a CPU interface in memory.

use bulkhead_guest::report::Report;
use bulkhead_guest::vm::gic::{self, DISTRIBUTOR, INTERFACE, offset};
use bulkhead_guest::vm::{bus, is_hypervised};

use crate::{FREE, is_quiet, take};

const TARGETS: u64 = DISTRIBUTOR + 0x800;
const SEND: u64 = DISTRIBUTOR + 0xF00;
const CLEAR_SENT: u64 = DISTRIBUTOR + 0xF10;
const SET_SENT: u64 = DISTRIBUTOR + 0xF20;
/// `GICC_IAR`, `GICC_EOIR`, `GICC_IIDR`.
const ACKNOWLEDGE: u64 = INTERFACE + 0xC;
const END: u64 = INTERFACE + 0x10;
const IDENTIFICATION: u64 = INTERFACE + 0xFC;
/// The software-generated interrupt of the tests.
const SGI: u32 = 8;

pub fn run(report: &mut Report) {
    identification(report);
    interface(report);
    targets(report);
    senders(report);
    filters(report);
}

fn cpus() -> u32 {
    (bus::read_u32(DISTRIBUTOR + offset::TYPE) >> 5 & 7) + 1
}

fn identification(report: &mut Report) {
    let version = |offset| bus::read_u32(DISTRIBUTOR + offset) >> 4 & 0xF;
    report.equal("GICD_PIDR2: architecture 2", version(0xFE8), 2);
    report.equal("GICD_TYPER: two CPUs", cpus(), 2);
    report.equal(
        "GICD_CTLR: on",
        bus::read_u32(DISTRIBUTOR + offset::CONTROL) & 3,
        1,
    );
    report.equal(
        "GICC_IIDR: architecture 2",
        bus::read_u32(IDENTIFICATION) >> 16 & 0xF,
        2,
    );
}

fn interface(report: &mut Report) {
    for mask in [0xF0, 0x80, 0x08, 0xFF] {
        gic::set_mask(mask);
        report.equal("GICC_PMR holds its bits", gic::mask() & 0xF8, mask & 0xF8);
    }
    gic::set_binary_point(5);
    report.equal("GICC_BPR holds its value", gic::binary_point(), 5);
    gic::set_binary_point(0);
    report.check("GICC_BPR has a smallest value", gic::binary_point() <= 3);
    report.equal("GICC_RPR: nothing runs", gic::running_priority(), 0xFF);
    report.equal("GICC_HPPIR: nothing pending", gic::highest_pending(), 1023);
}

fn targets(report: &mut Report) {
    report.equal(
        "GICD_ITARGETSR: private ones are its own",
        bus::read_u32(TARGETS),
        0x0101_0101,
    );
    bus::write_u32(TARGETS, 0);
    report.equal("and stay so", bus::read_u32(TARGETS), 0x0101_0101);
    let line = TARGETS + u64::from(FREE);
    bus::write_u32(line, 0x0203_0001);
    report.equal("GICD_ITARGETSR: word written", bus::read_u32(line), 0x0203_0001);
    let bytes = [0, 1, 2, 3].map(|i| bus::read_u8(line + i));
    report.equal("GICD_ITARGETSR: bytes read", bytes, [1, 0, 3, 2]);
    gic::enable(FREE + 1);
    gic::set_pending(FREE + 1);
    report.check("a line without a target does not come", is_quiet());
    bus::write_u8(line + 1, 1);
    report.equal("until it has one", take(), Some(FREE + 1));
    gic::disable(FREE + 1);
    bus::write_u32(line, 0x0101_0101);
}

/// Checks that the interrupt of each sender is an interrupt of its own.
fn senders(report: &mut Report) {
    gic::enable(SGI);
    let register = SET_SENT + u64::from(SGI);
    bus::write_u8(register, 0b11);
    report.equal("GICD_SPENDSGIR: pending by sender", bus::read_u8(register), 0b11);
    report.check("pending", gic::is_pending(SGI));
    let mut seen = [0; 2];
    for value in &mut seen {
        *value = bus::read_u32(ACKNOWLEDGE);
        bus::write_u32(END, *value);
    }
    seen.sort_unstable();
    report.equal("GICC_IAR: one of each sender", seen, [SGI, SGI | 1 << 10]);
    report.check("and no more", is_quiet());
    bus::write_u8(register, 0b11);
    bus::write_u8(CLEAR_SENT + u64::from(SGI), 0b01);
    report.equal("GICD_CPENDSGIR: one taken back", bus::read_u8(register), 0b10);
    report.equal("the other comes", take(), Some(SGI));
    report.equal("with its sender", gic::sender(SGI), 1);
    // QEMU's own distributor lets these registers do it.
    if is_hypervised() {
        bus::write_u32(DISTRIBUTOR + offset::SET_PENDING, 1 << SGI);
    }
    report.check("GICD_ISPENDR does not make one pending", is_quiet());
    gic::send(SGI, 1);
    gic::send(SGI, 1);
    report.equal("sent twice", take(), Some(SGI));
    report.check("is once", is_quiet());
    gic::disable(SGI);
}

/// `GICD_SGIR.TargetListFilter`.
fn filters(report: &mut Report) {
    gic::enable(SGI);
    bus::write_u32(SEND, 2 << 24 | SGI);
    report.equal("to oneself", take(), Some(SGI));
    bus::write_u32(SEND, 1 << 24 | SGI);
    report.check("to the others", is_quiet());
    bus::write_u32(SEND, SGI);
    report.check("to an empty list", is_quiet());
    gic::disable(SGI);
}
