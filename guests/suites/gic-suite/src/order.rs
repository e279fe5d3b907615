// SPDX-License-Identifier: Apache-2.0
//! Which pending interrupt comes first, and which may not come.

use bulkhead_guest::report::Report;
use bulkhead_guest::vm::{bus, gic};

use crate::{FREE, FREE_COUNT, is_quiet, take};

pub fn run(report: &mut Report) {
    enables(report);
    masks(report);
    nesting(report);
    changes_while_pending(report);
    many(report);
    many_while_serving(report);
    report.check("nothing is left", is_quiet());
}

/// Priority of the `i`-th free interrupt: all levels but the lowest, scattered. The lowest never comes: the
/// widest mask with five bits is 0xF8, and a priority must be higher than the mask (IHI 0069 section 4.8).
fn scattered(i: u32) -> u8 {
    (i * 13 % 31 * 8) as u8
}

fn enables(report: &mut Report) {
    gic::set_pending(FREE);
    report.check("disabled: does not come", is_quiet());
    gic::enable(FREE);
    report.equal("enabled while pending: comes", take(), Some(FREE));
    report.check("and only once", is_quiet());
    gic::set_pending(FREE);
    gic::disable(FREE);
    report.check("disabled while pending: does not come", is_quiet());
    report.check("but stays pending", gic::is_pending(FREE));
    gic::enable(FREE);
    report.equal("enabled again: comes", take(), Some(FREE));

    gic::set_pending(FREE);
    gic::set_group_enable(false);
    report.check("group off at the CPU: does not come", is_quiet());
    gic::set_group_enable(true);
    report.equal("group on at the CPU: comes", take(), Some(FREE));
    let control = bus::read_u32(gic::DISTRIBUTOR + gic::offset::CONTROL);
    let group = if gic::is_version2() { 1 } else { 2 };
    gic::set_pending(FREE);
    bus::write_u32(gic::DISTRIBUTOR + gic::offset::CONTROL, control & !group);
    gic::wait_for_distributor();
    report.check("group off at the distributor: does not come", is_quiet());
    bus::write_u32(gic::DISTRIBUTOR + gic::offset::CONTROL, control);
    gic::wait_for_distributor();
    report.equal("group on at the distributor: comes", take(), Some(FREE));
}

fn masks(report: &mut Report) {
    gic::set_priority(FREE, 0x80);
    gic::set_pending(FREE);
    gic::set_mask(0x80);
    report.check("mask equal to the priority: does not come", is_quiet());
    gic::set_mask(0x88);
    report.equal("mask above the priority: comes", take(), Some(FREE));
    gic::set_mask(0xFF);
    gic::set_priority(FREE, gic::DEFAULT_PRIORITY);
}

/// Checks that an interrupt being served lets only higher priorities through.
fn nesting(report: &mut Report) {
    let [low, high, lowest] = [FREE, FREE + 1, FREE + 2];
    for (interrupt, priority) in [(low, 0x80), (high, 0x40), (lowest, 0xC0)] {
        gic::set_priority(interrupt, priority);
        gic::enable(interrupt);
    }
    gic::set_pending(low);
    report.equal("nesting: the first comes", gic::acknowledge(), low);
    report.equal("nesting: running priority", gic::running_priority() & 0xF8, 0x80);
    gic::set_pending(lowest);
    report.check("nesting: a lower one waits", is_quiet());
    gic::set_pending(high);
    report.equal("nesting: a higher one is the next", gic::highest_pending(), high);
    report.equal("nesting: and comes", gic::acknowledge(), high);
    report.equal(
        "nesting: running priority is its",
        gic::running_priority() & 0xF8,
        0x40,
    );
    gic::end(high);
    report.equal("nesting: back to the first", gic::running_priority() & 0xF8, 0x80);
    report.check("nesting: the lower one still waits", is_quiet());
    gic::end(low);
    report.equal("nesting: then it comes", take(), Some(lowest));
    for interrupt in [low, high, lowest] {
        gic::set_priority(interrupt, gic::DEFAULT_PRIORITY);
    }
}

fn changes_while_pending(report: &mut Report) {
    let [first, second] = [FREE, FREE + 1];
    gic::set_priority(first, 0x40);
    gic::set_priority(second, 0x80);
    gic::set_pending(first);
    gic::set_pending(second);
    gic::set_priority(first, 0xC0);
    report.equal("a priority lowered while pending", take(), Some(second));
    report.equal("comes later", take(), Some(first));
    gic::set_pending(first);
    gic::set_pending(second);
    gic::clear_pending(second);
    report.equal("cleared while pending: the other comes", take(), Some(first));
    report.check("and this one does not", is_quiet());
}

/// Enables the free interrupts with scattered priorities and makes all pending, a word at a time.
fn raise_all() {
    for i in 0..FREE_COUNT {
        gic::set_priority(FREE + i, scattered(i));
        gic::enable(FREE + i);
    }
    for i in 0..FREE_COUNT {
        gic::set_pending(FREE + i);
    }
}

/// More interrupts pending than any CPU has list registers: each comes once, in the order of priorities.
fn many(report: &mut Report) {
    raise_all();
    let mut seen = 0_u64;
    let mut ordered = true;
    let mut repeated = 0;
    let mut last = 0;
    let mut count = 0;
    while let Some(interrupt) = take() {
        count += 1;
        let Some(i) = interrupt.checked_sub(FREE).filter(|i| *i < FREE_COUNT) else {
            break;
        };
        repeated += u32::from(seen & 1 << i != 0);
        seen |= 1 << i;
        ordered &= scattered(i) >= last;
        last = scattered(i);
        if count > 2 * FREE_COUNT {
            break;
        }
    }
    report.equal("forty pending: none lost", seen, (1 << FREE_COUNT) - 1);
    report.equal("forty pending: none twice", repeated, 0);
    report.check("forty pending: in order of priority", ordered);
}

/// Checks the same while others are being served and come again. With every interrupt taken, one of the
/// earlier ones is made pending once more.
fn many_while_serving(report: &mut Report) {
    raise_all();
    let mut counts = [0_u32; FREE_COUNT as usize];
    let mut again = 0;
    for _ in 0..4 * FREE_COUNT {
        let interrupt = gic::acknowledge();
        if interrupt >= gic::FIRST_SPECIAL {
            break;
        }
        let i = (interrupt - FREE) as usize;
        counts[i] += 1;
        if counts[i] == 1 && i.is_multiple_of(3) {
            // While it is active: it must come again after its end.
            gic::set_pending(interrupt);
            again += 1;
        }
        gic::end(interrupt);
    }
    let wrong = counts
        .iter()
        .enumerate()
        .filter(|(i, count)| **count != if i.is_multiple_of(3) { 2 } else { 1 })
        .count();
    report.equal("pending again while served: as often as asked", wrong, 0);
    report.equal(
        "pending again while served: so many",
        again,
        FREE_COUNT.div_ceil(3),
    );
    for i in 0..FREE_COUNT {
        gic::disable(FREE + i);
        gic::set_priority(FREE + i, gic::DEFAULT_PRIORITY);
    }
}
