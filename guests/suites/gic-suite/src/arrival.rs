// SPDX-License-Identifier: Apache-2.0
//! Interrupts that arrive: through the vector, out of WFI, from the other vCPU and at it.

use core::sync::atomic::{AtomicU32, Ordering};

use bulkhead_guest::report::Report;
use bulkhead_guest::vm::psci::code;
use bulkhead_guest::vm::timer::{self, Timer};
use bulkhead_guest::vm::{bus, cpu, exception, gic, smp};

use crate::{FREE, FREE_COUNT};

/// Interrupts the log has counters for.
const LOGGED: usize = 160;
/// The CPU that serves interrupts only.
const OTHER: usize = 1;
/// The longest time that the other CPU may take, in microseconds.
const PATIENCE: u64 = 1_000_000;
/// SGIs: counted, answered with [`ANSWER`], end of the other CPU.
const COUNTED: u32 = 1;
const QUESTION: u32 = 4;
const ANSWER: u32 = 5;
const END: u32 = 7;

/// The number of times each interrupt came, per CPU. Only that CPU writes it.
static LOG: [[AtomicU32; LOGGED]; 2] = [const { [const { AtomicU32::new(0) }; LOGGED] }; 2];

/// The other CPU is up and listens.
static LISTENING: AtomicU32 = AtomicU32::new(0);

fn count(cpu: usize, interrupt: u32) -> u32 {
    LOG[cpu][interrupt as usize].load(Ordering::Acquire)
}

fn clear_log() {
    for counter in LOG.iter().flatten() {
        counter.store(0, Ordering::Relaxed);
    }
}

fn interrupt() {
    let interrupt = gic::acknowledge();
    if interrupt >= gic::FIRST_SPECIAL {
        return;
    }
    for timer in [Timer::Virtual, Timer::Physical] {
        if interrupt == timer.line() {
            timer.disarm();
        }
    }
    let index = cpu::index();
    if interrupt == QUESTION {
        gic::send(ANSWER, 1 << (1 - index));
    }
    let counter = &LOG[index][interrupt as usize % LOGGED];
    counter.store(counter.load(Ordering::Relaxed) + 1, Ordering::Release);
    gic::end(interrupt);
}

fn other_cpu(_: u64) {
    gic::init_cpu();
    for interrupt in [COUNTED, QUESTION, ANSWER, END, Timer::Virtual.line()] {
        gic::enable(interrupt);
    }
    LISTENING.store(1, Ordering::Release);
    cpu::sleep_until(|| count(OTHER, END) > 0);
    cpu::mask_interrupts();
    LISTENING.store(0, Ordering::Release);
}

/// Waits with interrupts let in, and the other CPU able to run.
fn eventually(mut done: impl FnMut() -> bool) -> bool {
    let end = Timer::Virtual.now() + timer::ticks(PATIENCE);
    loop {
        if done() {
            return true;
        }
        if Timer::Virtual.now() > end {
            return false;
        }
        // Before the timer is armed: it may fire at once if another vCPU runs in between.
        let wakes = count(0, Timer::Physical.line());
        Timer::Physical.arm(Timer::Physical.now() + timer::ticks(20));
        cpu::sleep_until(|| count(0, Timer::Physical.line()) != wakes || done());
    }
}

pub fn run(report: &mut Report) {
    exception::set_interrupt_handler(interrupt);
    for interrupt in [
        COUNTED,
        QUESTION,
        ANSWER,
        Timer::Virtual.line(),
        Timer::Physical.line(),
    ] {
        gic::enable(interrupt);
    }
    cpu::unmask_interrupts();
    own(report);
    timers(report);
    batch(report);
    let code = smp::start(OTHER, other_cpu, 0);
    report.equal("the other vCPU is started", code, code::SUCCESS);
    if code == code::SUCCESS {
        report.check(
            "the other vCPU listens",
            eventually(|| LISTENING.load(Ordering::Acquire) == 1),
        );
        between_cpus(report);
        routing(report);
        gic::send(END, 1 << OTHER);
        report.check(
            "the other vCPU ends",
            eventually(|| LISTENING.load(Ordering::Acquire) == 0),
        );
    }
    cpu::mask_interrupts();
}

