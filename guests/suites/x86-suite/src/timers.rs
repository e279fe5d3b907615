// SPDX-License-Identifier: Apache-2.0
//! Timers: short periods and times far away leave the program its progress, nothing comes that was masked
//! when its time was, and HLT ends with an interrupt alone.

use crate::{EXTERNAL, TAKEN, taken};
use bulkhead_guest::pc::{apic, cpu};
use bulkhead_guest::println;
use core::sync::atomic::Ordering;

const VECTOR: u8 = 0x61;
const PERIODIC: u64 = 1 << 17;
const BY_DEADLINE: u64 = 2 << 17;
const MASKED: u64 = 1 << 16;
const CURRENT: u32 = 0x39;
/// The timer divides by 1, by 128.
const BY_ONE: u64 = 0xB;
const BY_128: u64 = 0xA;
const DEADLINE: u32 = 0x6E0;
/// Leaf 1 of CPUID, ECX: TSC deadline.
const HAS_DEADLINE: u32 = 1 << 24;
/// LINT0 of the local APIC: interrupts of the 8259.
const LINT0: u32 = 0x35;
const FROM_8259: u64 = 7 << 8;
/// The 8259 pair and the PIT: see guest `x86-direct`.
const PIC: u16 = 0x20;
const PIC_MASK: u16 = 0x21;
const SECOND_MASK: u16 = 0xA1;
const PIT: u16 = 0x40;
const PIT_CONTROL: u16 = 0x43;
const PIT_RATE: u8 = 0x34;
/// Steps of work.
const WORK: u64 = 20_000;
/// Ticks of the counter.
const SOON: u64 = 100_000;
const LATE: u64 = 2_000_000;

fn work() {
    let mut value = 1_u64;
    for _ in 0..WORK {
        value = core::hint::black_box(value.wrapping_mul(5));
    }
}

/// Sets the timer of the local APIC.
fn set(vector: u64, divide: u64, count: u64) {
    apic::write(apic::TIMER, vector);
    apic::write(apic::DIVIDE, divide);
    apic::write(apic::INITIAL, count);
}

fn wait(ticks: u64) {
    let end = cpu::counter() + ticks;
    while cpu::counter() < end {}
}

/// Masks the 8259 pair, which the firmware of a bare PC leaves on.
pub(crate) fn silence() {
    cpu::write_port8(PIC_MASK, 0xFF);
    cpu::write_port8(SECOND_MASK, 0xFF);
}

/// Sets counter 0 of the PIT to a period.
fn set_pit(period: u16) {
    cpu::write_port8(PIT_CONTROL, PIT_RATE);
    cpu::write_port8(PIT, period as u8);
    cpu::write_port8(PIT, (period >> 8) as u8);
}

/// Tries short periods: the program goes on, and the counter counts. The bare PC has no time for still
/// shorter ones.
fn short() {
    for period in [5000, 700, 300] {
        set(PERIODIC | u64::from(VECTOR), BY_ONE, period);
        cpu::unmask();
        work();
        cpu::mask();
        let count = apic::read(CURRENT);
        set(MASKED, BY_ONE, 0);
        cpu::open();
        println!(
            "period {period}: {} taken, count {}",
            taken() != 0,
            count <= period
        );
    }
    // ICW1: edges, a single 8259, ICW4 follows. ICW4: 8086 mode, automatic end.
    apic::write(LINT0, FROM_8259);
    for (port, value) in [(PIC, 0x13), (PIC_MASK, EXTERNAL), (PIC_MASK, 3), (PIC_MASK, 0xFE)] {
        cpu::write_port8(port, value);
    }
    for period in [2, 3, 10] {
        set_pit(period);
        cpu::unmask();
        work();
        cpu::mask();
        println!("PIT {period}: {} taken", taken() != 0);
    }
    silence();
    cpu::open();
    taken();
}

