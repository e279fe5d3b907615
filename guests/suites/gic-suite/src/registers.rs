// SPDX-License-Identifier: Apache-2.0
//! Registers: identification, widths of access, and that they hold what was written.

use bulkhead_guest::report::Report;
use bulkhead_guest::vm::gic::{self, offset};
use bulkhead_guest::vm::{self, bus, psci};

use crate::{FREE, version2};

pub fn run(report: &mut Report) {
    let lines = gic::lines();
    report.check("GICD_TYPER: at least 160 lines", (160..=1024).contains(&lines));
    if gic::is_version2() {
        version2::run(report);
    } else {
        distributor_identification(report);
        redistributor_identification(report);
        cpu_interface(report);
    }
    bits(report);
    fields(report);
    widths(report);
    reserved(report);
    if !gic::is_version2() {
        routes(report);
        private_of_the_other(report);
    }
}

fn distributor_identification(report: &mut Report) {
    report.equal(
        "GICD_PIDR2: architecture 3",
        bus::read_u32(gic::DISTRIBUTOR + offset::PERIPHERAL_ID2) >> 4 & 0xF,
        3,
    );
    let control = bus::read_u32(gic::DISTRIBUTOR + offset::CONTROL);
    report.equal(
        "GICD_CTLR: affinity routing, one security state",
        control & 0x50,
        0x50,
    );
    report.equal(
        "GICD_CTLR: group 1 on, no write pending",
        control & 0x8000_0002,
        2,
    );
    // ID bits: enough for every line (IHI 0069 section 12.9.38, IDbits).
    let id_bits = (bus::read_u32(gic::DISTRIBUTOR + offset::TYPE) >> 19 & 0x1F) + 1;
    report.check(
        "GICD_TYPER: identifiers are wide enough",
        1_u32 << id_bits >= gic::lines(),
    );
}

fn redistributor_identification(report: &mut Report) {
    let this = gic::redistributor(0);
    let kind = bus::read_u64(this + offset::REDISTRIBUTOR_TYPE);
    report.equal("GICR_TYPER: affinity 0.0.0.0", kind >> 32, 0);
    report.equal("GICR_TYPER: processor 0", kind >> 8 & 0xFFFF, 0);
    let low = bus::read_u32(this + offset::REDISTRIBUTOR_TYPE);
    let high = bus::read_u32(this + offset::REDISTRIBUTOR_TYPE + 4);
    report.equal("GICR_TYPER: halves", u64::from(high) << 32 | u64::from(low), kind);
    let next = bus::read_u64(gic::redistributor(1) + offset::REDISTRIBUTOR_TYPE);
    report.equal("GICR_TYPER: affinity of the next", next >> 32, 1);
    report.equal(
        "GICR_TYPER: only the last says so",
        (kind >> 4 & 1, next >> 4 & 1),
        (0, 1),
    );
    report.equal(
        "GICR_PIDR2: architecture 3",
        bus::read_u32(this + offset::PERIPHERAL_ID2) >> 4 & 0xF,
        3,
    );
    report.equal("GICR_WAKER: awake", bus::read_u32(this + offset::WAKER) & 6, 0);
}

fn cpu_interface(report: &mut Report) {
    report.equal("ICC_SRE_EL1: system registers on", gic::system_registers() & 1, 1);
    gic::set_system_registers(false);
    report.equal("ICC_SRE_EL1: they stay on", gic::system_registers() & 1, 1);
    let control = gic::interface_control();
    report.check("ICC_CTLR_EL1: at least 5 priority bits", control >> 8 & 7 >= 4);
    for mask in [0xF0, 0x80, 0x08, 0xFF] {
        gic::set_mask(mask);
        report.equal("ICC_PMR_EL1 holds its bits", gic::mask() & 0xF8, mask & 0xF8);
    }
    gic::set_binary_point(5);
    report.equal("ICC_BPR1_EL1 holds its value", gic::binary_point(), 5);
    gic::set_binary_point(0);
    report.check("ICC_BPR1_EL1 has a smallest value", gic::binary_point() <= 3);
    gic::set_end_mode(true);
    report.equal("ICC_CTLR_EL1.EOImode on", gic::interface_control() & 2, 2);
    gic::set_end_mode(false);
    report.equal("ICC_CTLR_EL1.EOImode off", gic::interface_control() & 2, 0);
    gic::set_group_enable(false);
    report.equal("ICC_IGRPEN1_EL1 off", gic::group_enable() & 1, 0);
    gic::set_group_enable(true);
    report.equal("ICC_IGRPEN1_EL1 on", gic::group_enable() & 1, 1);
    report.equal("ICC_RPR_EL1: nothing runs", gic::running_priority(), 0xFF);
    report.equal("ICC_HPPIR1_EL1: nothing pending", gic::highest_pending(), 1023);
}

/// Set and clear registers of one interrupt of each kind; the neighbours stay as they are.
fn bits(report: &mut Report) {
    for interrupt in [5, 20, FREE, FREE + 17] {
        // Software-generated interrupts of a GIC-400 are enabled for good.
        let always = interrupt < 16 && gic::is_version2();
        gic::enable(interrupt);
        report.check(
            "enable",
            gic::is_enabled(interrupt) && gic::is_enabled(interrupt + 1) == always,
        );
        gic::disable(interrupt);
        report.equal("disable", gic::is_enabled(interrupt), always);
        gic::set_pending(interrupt);
        report.check(
            "set pending",
            gic::is_pending(interrupt) && !gic::is_pending(interrupt + 1),
        );
        gic::clear_pending(interrupt);
        report.check("clear pending", !gic::is_pending(interrupt));
        gic::set_active(interrupt);
        report.check(
            "set active",
            gic::is_active(interrupt) && !gic::is_active(interrupt + 1),
        );
        gic::clear_active(interrupt);
        report.check("clear active", !gic::is_active(interrupt));
    }
    let sgis = bus::read_u32(gic::private_registers() + offset::CONFIGURATION);
    report.equal("SGIs are edge-triggered", sgis & 0xAAAA_AAAA, 0xAAAA_AAAA);
}

