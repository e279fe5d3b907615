// SPDX-License-Identifier: Apache-2.0
//! Exceptions, hardware debug, MMU and caches, atomics, events and counters.

use core::sync::atomic::{AtomicU64, Ordering};

use bulkhead_guest::println;
use bulkhead_guest::report::Report;
use bulkhead_guest::vm::exception::{class, probe};
use bulkhead_guest::vm::gic::offset;
use bulkhead_guest::vm::psci::code;
use bulkhead_guest::vm::register::Register;
use bulkhead_guest::vm::timer::{self, Timer};
use bulkhead_guest::vm::{RAM_BASE, bus, cpu, debug, gic, instructions, mmu, pl011, smp};

/// Additions each CPU makes to the shared word.
const ADDITIONS: u64 = 10_000;
/// Free RAM of the VM for unaligned accesses: between the device tree's usual place and the program.
const SCRATCH: u64 = RAM_BASE + 0x7_F000;

static SHARED: AtomicU64 = AtomicU64::new(0);
static FINISHED: AtomicU64 = AtomicU64::new(0);

pub fn run(report: &mut Report) {
    exceptions(report);
    hardware_debug(report);
    counters(report);
    waiting(report);
    big_endian(report);
    caches_off(report);
    mmu::enable();
    caches_on(report);
    atomics(report);
    gaps();
}

fn exceptions(report: &mut Report) {
    let class_of = |action: fn()| probe(action).map_err(|fault| fault.class());
    report.equal(
        "UDF comes to the own vector",
        class_of(instructions::undefined),
        Err(class::UNKNOWN),
    );
    report.equal(
        "BRK comes to the own vector",
        class_of(instructions::breakpoint),
        Err(class::BRK),
    );
    report.equal(
        "SVC comes to the own vector",
        class_of(instructions::supervisor_call),
        Err(class::SVC),
    );
}

fn hardware_debug(report: &mut Report) {
    let fields = Register::DFR0.read();
    println!(
        "debug: {} breakpoints, {} watchpoints",
        (fields >> 12 & 0xF) + 1,
        (fields >> 20 & 0xF) + 1
    );
    report.check("debug architecture is Armv8", fields & 0xF >= 6);
    report.equal("OS lock is open", Register::OSLSR.read() & 2, 0);
    let mut expected = 0;
    let hit = probe(|| expected = debug::hit_breakpoint());
    report.equal(
        "breakpoint",
        hit.map_err(|fault| (fault.class(), fault.pc)),
        Err((class::BREAKPOINT, expected)),
    );
    let hit = probe(|| expected = debug::hit_watchpoint());
    report.equal(
        "watchpoint",
        hit.map_err(|fault| (fault.class(), fault.address)),
        Err((class::WATCHPOINT, expected)),
    );
    let hit = probe(|| expected = debug::step());
    report.equal(
        "single step",
        hit.map_err(|fault| (fault.class(), fault.pc)),
        Err((class::STEP, expected + 4)),
    );
    Register::BVR0.write(SCRATCH);
    timer::nap(500);
    report.equal("debug registers survive sleep", Register::BVR0.read(), SCRATCH);
    Register::BVR0.write(0);
}

fn counters(report: &mut Report) {
    let mut backwards = 0;
    let mut last = Timer::Virtual.now();
    for _ in 0..10_000 {
        let now = Timer::Virtual.now();
        backwards += u64::from(now < last);
        last = now;
    }
    report.equal("the virtual counter never goes back", backwards, 0);
    let offset = || Timer::Physical.now().wrapping_sub(Timer::Virtual.now());
    let before = offset();
    timer::pause(1000);
    let moved = offset().wrapping_sub(before).cast_signed().unsigned_abs();
    report.check("both counters run alike", moved < timer::ticks(10_000));
    let start = Timer::Virtual.now();
    timer::nap(1000);
    report.check(
        "a nap is not shorter than asked",
        Timer::Virtual.now() - start >= timer::ticks(1000),
    );
}

fn waiting(report: &mut Report) {
    cpu::send_event();
    cpu::wait_for_event();
    report.check("WFE returns after SEV", true);
    // A pending interrupt that is masked ends WFI (Arm ARM DDI 0487 D1.6.2).
    gic::enable(1);
    gic::send(1, 1);
    cpu::wait_for_interrupt();
    report.equal("WFI returns with an interrupt pending", gic::acknowledge(), 1);
    gic::end(1);
}

