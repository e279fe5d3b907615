// SPDX-License-Identifier: Apache-2.0
//! The VM's UART: Arm PrimeCell PL011 (DDI 0183), polled for output, with its transmit interrupt for tests.

use super::{bus, cpu};

/// Registers of the UART on the default machine.
pub const BASE: u64 = 0x0900_0000;
/// Interrupt of the UART on the default machine.
pub const LINE: u32 = 33;

const DATA: u64 = 0x000;
const FLAGS: u64 = 0x018;
const CONTROL: u64 = 0x030;
const INTERRUPT_MASK: u64 = 0x038;
const INTERRUPT_CLEAR: u64 = 0x044;

/// DDI 0183 section 3.3.3: transmit FIFO full.
const FLAG_TRANSMIT_FULL: u32 = 1 << 5;
/// DDI 0183 section 3.3.10: transmit interrupt.
const TRANSMIT_INTERRUPT: u32 = 1 << 5;
/// DDI 0183 section 3.3.8: UART, transmitter and receiver enabled.
const CONTROL_ENABLED: u32 = 1 | 1 << 8 | 1 << 9;

/// Attempts on a full FIFO before a byte is given up, so that a stuck UART cannot hang a guest.
const PATIENCE: u32 = 1_000_000;

/// Writes all of `bytes`.
pub fn write(bytes: &[u8]) {
    for byte in bytes {
        let ready = cpu::spin_until(PATIENCE, || bus::read_u32(BASE + FLAGS) & FLAG_TRANSMIT_FULL == 0);
        if ready {
            bus::write_u32(BASE + DATA, u32::from(*byte));
        }
    }
}

/// Enables the UART and its transmit interrupt, which is level-sensitive: it stays until cleared.
pub fn enable_transmit_interrupt() {
    bus::write_u32(BASE + CONTROL, CONTROL_ENABLED);
    bus::write_u32(BASE + INTERRUPT_CLEAR, TRANSMIT_INTERRUPT);
    bus::write_u32(BASE + INTERRUPT_MASK, TRANSMIT_INTERRUPT);
}

/// Takes the level of the transmit interrupt back.
pub fn clear_transmit_interrupt() {
    bus::write_u32(BASE + INTERRUPT_CLEAR, TRANSMIT_INTERRUPT);
}

/// Puts the UART back to how it comes out of reset, transmitter on.
pub fn reset() {
    disable_interrupts();
    bus::write_u32(BASE + CONTROL, CONTROL_ENABLED);
}

/// Masks all interrupts of the UART.
pub fn disable_interrupts() {
    bus::write_u32(BASE + INTERRUPT_MASK, 0);
    bus::write_u32(BASE + INTERRUPT_CLEAR, 0x7FF);
}
