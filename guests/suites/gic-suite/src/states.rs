// SPDX-License-Identifier: Apache-2.0
//! The states of one interrupt: pending, active, both; level and edge; the two modes of ending.

use bulkhead_guest::print;
use bulkhead_guest::report::Report;
use bulkhead_guest::vm::timer::{self, Timer};
use bulkhead_guest::vm::{gic, pl011};

use crate::{FREE, is_quiet, take};

/// Interrupts served at a time.
const MANY: u32 = 10;

pub fn run(report: &mut Report) {
    gic::enable(FREE);
    edge(report);
    software_active(report);
    split_end(report);
    private_states(report);
    gic::disable(FREE);
    uart_level(report);
    timer_level(report, Timer::Virtual);
    timer_level(report, Timer::Physical);
}

fn edge(report: &mut Report) {
    gic::set_edge(FREE, true);
    gic::set_pending(FREE);
    gic::set_pending(FREE);
    report.check("edge: pending", gic::is_pending(FREE) && !gic::is_active(FREE));
    report.equal("edge: acknowledged", gic::acknowledge(), FREE);
    report.check(
        "edge: active and no longer pending",
        !gic::is_pending(FREE) && gic::is_active(FREE),
    );
    gic::set_pending(FREE);
    report.check(
        "edge: active and pending",
        gic::is_pending(FREE) && gic::is_active(FREE),
    );
    report.check("edge: does not interrupt itself", is_quiet());
    gic::end(FREE);
    report.check(
        "edge: ended, pending",
        gic::is_pending(FREE) && !gic::is_active(FREE),
    );
    report.equal("edge: comes again", take(), Some(FREE));
    report.check("edge: two raised while pending are one", is_quiet());
    gic::set_edge(FREE, false);
}

/// Active by a write, not by an acknowledge.
fn software_active(report: &mut Report) {
    gic::set_active(FREE);
    gic::set_pending(FREE);
    report.check("made active: does not come", is_quiet());
    gic::clear_active(FREE);
    report.equal("made inactive: comes", gic::acknowledge(), FREE);
    gic::clear_active(FREE);
    report.check("active cleared while served", !gic::is_active(FREE));
    gic::end(FREE);
    report.equal("priority dropped all the same", gic::running_priority(), 0xFF);
}

/// `EOImode` 1: the end drops the priority, deactivation is apart.
fn split_end(report: &mut Report) {
    gic::set_end_mode(true);
    for interrupt in [2, FREE] {
        gic::enable(interrupt);
        gic::set_pending(interrupt);
        report.equal("split end: acknowledged", gic::acknowledge(), interrupt);
        gic::end(interrupt);
        report.equal("split end: priority dropped", gic::running_priority(), 0xFF);
        report.check("split end: still active", gic::is_active(interrupt));
        gic::set_pending(interrupt);
        report.check("split end: does not come while active", is_quiet());
        gic::deactivate(interrupt);
        report.check("split end: deactivated", !gic::is_active(interrupt));
        report.equal("split end: comes again", gic::acknowledge(), interrupt);
        gic::end(interrupt);
        gic::deactivate(interrupt);
        report.check(
            "split end: idle",
            !gic::is_active(interrupt) && !gic::is_pending(interrupt),
        );
    }
    // Deactivated in another order than acknowledged.
    gic::set_priority(FREE + 1, 0x40);
    gic::enable(FREE + 1);
    gic::set_pending(FREE);
    let first = gic::acknowledge();
    gic::set_pending(FREE + 1);
    let second = gic::acknowledge();
    gic::end(second);
    gic::end(first);
    gic::deactivate(first);
    report.check(
        "split end: any order of deactivation",
        !gic::is_active(first) && gic::is_active(second),
    );
    gic::deactivate(second);
    gic::disable(FREE + 1);
    gic::set_priority(FREE + 1, gic::DEFAULT_PRIORITY);
    gic::disable(2);
    split_end_of_many(report);
    gic::set_end_mode(false);
}