/// Checks registers of a device as a kernel with big-endian data sees them. The UART stands for the devices
/// that one part of a hypervisor answers, the interrupt controller for those that another part answers.
fn big_endian(report: &mut Report) {
    /// UARTPCellID3 (DDI 0183 section 3.3.15).
    const CELL: u64 = pl011::BASE + 0xFFC;
    /// UARTIMSC.
    const MASK: u64 = pl011::BASE + 0x38;
    const ENABLED: u64 = gic::DISTRIBUTOR + offset::SET_ENABLE + 4;
    const DISABLED: u64 = gic::DISTRIBUTOR + offset::CLEAR_ENABLE + 4;
    const PRIORITIES: u64 = gic::DISTRIBUTOR + offset::PRIORITY + 32;
    report.equal(
        "big-endian: loads from a device",
        (
            bus::read_u32(CELL),
            bus::read_u32_big_endian(CELL, 0),
            bus::read_u16_big_endian(CELL, 0),
            bus::read_i16_big_endian(CELL, 0),
        ),
        (0xB1, 0xB100_0000, 0xB100, 0xFFFF_FFFF_FFFF_B100),
    );
    let before = bus::read_u32(MASK);
    let _ = bus::write_u16_big_endian(MASK, 0x5006);
    report.equal("big-endian: a store to a device", bus::read_u32(MASK), 0x650);
    bus::write_u32(MASK, before);
    let before = bus::read_u32(ENABLED);
    let _ = bus::write_u32_big_endian(ENABLED, 0x40);
    let now = before | 1 << 30;
    report.equal(
        "big-endian: a word of the interrupt controller",
        (bus::read_u32(ENABLED), bus::read_u32_big_endian(ENABLED, 0)),
        (now, u64::from(now.swap_bytes())),
    );
    bus::write_u32(DISABLED, now & !before);
    let _ = bus::write_u32_big_endian(PRIORITIES, 0x1020_3040);
    report.equal(
        "big-endian: the order of bytes in it",
        bus::read_u32(PRIORITIES),
        0x4030_2010,
    );
}

/// Fills the scratch page and reads it back through a set/way flush.
fn caches_off(report: &mut Report) {
    report.check(
        "set/way maintenance loses nothing, caches off",
        survives_set_way(),
    );
}

fn survives_set_way() -> bool {
    for i in 0..64 {
        bus::write_u64(SCRATCH + i * 8, i * 0x0101_0101);
    }
    cpu::flush_by_set_and_way();
    (0..64).all(|i| bus::read_u64(SCRATCH + i * 8) == i * 0x0101_0101)
}

fn caches_on(report: &mut Report) {
    report.equal("MMU and caches are on", Register::SCTLR.read() & 0x1005, 0x1005);
    report.check("set/way maintenance loses nothing, caches on", survives_set_way());
    bus::write_u64(SCRATCH, 0x1122_3344_5566_7788);
    bus::write_u64(SCRATCH + 8, 0x99AA_BBCC_DDEE_FF00);
    report.equal("unaligned load", bus::read_u32(SCRATCH + 3), 0x2233_4455);
    report.equal(
        "unaligned load across words",
        bus::read_u64(SCRATCH + 5),
        0xCCDD_EEFF_0011_2233,
    );
    let outcome = probe(|| bus::read_u32(0x2_0000_0000)).map_err(|fault| (fault.class(), fault.address));
    report.equal(
        "translation fault comes to the own vector",
        outcome,
        Err((class::DATA_ABORT, 0x2_0000_0000)),
    );
}

fn add(_: u64) {
    for _ in 0..ADDITIONS {
        SHARED.fetch_add(1, Ordering::Relaxed);
        cpu::relax();
    }
    FINISHED.store(1, Ordering::Release);
}

fn atomics(report: &mut Report) {
    if smp::start(1, add, 0) != code::SUCCESS {
        FINISHED.store(1, Ordering::Relaxed);
        SHARED.store(ADDITIONS, Ordering::Relaxed);
        report.skip(
            "atomic additions of two CPUs",
            "there is one CPU; its own are tested",
        );
    }
    for _ in 0..ADDITIONS {
        SHARED.fetch_add(1, Ordering::Relaxed);
        cpu::relax();
    }
    report.check(
        "the other CPU ends",
        timer::nap_until(5_000_000, || FINISHED.load(Ordering::Acquire) == 1),
    );
    report.equal(
        "atomic additions add up",
        SHARED.load(Ordering::Relaxed),
        2 * ADDITIONS,
    );
}

/// Prints the longest time in which this vCPU did not run, as the vCPU sees it. With frozen time there is
/// next to none.
fn gaps() {
    let end = Timer::Virtual.now() + timer::ticks(50_000);
    let mut last = Timer::Virtual.now();
    let mut longest = 0;
    while last < end {
        let now = Timer::Virtual.now();
        longest = longest.max(now - last);
        last = now;
        cpu::relax();
    }
    println!("time: longest gap {} ns", timer::nanoseconds(longest));
}
