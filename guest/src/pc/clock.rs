// SPDX-License-Identifier: Apache-2.0
//! Time: the rate of the time-stamp counter, and sleep by the timer of the local APIC.

use super::{apic, cpu};

/// The PM timer and its rate in Hz (ACPI 6.4, 4.8.2.1).
const PM_TIMER: u16 = 0x608;
const PM_HERTZ: u64 = 3_579_545;
/// Ticks of the PM timer in a measurement of the counter, and the unit of the result in Hz.
const MEASURED: u64 = 10_000;
const UNIT: u64 = 1_000_000;

/// Measures the rate of the counter in Hz, rounded to 1 MHz. It takes 3 ms.
#[must_use]
pub fn hertz() -> u64 {
    let read = || u64::from(cpu::read_port32(PM_TIMER));
    let (start, from) = (read(), cpu::counter());
    let passed = loop {
        let passed = read().wrapping_sub(start) & 0xFF_FFFF;
        if passed >= MEASURED {
            break passed;
        }
        core::hint::spin_loop();
    };
    let rate = (cpu::counter() - from) * PM_HERTZ / passed;
    (rate + UNIT / 2) / UNIT * UNIT
}

/// Waits in HLT until the counter is at `deadline`. The program's handler gets the interrupt, with this
/// vector, and ends it.
pub fn sleep_until(vector: u8, deadline: u64) {
    while cpu::counter() < deadline {
        apic::set_deadline(vector, deadline);
        cpu::wait();
    }
}