/// Serves more interrupts at a time than there are list registers, and deactivates them in an unrelated
/// order.
fn split_end_of_many(report: &mut Report) {
    for i in 0..MANY {
        gic::set_priority(FREE + i, 0x80 - 8 * i as u8);
        gic::enable(FREE + i);
    }
    let mut served = 0;
    for i in 0..MANY {
        gic::set_pending(FREE + i);
        served += u32::from(gic::acknowledge() == FREE + i);
    }
    report.equal("split end of many: each comes", served, MANY);
    for i in (0..MANY).rev() {
        gic::end(FREE + i);
    }
    report.equal(
        "split end of many: priorities dropped",
        gic::running_priority(),
        0xFF,
    );
    let mut active = (1_u32 << MANY) - 1;
    let mut wrong = 0;
    for i in (0..MANY).map(|i| i * 3 % MANY) {
        gic::deactivate(FREE + i);
        active &= !(1 << i);
        let now = (0..MANY).filter(|i| gic::is_active(FREE + i));
        wrong += u32::from(now.fold(0, |mask, i| mask | 1 << i) != active);
    }
    report.equal("split end of many: deactivated one by one", wrong, 0);
    for i in 0..MANY {
        gic::disable(FREE + i);
        gic::set_priority(FREE + i, gic::DEFAULT_PRIORITY);
    }
    gic::enable(FREE);
}

fn private_states(report: &mut Report) {
    for interrupt in [6, 20] {
        gic::enable(interrupt);
        gic::set_pending(interrupt);
        report.check("private: pending", gic::is_pending(interrupt));
        report.equal("private: comes", gic::acknowledge(), interrupt);
        report.check(
            "private: active",
            gic::is_active(interrupt) && !gic::is_pending(interrupt),
        );
        gic::end(interrupt);
        report.check("private: idle", !gic::is_active(interrupt) && is_quiet());
        gic::disable(interrupt);
    }
}

/// Checks that the UART's transmit interrupt stays up until its cause is cleared.
fn uart_level(report: &mut Report) {
    gic::enable(pl011::LINE);
    pl011::enable_transmit_interrupt();
    report.check("level: down at first", is_quiet());
    print!(".\n");
    report.check("level: up after a byte", gic::is_pending(pl011::LINE));
    gic::clear_pending(pl011::LINE);
    let stays = gic::is_pending(pl011::LINE);
    report.equal("level: comes", gic::acknowledge(), pl011::LINE);
    // Printing raises the level again, so everything is observed before it is reported.
    gic::end(pl011::LINE);
    let repeated = gic::acknowledge();
    let active = gic::is_active(pl011::LINE);
    pl011::clear_transmit_interrupt();
    let dropped = !gic::is_pending(pl011::LINE);
    gic::end(pl011::LINE);
    let quiet = is_quiet();
    pl011::disable_interrupts();
    gic::disable(pl011::LINE);
    report.check("level: cannot be cleared at the distributor", stays);
    report.equal("level: comes again while it is up", repeated, pl011::LINE);
    report.check("level: active", active);
    report.check("level: no longer pending when the cause is gone", dropped);
    report.check("level: does not come again", quiet);
    report.check("level: quiet at the end", is_quiet());
}

fn timer_level(report: &mut Report, timer: Timer) {
    let line = timer.line();
    gic::enable(line);
    timer.arm(timer.now() + timer::ticks(50));
    let early = gic::is_pending(line);
    timer::pause(60);
    report.check("timer: not before its time", !early);
    report.check("timer: fired", timer.has_fired());
    report.equal("timer: comes", gic::acknowledge(), line);
    gic::end(line);
    if gic::is_version2() {
        // When a virtual interrupt ends (`gic_complete_irq`), QEMU 7.2 does not look at its physical line
        // again. It looks when something is written to the distributor.
        gic::disable(line);
        gic::enable(line);
    }
    report.equal(
        "timer: comes again while its condition holds",
        gic::acknowledge(),
        line,
    );
    timer.disarm();
    gic::end(line);
    report.check("timer: quiet when disarmed", is_quiet());
    timer.arm_relative(timer::ticks(20) as u32);
    timer::pause(30);
    report.equal("timer: relative deadline", gic::acknowledge(), line);
    timer.disarm();
    gic::end(line);
    timer.arm(timer.now() + timer::ticks(20));
    timer.disarm();
    timer::pause(30);
    report.check("timer: disarmed before its time", is_quiet());
    gic::disable(line);
    timer.arm(timer.now());
    report.check("timer: disabled line", is_quiet());
    timer.disarm();
}
