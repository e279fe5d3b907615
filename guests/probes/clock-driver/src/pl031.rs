// SPDX-License-Identifier: Apache-2.0
//! A PL031 real-time clock (Arm DDI 0224).

use bulkhead_guest::device::Device;

/// The time in seconds.
const DATA: usize = 0;
/// The time of the interrupt.
const MATCH: usize = 4;
/// The mask of the interrupt.
const MASK: usize = 0x10;
/// The interrupt without the mask.
const RAW: usize = 0x14;
/// Ends the interrupt.
const CLEAR: usize = 0x1C;

/// Lets the clock interrupt at once.
pub(crate) fn start(device: Device) {
    device.store(MASK, 1);
    device.store(MATCH, device.load(DATA));
}

/// Tells whether the clock asks for an interrupt.
pub(crate) fn has_rung(device: Device) -> bool {
    device.load(RAW) == 1
}

/// Ends the interrupt.
pub(crate) fn clear(device: Device) {
    device.store(CLEAR, 1);
}

/// Lets the clock interrupt no more.
pub(crate) fn stop(device: Device) {
    device.store(MASK, 0);
}
