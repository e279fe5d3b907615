// SPDX-License-Identifier: Apache-2.0
//! The second CMSDK APB timer (Arm DDI 0479D, section 4.1), as a clock for alarms; the first is often the system's own.
//!
//! It counts down with the CPU's clock and starts over from `reload`, so what it has counted since then is how late a handler is.

use crate::register;

const BASE: usize = 0x4000_1000;
const CONTROL: usize = BASE;
const VALUE: usize = BASE + 4;
const RELOAD: usize = BASE + 8;
const INTERRUPT: usize = BASE + 0xc;

const ENABLE: u32 = 1 << 0;
const ENABLE_INTERRUPT: u32 = 1 << 3;

/// Asks for an interrupt every `ticks` of the clock.
pub fn start(ticks: u32) {
    register::write(CONTROL, 0);
    register::write(RELOAD, ticks.wrapping_sub(1));
    register::write(VALUE, ticks.wrapping_sub(1));
    register::write(CONTROL, ENABLE | ENABLE_INTERRUPT);
}

/// Ends the interrupt.
pub fn acknowledge() {
    register::write(INTERRUPT, 1);
}

/// What is left until the next alarm.
#[must_use]
pub fn left() -> u32 {
    register::read(VALUE)
}
