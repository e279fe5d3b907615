// SPDX-License-Identifier: Apache-2.0
//! Interrupts masked by their priority alone, with PSTATE.I clear, as a kernel with pseudo-NMIs does it.
//!
//! A critical section raises the priority mask, so that ordinary interrupts wait and urgent ones do not. The
//! handler of an ordinary interrupt lets urgent ones in. The priorities are the ones of Linux
//! (`irqchip.gicv3_pseudo_nmi=1`). Nothing of this leaves the virtual CPU interface. So the tests check that
//! the right interrupt is in a list register when the mask is raised or lowered.

use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use bulkhead_guest::report::Report;
use bulkhead_guest::vm::psci::code;
use bulkhead_guest::vm::timer::{self, Timer};
use bulkhead_guest::vm::{cpu, exception, gic, smp};

use crate::{FREE, FREE_COUNT};

/// Software-generated interrupts: one that is always let in, two that are not, and the end of the other CPU.
const URGENT: u32 = 2;
const ORDINARY: u32 = 3;
const SECOND: u32 = 6;
const ASK: u32 = 8;
const END: u32 = 9;
/// Priorities and masks.
const URGENT_PRIORITY: u8 = 0x20;
const OPEN: u8 = 0xE0;
const CLOSED: u8 = 0x60;
/// Interrupts that are counted.
const COUNTED: usize = 160;
/// The CPU that sends.
const OTHER: usize = 1;
/// The number of times it sends.
const ROUNDS: u32 = 50;
/// The longest time that the other CPU may take, in microseconds.
const PATIENCE: u64 = 1_000_000;

/// The number of times each interrupt came to CPU 0.
static COUNTS: [AtomicU32; COUNTED] = [const { AtomicU32::new(0) }; COUNTED];
/// The next [`ORDINARY`] interrupt is interrupted itself.
static NESTS: AtomicBool = AtomicBool::new(false);
/// The running priority in that handler, in the one within, and in the former after that.
static RUNNING: [AtomicU32; 3] = [const { AtomicU32::new(0) }; 3];
/// The interrupts that came while that handler ran: [`URGENT`], [`SECOND`].
static WITHIN: [AtomicU32; 2] = [const { AtomicU32::new(0) }; 2];
/// The other CPU waits for orders, and is to end.
static LISTENS: AtomicBool = AtomicBool::new(false);
static ENDS: AtomicBool = AtomicBool::new(false);

fn count(interrupt: u32) -> u32 {
    COUNTS
        .get(interrupt as usize)
        .map_or(0, |counter| counter.load(Ordering::Acquire))
}

fn note_running(index: usize) {
    RUNNING[index].store(u32::from(gic::running_priority()) & 0xF8, Ordering::Relaxed);
}

fn interrupt() {
    let interrupt = gic::acknowledge();
    if interrupt >= gic::FIRST_SPECIAL {
        return;
    }
    if interrupt == Timer::Virtual.line() {
        Timer::Virtual.disarm();
    }
    if cpu::index() == OTHER {
        match interrupt {
            ASK => {
                gic::send(ORDINARY, 1);
                gic::send(URGENT, 1);
            }
            _ => ENDS.store(true, Ordering::Release),
        }
    } else {
        if let Some(counter) = COUNTS.get(interrupt as usize) {
            counter.store(counter.load(Ordering::Relaxed) + 1, Ordering::Release);
        }
        match interrupt {
            ORDINARY if NESTS.swap(false, Ordering::Relaxed) => let_urgent_in(),
            URGENT => note_running(1),
            _ => {}
        }
    }
    gic::end(interrupt);
}

/// Lets other interrupts in, from the handler of an ordinary interrupt. Its like stay out.
fn let_urgent_in() {
    note_running(0);
    let before = [URGENT, SECOND].map(count);
    gic::set_mask(CLOSED);
    cpu::unmask_interrupts();
    gic::send(SECOND, 1);
    gic::send(URGENT, 1);
    timer::pause(20);
    cpu::mask_interrupts();
    gic::set_mask(OPEN);
    note_running(2);
    for ((within, interrupt), before) in WITHIN.iter().zip([URGENT, SECOND]).zip(before) {
        within.store(count(interrupt) - before, Ordering::Relaxed);
    }
}

pub fn run(report: &mut Report) {
    exception::set_interrupt_handler(interrupt);
    Timer::Physical.disarm();
    for interrupt in [ORDINARY, SECOND, URGENT, Timer::Virtual.line()] {
        gic::enable(interrupt);
    }
    gic::set_priority(URGENT, URGENT_PRIORITY);
    if !gic::is_version2() {
        // Linux then needs no barrier after a change of the mask (IHI 0069 section 12.2.8,
        // ICC_CTLR_EL1.PMHE).
        report.equal(
            "ICC_CTLR_EL1: no hint by the mask",
            gic::interface_control() & 1 << 6,
            0,
        );
    }
    gic::set_mask(OPEN);
    cpu::unmask_interrupts();
    critical_section(report);
    timer_in_critical_section(report);
    nested(report);
    full(report);
    waiting(report);
    if smp::start(OTHER, other_cpu, 0) == code::SUCCESS {
        from_another(report);
    } else {
        report.check("the other CPU starts", false);
    }
    cpu::mask_interrupts();
    gic::set_mask(0xFF);
    gic::set_priority(URGENT, gic::DEFAULT_PRIORITY);
}