fn own(report: &mut Report) {
    for _ in 0..100 {
        gic::send(COUNTED, 1);
    }
    report.check(
        "SGI to itself, a hundred times",
        eventually(|| count(0, COUNTED) == 100),
    );
    gic::send_to_others(COUNTED);
    gic::send(COUNTED, 0);
    timer::pause(20);
    report.equal("SGI to others or nobody does not come", count(0, COUNTED), 100);
    cpu::mask_interrupts();
    gic::send(COUNTED, 1);
    timer::pause(10);
    let masked = count(0, COUNTED);
    // A pending interrupt ends WFI even while masked (Arm ARM DDI 0487 D1.6.2).
    cpu::wait_for_interrupt();
    cpu::unmask_interrupts();
    report.equal("masked: does not come", masked, 100);
    report.check("unmasked: comes", eventually(|| count(0, COUNTED) == 101));
}

fn timers(report: &mut Report) {
    for timer in [Timer::Virtual, Timer::Physical] {
        let mut late = 0;
        let mut early = 0;
        for _ in 0..50 {
            let before = count(0, timer.line());
            let deadline = timer.now() + timer::ticks(100);
            timer.arm(deadline);
            cpu::sleep_until(|| count(0, timer.line()) != before);
            let now = timer.now();
            early += u32::from(now < deadline);
            // Bound for a CPU that is shared: ten milliseconds.
            late += u32::from(now > deadline + timer::ticks(10_000));
        }
        report.equal("timer: WFI never ends early", early, 0);
        report.equal("timer: WFI ends soon", late, 0);
    }
}

/// More pending than list registers, taken through the vector.
fn batch(report: &mut Report) {
    cpu::mask_interrupts();
    for i in 0..FREE_COUNT {
        gic::set_priority(FREE + i, (i % 31 * 8) as u8);
        gic::enable(FREE + i);
        gic::set_pending(FREE + i);
    }
    cpu::unmask_interrupts();
    let all = || (0..FREE_COUNT).all(|i| count(0, FREE + i) >= 1);
    report.check("forty through the vector: none lost", eventually(all));
    let once = (0..FREE_COUNT).all(|i| count(0, FREE + i) == 1);
    report.check("forty through the vector: none twice", once);
    for i in 0..FREE_COUNT {
        gic::disable(FREE + i);
        gic::set_priority(FREE + i, gic::DEFAULT_PRIORITY);
    }
}

fn between_cpus(report: &mut Report) {
    let mut good = 0;
    for round in 1..=100 {
        gic::send(QUESTION, 1 << OTHER);
        good += u32::from(eventually(|| count(0, ANSWER) == round));
    }
    report.equal("SGI there and back, a hundred times", good, 100);
    report.equal("each question arrived once", count(OTHER, QUESTION), 100);
    let before = count(OTHER, COUNTED);
    gic::send_to_others(COUNTED);
    report.check(
        "SGI to all others",
        eventually(|| count(OTHER, COUNTED) == before + 1),
    );
    let here = count(0, COUNTED);
    gic::send(COUNTED, 0b11);
    let both = || count(OTHER, COUNTED) == before + 2 && count(0, COUNTED) == here + 1;
    report.check("SGI to both", eventually(both));
    if gic::is_version2() {
        // Private registers are banked: no CPU reaches another's.
        return;
    }
    let frame = gic::redistributor(OTHER) + gic::SGI_FRAME;
    bus::write_u32(frame + gic::offset::SET_PENDING, 1 << COUNTED);
    report.check(
        "SGI by the other's pending register",
        eventually(|| count(OTHER, COUNTED) == before + 3),
    );
}

fn routing(report: &mut Report) {
    clear_log();
    let line = FREE;
    gic::set_edge(line, true);
    gic::enable(line);
    gic::set_pending(line);
    report.check("routed here", eventually(|| count(0, line) == 1));
    gic::route(line, OTHER as u64);
    gic::set_pending(line);
    report.check("routed there", eventually(|| count(OTHER, line) == 1));
    report.equal("and not here", count(0, line), 1);
    gic::disable(line);
    gic::set_pending(line);
    gic::route(line, 0);
    gic::enable(line);
    report.check("routed back while pending", eventually(|| count(0, line) == 2));
    report.equal("and not there", count(OTHER, line), 1);
    gic::route(line, OTHER as u64);
    for i in 1..FREE_COUNT {
        gic::route(FREE + i, OTHER as u64);
        gic::enable(FREE + i);
        gic::set_pending(FREE + i);
    }
    let all = || (1..FREE_COUNT).all(|i| count(OTHER, FREE + i) == 1);
    report.check("many routed there: each once", eventually(all));
    for i in 0..FREE_COUNT {
        gic::disable(FREE + i);
        gic::route(FREE + i, 0);
    }
    gic::set_edge(line, false);
}
