// SPDX-License-Identifier: Apache-2.0
//! Tests of PSCI (Arm DEN 0022) and SMCCC (Arm DEN 0028) as a VM with two vCPUs sees them.
//!
//! Runs on the bare board too; checks of what only the hypervisor promises are skipped there. Bootargs:
//! `reset=1` tests `SYSTEM_RESET` instead (once: after the restart it finds its restart counted and ends).
#![no_std]
#![no_main]
#![forbid(unsafe_code)]

use core::sync::atomic::{AtomicU64, Ordering};

use bulkhead_guest::report::Report;
use bulkhead_guest::vm::psci::{self, Conduit, affinity, code, function};
use bulkhead_guest::vm::register::Register;
use bulkhead_guest::vm::timer::{self, Timer};
use bulkhead_guest::vm::{self, Machine, exception, gic, smp};
use bulkhead_guest::{arguments, hypercall, println};

bulkhead_guest::vm_main!(main);

/// The CPU that is switched on and off.
const OTHER: usize = 1;
/// The number of rounds.
const ROUNDS: u64 = 100;
/// The longest time that the other CPU may take, in microseconds.
const PATIENCE: u64 = 1_000_000;
/// An argument with all its bytes different.
const CONTEXT: u64 = 0x0123_4567_89AB_CDEF;

static STARTS: AtomicU64 = AtomicU64::new(0);
static CONTEXT_SEEN: AtomicU64 = AtomicU64::new(0);
static LEVEL_SEEN: AtomicU64 = AtomicU64::new(0);
static CONTROL_SEEN: AtomicU64 = AtomicU64::new(u64::MAX);
static ENABLED_FIRST: AtomicU64 = AtomicU64::new(0);
static ENABLED_OTHERWISE: AtomicU64 = AtomicU64::new(0);
static RELEASE: AtomicU64 = AtomicU64::new(0);

fn main(machine: Machine) {
    gic::init_distributor();
    gic::init_cpu();
    gic::enable(Timer::Virtual.line());
    if arguments::number(machine.bootargs(), "reset", 0) == 1 {
        reset();
        return;
    }
    let mut report = Report::new();
    for conduit in [Conduit::Hvc, Conduit::Smc] {
        if conduit == Conduit::Smc && !vm::is_hypervised() {
            report.skip("SMC", "no firmware below this machine");
            continue;
        }
        versions(&mut report, conduit);
        features(&mut report, conduit);
        unknown(&mut report, conduit);
        errors(&mut report, conduit);
        suspend(&mut report, conduit);
    }
    if vm::is_hypervised() {
        identity(&mut report);
    }
    on_and_off(&mut report);
    report.finish();
}

/// `got` and the conduit in one name.
macro_rules! equal {
    ($report:expr, $conduit:expr, $name:literal, $got:expr, $want:expr) => {
        match $conduit {
            Conduit::Hvc => $report.equal(concat!("hvc ", $name), $got, $want),
            Conduit::Smc => $report.equal(concat!("smc ", $name), $got, $want),
        }
    };
}

fn versions(report: &mut Report, conduit: Conduit) {
    let version = psci::code_of(conduit, function::VERSION, [0; 3]);
    equal!(report, conduit, "PSCI_VERSION is 1.1", version, 0x1_0001);
    let kind = psci::code_of(conduit, function::MIGRATE_INFO_TYPE, [0; 3]);
    equal!(
        report,
        conduit,
        "MIGRATE_INFO_TYPE is 2 (nothing to migrate)",
        kind,
        2
    );
    let smccc = psci::code_of(conduit, function::SMCCC_VERSION, [0; 3]);
    if vm::is_hypervised() {
        equal!(
            report,
            conduit,
            "SMCCC_VERSION is 1.1 or later",
            smccc >= 0x1_0001,
            true
        );
        let itself = psci::code_of(
            conduit,
            function::SMCCC_ARCH_FEATURES,
            [function::SMCCC_VERSION.into(), 0, 0],
        );
        equal!(
            report,
            conduit,
            "SMCCC_ARCH_FEATURES knows SMCCC_VERSION",
            itself,
            0
        );
        let other = psci::code_of(conduit, function::SMCCC_ARCH_FEATURES, [0x8000_3FFF, 0, 0]);
        equal!(
            report,
            conduit,
            "SMCCC_ARCH_FEATURES of an unknown function",
            other,
            code::NOT_SUPPORTED
        );
    }
}