fn fields(report: &mut Report) {
    for interrupt in [3, 27, FREE + 1] {
        gic::set_priority(interrupt, 0xFF);
        let highest = gic::priority(interrupt);
        report.check("priority: the upper five bits exist", highest & 0xF8 == 0xF8);
        gic::set_priority(interrupt, 0x48);
        report.equal("priority holds its value", gic::priority(interrupt), 0x48);
        gic::set_priority(interrupt, gic::DEFAULT_PRIORITY);
    }
    gic::set_edge(FREE, true);
    report.check("edge", gic::is_edge(FREE) && !gic::is_edge(FREE + 1));
    gic::set_edge(FREE, false);
    report.check("level", !gic::is_edge(FREE));
    gic::route(FREE, 1);
    report.equal("route holds the CPU", gic::routed(FREE), 1);
    gic::route(FREE, 0);
    report.equal("route back", gic::routed(FREE), 0);
    gic::set_group(FREE, false);
    let group = bus::read_u32(gic::DISTRIBUTOR + offset::GROUP + u64::from(FREE / 32) * 4);
    gic::set_group(FREE, true);
    let again = bus::read_u32(gic::DISTRIBUTOR + offset::GROUP + u64::from(FREE / 32) * 4);
    report.equal("group holds its bit", group ^ again, 1 << (FREE % 32));
    gic::set_group(FREE, !gic::is_version2());
}

fn widths(report: &mut Report) {
    let priorities = gic::DISTRIBUTOR + offset::PRIORITY + u64::from(FREE);
    bus::write_u32(priorities, 0x80_60_40_20);
    let bytes = [0, 1, 2, 3].map(|i| bus::read_u8(priorities + i));
    report.equal(
        "priorities: word written, bytes read",
        bytes,
        [0x20, 0x40, 0x60, 0x80],
    );
    bus::write_u8(priorities + 2, 0xC0);
    report.equal(
        "priorities: byte written, word read",
        bus::read_u32(priorities),
        0x80_C0_40_20,
    );
    bus::write_u32(priorities, u32::from_ne_bytes([gic::DEFAULT_PRIORITY; 4]));
    report.equal(
        "a signed byte keeps its sign",
        bus::read_i8(priorities),
        i64::from(gic::DEFAULT_PRIORITY.cast_signed()),
    );
}

/// `GICD_IROUTER`, which is 64 bits wide.
fn routes(report: &mut Report) {
    gic::route(FREE, 1 << 31);
    report.equal("route holds 'any CPU'", gic::routed(FREE), 1 << 31);
    let route = gic::DISTRIBUTOR + offset::ROUTE + u64::from(FREE) * 8;
    bus::write_u32(route, 1);
    report.equal("route: lower half written", bus::read_u64(route), 1);
    bus::write_zero(route);
    report.equal("route: zero register written", bus::read_u32(route), 0);
    report.equal("route: upper half read", bus::read_u32(route + 4), 0);
}

fn reserved(report: &mut Report) {
    report.equal(
        "a reserved register reads as zero",
        bus::read_u32(gic::DISTRIBUTOR + 0x30),
        0,
    );
    bus::write_u32(gic::DISTRIBUTOR + 0x30, u32::MAX);
    report.equal("and ignores writes", bus::read_u32(gic::DISTRIBUTOR + 0x30), 0);
    let beyond = offset::SET_ENABLE + u64::from(gic::lines() / 32) * 4;
    bus::write_u32(gic::DISTRIBUTOR + beyond, u32::MAX);
    // QEMU's own distributor keeps such bits.
    report.check(
        "lines there are not cannot be enabled",
        bus::read_u32(gic::DISTRIBUTOR + beyond) == 0 || !vm::is_hypervised(),
    );
}

/// Checks that a redistributor can be used from another CPU. The distributor has nothing private.
fn private_of_the_other(report: &mut Report) {
    bus::write_u32(gic::DISTRIBUTOR + offset::SET_ENABLE, u32::MAX);
    let private = bus::read_u32(gic::DISTRIBUTOR + offset::SET_ENABLE);
    report.equal("private interrupts are not in the distributor", private, 0);
    let other = gic::redistributor(1) + gic::SGI_FRAME;
    let here = bus::read_u32(gic::redistributor(0) + gic::SGI_FRAME + offset::SET_ENABLE);
    bus::write_u32(other + offset::SET_ENABLE, 1 << 9);
    report.equal(
        "the other's redistributor",
        bus::read_u32(other + offset::SET_ENABLE) & 1 << 9,
        1 << 9,
    );
    let after = bus::read_u32(gic::redistributor(0) + gic::SGI_FRAME + offset::SET_ENABLE);
    report.equal("is not the own one", after, here);
    bus::write_u32(other + offset::CLEAR_ENABLE, 1 << 9);
    let off = psci::code_of(psci::Conduit::Hvc, psci::function::AFFINITY_INFO, [1, 0, 0]);
    report.equal("while that CPU is off", off, psci::affinity::OFF);
}
