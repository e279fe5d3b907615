// SPDX-License-Identifier: Apache-2.0
//! Measurements that need one CPU only.

use crate::arrival::{self, SGI_MEASURED};
use crate::{WARM_UP, calls, measure, median, show, ticks_of};
use bulkhead_guest::vm::timer::Timer;
use bulkhead_guest::vm::{bus, cpu, gic, pl011};

/// From arming to the deadline: more than it takes to be ready.
const AHEAD: u64 = 5000;
/// Ticks in which another partition is loaded; more than it takes.
const LOADED: u64 = 2_000_000;
/// Offset of UARTIBRD, which keeps what is written and does nothing.
const DIVISOR: u64 = 0x24;
/// Flag register.
const FLAGS: u64 = 0x18;
/// A shared line that no device of the board uses.
const LINE: u32 = 40;

/// The time in which all other VMs of the pCPU start and come to rest; more than it takes.
const HEAD_START: u64 = 200_000_000;
/// A time that is far away; more than all measurements take.
const LATE: u64 = 2_000_000_000;

/// Measures.
pub fn run(bare: bool) {
    calls::run(bare);
    console();
    registers();
    measure("timer-busy", || timer(false));
    measure("timer-idle", || timer(true));
    gic::enable(SGI_MEASURED);
    measure("sgi-self", sgi_to_self);
}

/// Measures the timer of a vCPU whose pCPU has other VMs, all of which are at rest.
pub fn run_among_others() {
    arrival::forget();
    Timer::Virtual.arm(Timer::Virtual.now() + HEAD_START);
    arrival::wait(true);
    measure("timer-idle", || timer(true));
}

/// Waits without end.
pub fn rest() -> ! {
    loop {
        cpu::wait_for_interrupt();
    }
}

/// Waits for a time that no measurement reaches.
pub fn rest_until_late() -> ! {
    Timer::Virtual.arm(Timer::Virtual.now() + LATE);
    rest()
}

fn read(name: &str, address: u64) {
    measure(name, || {
        ticks_of(|| {
            let _ = bus::read_u32(address);
        })
    });
}

fn write(name: &str, address: u64, value: u32) {
    measure(name, || ticks_of(|| bus::write_u32(address, value)));
}

/// Measures a register of the UART, which the kernel answers.
fn console() {
    let address = pl011::BASE + DIVISOR;
    measure("uart-read", || {
        ticks_of(|| {
            let _ = bus::read_u32(address);
        })
    });
    write("uart-write", address, 1);
    measure("uart-flags-read", || {
        ticks_of(|| {
            let _ = bus::read_u32(pl011::BASE + FLAGS);
        })
    });
    // A byte in the middle of a line. The name of the next figure follows it.
    write("uart-byte", pl011::BASE, b' '.into());
}

fn registers() {
    let word = u64::from(LINE / 32) * 4;
    let bit = 1 << (LINE % 32);
    read("gicd-ctlr-read", gic::DISTRIBUTOR + gic::offset::CONTROL);
    read(
        "gicd-isenabler-read",
        gic::DISTRIBUTOR + gic::offset::SET_ENABLE + word,
    );
    write(
        "gicd-isenabler-write",
        gic::DISTRIBUTOR + gic::offset::SET_ENABLE + word,
        bit,
    );
    write(
        "gicd-icenabler-write",
        gic::DISTRIBUTOR + gic::offset::CLEAR_ENABLE + word,
        bit,
    );
    read(
        "gicd-ipriorityr-read",
        gic::DISTRIBUTOR + gic::offset::PRIORITY + u64::from(LINE),
    );
    write(
        "gicd-ipriorityr-write",
        gic::DISTRIBUTOR + gic::offset::PRIORITY + u64::from(LINE),
        0xA0A0_A0A0,
    );
    if gic::is_version2() {
        // There are no redistributors.
        return;
    }
    let redistributor = gic::redistributor(0);
    read("gicr-typer-read", redistributor + gic::offset::REDISTRIBUTOR_TYPE);
    read(
        "gicr-isenabler-read",
        redistributor + gic::SGI_FRAME + gic::offset::SET_ENABLE,
    );
    write(
        "gicr-isenabler-write",
        redistributor + gic::SGI_FRAME + gic::offset::SET_ENABLE,
        1 << SGI_MEASURED,
    );
}

/// Shows how late the interrupt of the timer preempts another partition.
pub fn late() {
    // The other partition is loaded first.
    arrival::forget();
    Timer::Virtual.arm(Timer::Virtual.now() + LOADED);
    arrival::wait(true);
    show("late", median(WARM_UP, || timer(true)));
}

fn timer(idle: bool) -> u64 {
    arrival::forget();
    let deadline = Timer::Virtual.now() + AHEAD;
    Timer::Virtual.arm(deadline);
    arrival::wait(idle) - deadline
}

fn sgi_to_self() -> u64 {
    arrival::forget();
    let start = Timer::Virtual.now();
    gic::send(SGI_MEASURED, 1);
    arrival::wait(false) - start
}