/// Times that do not come, and times that came while the vector was masked.
fn masked() {
    set(MASKED | u64::from(VECTOR), BY_ONE, SOON);
    wait(2 * SOON);
    let count = apic::read(CURRENT);
    apic::write(apic::TIMER, VECTOR.into());
    cpu::unmask();
    wait(SOON);
    cpu::mask();
    println!("once, masked: count {count}, {} taken", taken());
    set(MASKED | PERIODIC | u64::from(VECTOR), BY_ONE, 2 * SOON);
    wait(3 * SOON);
    apic::write(apic::TIMER, PERIODIC | u64::from(VECTOR));
    let early = taken();
    cpu::unmask();
    wait(2 * SOON);
    cpu::mask();
    let soon = taken();
    set(MASKED, BY_ONE, 0);
    println!("period, masked: {early} taken, then {}", soon != 0);
    set(u64::from(VECTOR), BY_128, 0xFFFF_FFFF);
    cpu::unmask();
    work();
    cpu::mask();
    let count = apic::read(CURRENT);
    set(MASKED, BY_ONE, 0);
    println!(
        "far: {} taken, count {}",
        taken(),
        count < 0xFFFF_FFFF && count > 0xFFF0_0000
    );
}

/// Returns how much is wrong with the TSC deadline (SDM 3A, 11.5.4.1).
fn deadlines() -> u32 {
    let [_, _, features, _] = cpu::cpuid(1, 0);
    if features & HAS_DEADLINE == 0 {
        return 0;
    }
    let mut wrong = 0;
    let mut must = |name: &str, holds: bool| {
        if !holds {
            println!("deadline: {name}");
            wrong += 1;
        }
    };
    apic::write(apic::TIMER, BY_DEADLINE | u64::from(VECTOR));
    for far in [u64::MAX - 15, u64::MAX, 1 << 63] {
        cpu::write_msr(DEADLINE, far);
        cpu::unmask();
        work();
        cpu::mask();
        must("comes too early", taken() == 0 && cpu::read_msr(DEADLINE) == far);
    }
    apic::write(apic::TIMER, MASKED | BY_DEADLINE | u64::from(VECTOR));
    cpu::write_msr(DEADLINE, cpu::counter() + SOON);
    wait(2 * SOON);
    must(
        "is kept though its time has come, masked",
        cpu::read_msr(DEADLINE) == 0,
    );
    cpu::write_msr(DEADLINE, cpu::counter() + SOON);
    wait(2 * SOON);
    apic::write(apic::TIMER, BY_DEADLINE | u64::from(VECTOR));
    cpu::open();
    must("interrupts though it was masked", taken() == 0);
    cpu::write_msr(DEADLINE, cpu::counter() - 1);
    cpu::open();
    must(
        "in the past does not interrupt",
        taken() == 1 && cpu::read_msr(DEADLINE) == 0,
    );
    apic::write(apic::TIMER, MASKED);
    wrong
}

/// HLT ends with an interrupt, not with a time at which a device would have interrupted.
fn halt() {
    for period in [10, 100, 1193] {
        set_pit(period);
        let start = cpu::counter();
        set(VECTOR.into(), BY_ONE, LATE);
        cpu::wait();
        let slept = cpu::counter() - start >= LATE;
        println!("HLT, PIT {period} masked: {} taken, slept {slept}", taken());
    }
    set(MASKED | PERIODIC | u64::from(VECTOR), BY_ONE, SOON);
    set_pit(20_000);
    cpu::write_port8(PIC_MASK, 0xFE);
    // An edge that the 8259 has kept comes at once.
    cpu::open();
    taken();
    let start = cpu::counter();
    cpu::wait();
    let slept = cpu::counter() - start > 5 * SOON;
    println!(
        "HLT, timer masked: {} taken, slept {slept}",
        TAKEN.load(Ordering::Relaxed)
    );
    silence();
    set(MASKED, BY_ONE, 0);
}

/// Tries them all.
pub(crate) fn all() {
    short();
    masked();
    println!("deadline: {} wrong", deadlines());
    halt();
}