fn features(report: &mut Report, conduit: Conduit) {
    let feature = |id: u32| psci::code_of(conduit, function::FEATURES, [id.into(), 0, 0]);
    for id in [
        function::VERSION,
        function::CPU_SUSPEND,
        function::CPU_OFF,
        function::CPU_ON,
        function::AFFINITY_INFO,
        function::MIGRATE_INFO_TYPE,
        function::SYSTEM_OFF,
        function::SYSTEM_RESET,
        function::FEATURES,
    ] {
        if feature(id) < 0 {
            println!("PSCI_FEATURES of {id:#x} is {}", feature(id));
        }
        equal!(
            report,
            conduit,
            "PSCI_FEATURES has a mandatory function",
            feature(id) >= 0,
            true
        );
    }
    if vm::is_hypervised() {
        equal!(
            report,
            conduit,
            "PSCI_FEATURES has SMCCC_VERSION",
            feature(function::SMCCC_VERSION),
            0
        );
    }
    equal!(
        report,
        conduit,
        "PSCI_FEATURES of no function",
        feature(0x8400_00FF),
        code::NOT_SUPPORTED
    );
    equal!(
        report,
        conduit,
        "PSCI_FEATURES of another service",
        feature(0xC600_0000),
        code::NOT_SUPPORTED
    );
}

fn unknown(report: &mut Report, conduit: Conduit) {
    for id in [0x8400_00FF, 0xC400_001F, 0x8300_0000, 0xC200_0000, 0xBF00_FFFF] {
        let answer = psci::code_of(conduit, id, [1, 2, 3]);
        equal!(
            report,
            conduit,
            "an unknown function is not supported",
            answer,
            code::NOT_SUPPORTED
        );
    }
}

fn errors(report: &mut Report, conduit: Conduit) {
    let on = |target: u64, entry: u64| psci::code_of(conduit, function::CPU_ON, [target, entry, 0]);
    equal!(
        report,
        conduit,
        "CPU_ON of itself",
        on(0, smp::entry()),
        code::ALREADY_ON
    );
    equal!(
        report,
        conduit,
        "CPU_ON of a CPU there is not",
        on(0xF7, smp::entry()),
        code::INVALID_PARAMETERS
    );
    equal!(
        report,
        conduit,
        "CPU_ON of another cluster",
        on(0x1_0000, smp::entry()),
        code::INVALID_PARAMETERS
    );
    equal!(
        report,
        conduit,
        "CPU_ON with bit 31",
        on(0x8000_0001, smp::entry()),
        code::INVALID_PARAMETERS
    );
    if vm::is_hypervised() {
        let answer = on(OTHER as u64, 0xFFFF_0000_0000);
        equal!(
            report,
            conduit,
            "CPU_ON at an entry without memory",
            answer,
            code::INVALID_ADDRESS
        );
    }
    let info = |target: u64| psci::code_of(conduit, function::AFFINITY_INFO, [target, 0, 0]);
    equal!(report, conduit, "AFFINITY_INFO of itself", info(0), affinity::ON);
    equal!(
        report,
        conduit,
        "AFFINITY_INFO of the other",
        info(OTHER as u64),
        affinity::OFF
    );
    equal!(
        report,
        conduit,
        "AFFINITY_INFO of a CPU there is not",
        info(0xF7),
        code::INVALID_PARAMETERS
    );
}

/// `CPU_SUSPEND` to standby is a WFI that says how it went.
fn suspend(report: &mut Report, conduit: Conduit) {
    let timer = Timer::Virtual;
    let deadline = timer.now() + timer::ticks(500);
    timer.arm(deadline);
    let answer = psci::code_of(conduit, function::CPU_SUSPEND, [0; 3]);
    equal!(report, conduit, "CPU_SUSPEND to standby", answer, code::SUCCESS);
    while !timer.has_fired() {
        // The CPU may wake early (DEN 0022 section 5.4).
        psci::code_of(conduit, function::CPU_SUSPEND, [0; 3]);
    }
    equal!(
        report,
        conduit,
        "CPU_SUSPEND wakes at the deadline",
        timer.now() >= deadline,
        true
    );
    timer::nap(1);
}

/// Checks that the vendor hypervisor service names itself (DEN 0028 section 6.2: UID).
fn identity(report: &mut Report) {
    let uid = psci::call(Conduit::Hvc, 0x8600_FF01, [0; 3]);
    let known = uid.iter().any(|word| *word as u32 != u32::MAX && *word != 0);
    report.check("the hypervisor service has a UID", known);
    report.check("hypercall Null", hypercall::null().is_ok());
}

