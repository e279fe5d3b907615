// SPDX-License-Identifier: Apache-2.0
//! All lines at once: every one enabled and pending, in a group that is on, for some CPU, and kept out by the
//! mask.

use bulkhead_guest::vm::{bus, cpu, gic};

/// `GICD_CTLR` with both groups and affinity routing; on a GICv2 both groups.
pub fn control() -> u32 {
    if gic::is_version2() { 0b11 } else { 0b1_0011 }
}

/// Tells where the calling CPU's word `number` of a register of a bit per line is.
pub fn word(register: u64, number: u64) -> u64 {
    let frame = if number == 0 {
        gic::private_registers()
    } else {
        gic::DISTRIBUTOR
    };
    frame + register + number * 4
}

/// Everything about the lines that hardly changes: edges, priorities, routes; then [`fill`].
pub fn prepare(lines: u32) {
    // SGIs are edges anyway.
    for number in 1..u64::from(lines / 16) {
        let frame = if number == 1 {
            gic::private_registers()
        } else {
            gic::DISTRIBUTOR
        };
        bus::write_u32(frame + gic::offset::CONFIGURATION + number * 4, u32::MAX);
    }
    for number in 0..u64::from(lines / 4) {
        let frame = if number < 8 {
            gic::private_registers()
        } else {
            gic::DISTRIBUTOR
        };
        bus::write_u32(
            frame + gic::offset::PRIORITY + number * 4,
            0xA0A0_A0A0 ^ (number as u32) << 3,
        );
    }
    for interrupt in gic::FIRST_SHARED..lines.min(gic::FIRST_SPECIAL) {
        gic::route(interrupt, cpu::index() as u64);
    }
    fill(lines);
}

/// Leaves every line enabled and pending, and no interrupt lets itself be taken.
pub fn fill(lines: u32) {
    gic::set_mask(0);
    gic::set_end_mode(false);
    gic::set_group_enable(true);
    bus::write_u32(gic::DISTRIBUTOR, control());
    for number in 0..u64::from(lines / 32) {
        bus::write_u32(word(gic::offset::SET_ENABLE, number), u32::MAX);
        bus::write_u32(word(gic::offset::SET_PENDING, number), u32::MAX);
    }
}