/// Lets the CPU take what it can take.
fn settle() {
    timer::pause(20);
}

fn critical_section(report: &mut Report) {
    let before = [ORDINARY, URGENT].map(count);
    let since = || [count(ORDINARY) - before[0], count(URGENT) - before[1]];
    gic::set_mask(CLOSED);
    gic::send(ORDINARY, 1);
    settle();
    report.equal("closed: an ordinary one waits", since(), [0, 0]);
    gic::send(URGENT, 1);
    settle();
    report.equal("closed: an urgent one comes", since(), [0, 1]);
    report.check("closed: the ordinary one is pending", gic::is_pending(ORDINARY));
    gic::set_mask(OPEN);
    settle();
    report.equal("open: the ordinary one comes, once", since(), [1, 1]);
}

fn timer_in_critical_section(report: &mut Report) {
    let line = Timer::Virtual.line();
    let before = count(line);
    gic::set_mask(CLOSED);
    Timer::Virtual.arm(Timer::Virtual.now() + timer::ticks(20));
    timer::pause(100);
    report.equal("closed: the timer waits", count(line) - before, 0);
    gic::set_mask(OPEN);
    settle();
    report.equal("open: the timer comes, once", count(line) - before, 1);
}

fn nested(report: &mut Report) {
    NESTS.store(true, Ordering::Relaxed);
    let before = count(SECOND);
    gic::send(ORDINARY, 1);
    settle();
    let running = RUNNING.each_ref().map(|at| at.load(Ordering::Relaxed));
    let ordinary = u32::from(gic::DEFAULT_PRIORITY);
    report.equal(
        "in a handler: running priorities, there and back",
        running,
        [ordinary, URGENT_PRIORITY.into(), ordinary],
    );
    let within = WITHIN.each_ref().map(|count| count.load(Ordering::Relaxed));
    report.equal(
        "in a handler: the urgent one comes, its like does not",
        within,
        [1, 0],
    );
    report.equal("behind it: its like comes", count(SECOND) - before, 1);
    report.equal("behind it: nothing runs", gic::running_priority() & 0xF8, 0xF8);
}

/// More ordinary ones than there are list registers must not keep an urgent one out.
fn full(report: &mut Report) {
    gic::set_mask(CLOSED);
    for i in 0..FREE_COUNT {
        gic::enable(FREE + i);
        gic::set_pending(FREE + i);
    }
    let before = count(URGENT);
    gic::send(URGENT, 1);
    settle();
    report.equal(
        "closed, forty wait: an urgent one comes",
        count(URGENT) - before,
        1,
    );
    let came = || (0..FREE_COUNT).map(|i| count(FREE + i)).sum::<u32>();
    report.equal("closed, forty wait: none of them comes", came(), 0);
    gic::set_mask(OPEN);
    settle();
    report.equal("open: all of them come", came(), FREE_COUNT);
    for i in 0..FREE_COUNT {
        gic::disable(FREE + i);
    }
}

/// Such a kernel waits with PSTATE.I set and the mask open.
fn waiting(report: &mut Report) {
    let line = Timer::Virtual.line();
    let mut good = 0;
    for _ in 0..20 {
        let before = count(line);
        gic::set_mask(CLOSED);
        Timer::Virtual.arm(Timer::Virtual.now() + timer::ticks(50));
        gic::set_mask(OPEN);
        cpu::sleep_until(|| count(line) != before);
        good += u32::from(count(line) == before + 1);
    }
    report.equal("waiting: the timer ends it, twenty times", good, 20);
}

fn other_cpu(_: u64) {
    gic::init_cpu();
    gic::enable(ASK);
    gic::enable(END);
    LISTENS.store(true, Ordering::Release);
    cpu::sleep_until(|| ENDS.load(Ordering::Acquire));
    cpu::mask_interrupts();
    LISTENS.store(false, Ordering::Release);
}

/// Another CPU sends both kinds, while this one is in a critical section.
fn from_another(report: &mut Report) {
    let listens = || LISTENS.load(Ordering::Acquire);
    let until = |done: &mut dyn FnMut() -> bool| timer::nap_until(PATIENCE, done);
    cpu::mask_interrupts();
    report.check("the other CPU listens", until(&mut || listens()));
    cpu::unmask_interrupts();
    let mut good = 0;
    for _ in 0..ROUNDS {
        let before = [ORDINARY, URGENT].map(count);
        gic::set_mask(CLOSED);
        gic::send(ASK, 1 << OTHER);
        // The other one may share the pCPU, so this one sleeps; only the urgent interrupt can wake it.
        cpu::sleep_until(|| count(URGENT) != before[1]);
        let closed = [count(ORDINARY) - before[0], count(URGENT) - before[1]];
        gic::set_mask(OPEN);
        settle();
        let open = [count(ORDINARY) - before[0], count(URGENT) - before[1]];
        good += u32::from(closed == [0, 1] && open == [1, 1]);
    }
    report.equal(
        "from another CPU: only the urgent one comes at once",
        good,
        ROUNDS,
    );
    cpu::mask_interrupts();
    gic::send(END, 1 << OTHER);
    report.check("the other CPU ends", until(&mut || !listens()));
}
