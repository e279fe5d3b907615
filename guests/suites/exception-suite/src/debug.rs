// SPDX-License-Identifier: Apache-2.0
//! The guest's own debugging (Arm ARM DDI 0487 chapter D2): its debug exceptions come to its EL1. Single
//! steps stop after instructions that the hypervisor completes. Each CPU has debug registers of its own.

use core::sync::atomic::{AtomicU64, Ordering};

use bulkhead_guest::println;
use bulkhead_guest::report::Report;
use bulkhead_guest::vm::exception::{class, probe};
use bulkhead_guest::vm::psci::code;
use bulkhead_guest::vm::register::Register;
use bulkhead_guest::vm::sandbox::{DEVICES, STACK, Sandbox, Start};
use bulkhead_guest::vm::{cpu, debug, gic, pl011, smp, timer};

use crate::{End, Level, class_at, end_of, start, word_address};

/// `MDSCR_EL1`: SS; KDE; MDE.
const STEP: u64 = 1;
const KERNEL: u64 = 1 << 13;
const MONITOR: u64 = 1 << 15;
/// `DBGBCR<n>_EL1` and `DBGWCR<n>_EL1`: enabled, EL1 and EL0, all bytes; loads and stores.
const BREAK: u64 = 1 | 3 << 1 | 0xF << 5;
const WATCH: u64 = 1 | 3 << 1 | 3 << 3 | 0xFF << 5;
const NOP: u32 = 0xD503_201F;
/// `LDR w2, [x1]`, `STR wzr, [x1]`.
const LOAD: u32 = 0xB940_0022;
const STORE: u32 = 0xB900_003F;

/// `MSR` of a debug register (op0 2, op1 0, CRn 0) from x1.
const fn write_debug(crm: u32, op2: u32) -> u32 {
    0xD510_0001 | crm << 8 | op2 << 5
}

pub fn run(report: &mut Report, sandbox: &mut Sandbox) {
    debug::unlock();
    comparators(report, sandbox);
    steps(report, sandbox);
    two_cpus(report);
}

fn set(sandbox: &mut Sandbox, crm: u32, op2: u32, value: u64) {
    let outcome = sandbox.run(&[write_debug(crm, op2)], &start(Level::El1, [value, 0, 0]));
    assert!(outcome.finished(), "a debug register cannot be written");
}

/// `MDSCR_EL1`.
fn set_monitor(sandbox: &mut Sandbox, value: u64) {
    set(sandbox, 2, 2, value);
}

fn debugged(level: Level, address: u64, step: bool) -> Start {
    Start {
        debug: true,
        step,
        ..start(level, [address, 0, 0])
    }
}

/// Checks each comparator at both levels: it hits, and only while it is enabled.
fn comparators(report: &mut Report, sandbox: &mut Sandbox) {
    let fields = Register::DFR0.read();
    let (breakpoints, watchpoints) = (fields >> 12 & 0xF, fields >> 20 & 0xF);
    println!("{} breakpoints, {} watchpoints", breakpoints + 1, watchpoints + 1);
    set_monitor(sandbox, MONITOR | KERNEL);
    for number in 0..=breakpoints as u32 {
        set(sandbox, number, 4, word_address(1));
        set(sandbox, number, 5, BREAK);
        let hit = (class::BREAKPOINT, 1);
        hits(report, sandbox, "breakpoint", &[NOP, NOP, NOP], Some(hit));
        set(sandbox, number, 5, BREAK & !1);
        hits(report, sandbox, "breakpoint that is off", &[NOP, NOP, NOP], None);
    }
    for number in 0..=watchpoints as u32 {
        set(sandbox, number, 6, STACK);
        set(sandbox, number, 7, WATCH);
        for word in [LOAD, STORE] {
            hits(
                report,
                sandbox,
                "watchpoint",
                &[NOP, word],
                Some((class::WATCHPOINT, 1)),
            );
        }
        set(sandbox, number, 7, WATCH & !(1 << 3));
        hits(report, sandbox, "watchpoint for stores, load", &[NOP, LOAD], None);
        set(sandbox, number, 7, 0);
        hits(report, sandbox, "watchpoint that is off", &[NOP, STORE], None);
    }
    set_monitor(sandbox, 0);
}

/// Runs `words` with x1 on the stack at both levels; they must end at this class and word, or at their end.
fn hits(report: &mut Report, sandbox: &mut Sandbox, name: &str, words: &[u32], want: Option<(u64, u64)>) {
    for level in [Level::El1, Level::El0] {
        let outcome = sandbox.run(words, &debugged(level, STACK, false));
        let want = want.map_or(End::Finished, |(class, word)| End::Exception {
            class: class_at(level, class),
            rest: 0,
            word,
        });
        report.equal(name, end_of(&outcome, 0), want);
    }
}

