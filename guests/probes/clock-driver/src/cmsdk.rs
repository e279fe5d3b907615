// SPDX-License-Identifier: Apache-2.0
//! A timer of the Cortex-M System Design Kit (Arm DDI 0479D, section 4.1).

use bulkhead_guest::device::Device;

/// Enable, and interrupt enable.
const CONTROL: usize = 0;
const ON: u32 = 1 | 1 << 3;
/// The cycles that are left.
const VALUE: usize = 4;
/// The cycles of the next period; none is to follow.
const RELOAD: usize = 8;
/// The interrupt; a store of 1 ends it.
const INTERRUPT: usize = 0xC;
/// Cycles to the interrupt.
const AHEAD: u32 = 500;

/// Lets the timer interrupt soon.
pub(crate) fn start(device: Device) {
    device.store(CONTROL, 0);
    device.store(RELOAD, 0);
    device.store(VALUE, AHEAD);
    device.store(CONTROL, ON);
}

/// Tells whether the timer asks for an interrupt.
pub(crate) fn has_rung(device: Device) -> bool {
    device.load(INTERRUPT) == 1
}

/// Ends the interrupt.
pub(crate) fn clear(device: Device) {
    device.store(INTERRUPT, 1);
}

/// Lets the timer interrupt no more.
pub(crate) fn stop(device: Device) {
    device.store(CONTROL, 0);
}