fn other_cpu(context: u64) {
    CONTEXT_SEEN.store(context, Ordering::Relaxed);
    LEVEL_SEEN.store(Register::CurrentEL.read() >> 2, Ordering::Relaxed);
    CONTROL_SEEN.store(Register::SCTLR.read(), Ordering::Relaxed);
    note_enabled();
    STARTS.store(STARTS.load(Ordering::Relaxed) + 1, Ordering::Release);
    if context == CONTEXT {
        // Held until the other side has looked at a CPU that is on.
        gic::init_cpu();
        gic::enable(Timer::Virtual.line());
        timer::nap_until(PATIENCE, || RELEASE.load(Ordering::Acquire) == 1);
    }
}

/// Notes the private lines that are enabled at the first start, and the number of starts with other ones.
fn note_enabled() {
    let private = 0..gic::FIRST_SHARED;
    let enabled = private.fold(0, |word, line| word | u64::from(gic::is_enabled(line)) << line);
    if STARTS.load(Ordering::Relaxed) == 0 {
        ENABLED_FIRST.store(enabled, Ordering::Relaxed);
    } else if enabled != ENABLED_FIRST.load(Ordering::Relaxed) {
        ENABLED_OTHERWISE.fetch_add(1, Ordering::Relaxed);
    }
}

fn on_and_off(report: &mut Report) {
    let info = || psci::code_of(Conduit::Hvc, function::AFFINITY_INFO, [OTHER as u64, 0, 0]);
    report.equal("CPU_ON", smp::start(OTHER, other_cpu, CONTEXT), code::SUCCESS);
    let started = timer::nap_until(PATIENCE, || STARTS.load(Ordering::Acquire) == 1);
    report.check("the other CPU starts", started);
    report.equal(
        "its context arrives",
        CONTEXT_SEEN.load(Ordering::Relaxed),
        CONTEXT,
    );
    report.equal("it starts at EL1", LEVEL_SEEN.load(Ordering::Relaxed), 1);
    report.equal(
        "its MMU and caches are off",
        CONTROL_SEEN.load(Ordering::Relaxed) & 0x1005,
        0,
    );
    report.equal("AFFINITY_INFO while it is on", info(), affinity::ON);
    let again = smp::start(OTHER, other_cpu, CONTEXT);
    report.check(
        "CPU_ON while it is on",
        again == code::ALREADY_ON || again == code::ON_PENDING,
    );
    RELEASE.store(1, Ordering::Release);
    report.check(
        "it switches itself off",
        timer::nap_until(PATIENCE, || info() == affinity::OFF),
    );

    let mut good = 0;
    for round in 0..ROUNDS {
        let on = smp::start(OTHER, other_cpu, round) == code::SUCCESS;
        let ran = timer::nap_until(PATIENCE, || STARTS.load(Ordering::Acquire) == round + 2);
        let off = timer::nap_until(PATIENCE, || info() == affinity::OFF);
        let context = CONTEXT_SEEN.load(Ordering::Relaxed) == round;
        good += u64::from(on && ran && off && context);
    }
    report.equal("on and off a hundred times", good, ROUNDS);
    if vm::is_hypervised() {
        // On the board the controller keeps what the first start enabled.
        let otherwise = ENABLED_OTHERWISE.load(Ordering::Relaxed);
        report.equal("each start finds the same private lines enabled", otherwise, 0);
    }
    // No call above may have raised an exception, which `probe` would have had to skip.
    report.equal("no exception", exception::probed_faults(), 0);
}

fn reset() {
    if !vm::is_hypervised() {
        println!("psci: reset is tested under the hypervisor only, which counts it");
        return;
    }
    match hypercall::partition_status(hypercall::SELF) {
        Ok(status) if status.restarts == 0 => {
            println!("psci: resetting");
            psci::system_reset(Conduit::Hvc);
            println!("FAIL SYSTEM_RESET returned");
        }
        Ok(status) => {
            let mut report = Report::new();
            report.equal("SYSTEM_RESET restarts once", status.restarts, 1);
            report.equal("it is no health event", status.events, 0);
            report.equal("nothing is remembered", STARTS.load(Ordering::Relaxed), 0);
            report.finish();
        }
        Err(error) => println!("FAIL own status: {error:?}"),
    }
}