/// One word, x1 and the level: the step must stop right after it, with the instruction completed by the CPU
/// or the hypervisor.
const STEPPED: &[(&str, u32, u64, bool)] = &[
    ("NOP", NOP, 0, true),
    ("load of memory", LOAD, STACK, true),
    (
        "load of an interrupt controller's register",
        LOAD,
        DEVICES + gic::DISTRIBUTOR + 4,
        true,
    ),
    (
        "store to an interrupt controller's register",
        STORE,
        DEVICES + gic::DISTRIBUTOR + 0x104,
        true,
    ),
    (
        "store to an interrupt controller's priorities",
        STORE,
        DEVICES + gic::DISTRIBUTOR + 0x440,
        true,
    ),
    (
        "load of a UART's register",
        LOAD,
        DEVICES + pl011::BASE + 0x18,
        true,
    ),
    (
        "store to a UART's register",
        STORE,
        DEVICES + pl011::BASE + 0x24,
        true,
    ),
    // PSCI_VERSION is 0x8400_0000 in x0, which is a number of ours instead: NOT_SUPPORTED.
    ("HVC", 0xD400_0002, 0, false),
    ("SMC", 0xD400_0003, 0, false),
    ("MRS of ID_AA64PFR0_EL1", 0xD538_0402, 0, false),
    ("MRS of DBGBVR0_EL1", 0xD530_0082, 0, false),
    ("MSR of DBGWVR0_EL1", 0xD510_00C2, 0, false),
    ("FMOV d0, x2", 0x9E67_0040, 0, true),
    ("DC CIVAC", 0xD50B_7E21, STACK, true),
];

fn steps(report: &mut Report, sandbox: &mut Sandbox) {
    for (name, word, address, everywhere) in STEPPED {
        println!("{name}:");
        set_monitor(sandbox, STEP | KERNEL);
        for level in [Level::El1, Level::El0] {
            if level == Level::El0 && !everywhere {
                continue;
            }
            let outcome = sandbox.run(&[*word, NOP, NOP], &debugged(level, *address, true));
            let class = class_at(level, class::STEP);
            let want = End::Exception {
                class,
                rest: 0,
                word: 1,
            };
            report.equal("step stops behind it", end_of(&outcome, 0), want);
            let outcome = sandbox.run(&[*word, NOP], &debugged(level, *address, false));
            let want = End::Exception {
                class,
                rest: 0,
                word: 0,
            };
            report.equal("without PSTATE.SS before it", end_of(&outcome, 0), want);
        }
        set_monitor(sandbox, 0);
        let outcome = sandbox.run(&[*word], &debugged(Level::El1, *address, true));
        report.equal(
            "not stepped: comes to its end",
            end_of(&outcome, 0),
            End::Finished,
        );
    }
}

/// The address that each CPU watches, and the number of its hits.
static WATCHED: [AtomicU64; 2] = [const { AtomicU64::new(0) }; 2];
static ROUNDS: AtomicU64 = AtomicU64::new(0);
static WRONG: AtomicU64 = AtomicU64::new(0);
/// Rounds of the other CPU.
const ENOUGH: u64 = 20;

/// Arms a watchpoint on its own word, then stores to both words. Its own must be hit each time, the other's
/// never.
fn watch(index: usize) -> u64 {
    let [first, second] = &WATCHED;
    let (own, other) = if index == 0 {
        (first, second)
    } else {
        (second, first)
    };
    debug::watch(own);
    timer::nap(50);
    let mut wrong = 0;
    for _ in 0..4 {
        let hit = probe(|| debug::store_watched(own)).map_err(|fault| (fault.class(), fault.address));
        let address = core::ptr::from_ref(own).addr() as u64;
        wrong += u64::from(hit != Err((class::WATCHPOINT, address)));
        wrong += u64::from(probe(|| debug::store_watched(other)).is_err());
        cpu::relax();
    }
    wrong += u64::from(Register::WVR0.read() != core::ptr::from_ref(own).addr() as u64);
    debug::unwatch();
    wrong
}

fn other_cpu(_: u64) {
    gic::init_cpu();
    gic::enable(timer::Timer::Virtual.line());
    debug::unlock();
    for _ in 0..ENOUGH {
        WRONG.fetch_add(watch(1), Ordering::Relaxed);
        ROUNDS.fetch_add(1, Ordering::Release);
    }
}

fn two_cpus(report: &mut Report) {
    let started = smp::start(1, other_cpu, 0);
    if started != code::SUCCESS {
        report.skip("debug registers of two CPUs", "there is one CPU");
        return;
    }
    let mut wrong = 0;
    let mut rounds = 0;
    while ROUNDS.load(Ordering::Acquire) < ENOUGH && rounds < 100 * ENOUGH {
        wrong += watch(0);
        rounds += 1;
    }
    report.equal("the other CPU's rounds", ROUNDS.load(Ordering::Acquire), ENOUGH);
    report.equal("watchpoints of CPU 0 that went wrong", wrong, 0);
    report.equal(
        "watchpoints of CPU 1 that went wrong",
        WRONG.load(Ordering::Relaxed),
        0,
    );
}
