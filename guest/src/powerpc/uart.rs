// SPDX-License-Identifier: Apache-2.0
//! The VM's UART: an NS 16550A, polled.

/// Registers of the UART on a PPC405EP.
pub const BASE: usize = 0xEF60_0300;

const DATA: usize = BASE;
const LINE_STATUS: usize = BASE + 5;
const INTERRUPT_ENABLE: usize = BASE + 1;
const WHEN_EMPTY: u8 = 1 << 1;
const EMPTY: u8 = 1 << 5;
/// Attempts on a full FIFO before a byte is given up, so that a stuck UART cannot hang a guest.
const PATIENCE: u32 = 1_000_000;

/// Writes all of `bytes`.
pub fn write(bytes: &[u8]) {
    for byte in bytes {
        // SAFETY: a register of the UART, which is no memory.
        let is_empty = || unsafe { (LINE_STATUS as *const u8).read_volatile() } & EMPTY != 0;
        if (0..PATIENCE).any(|_| is_empty()) {
            // SAFETY: as above.
            unsafe { (DATA as *mut u8).write_volatile(*byte) }
        }
    }
}

/// Lets the UART interrupt as long as its transmitter is empty, or never.
pub fn interrupt_when_empty(is_on: bool) {
    let value = if is_on { WHEN_EMPTY } else { 0 };
    // SAFETY: a register of the UART, which is no memory.
    unsafe { (INTERRUPT_ENABLE as *mut u8).write_volatile(value) }
}

/// Loads one of the eight registers of the UART.
#[must_use]
pub fn register(index: usize) -> u8 {
    let address = (BASE + (index & 7)) as *const u8;
    // SAFETY: a register of the UART, which is no memory.
    unsafe { address.read_volatile() }
}
