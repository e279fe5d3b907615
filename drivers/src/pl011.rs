// SPDX-License-Identifier: Apache-2.0
//! Arm PrimeCell UART PL011 (DDI 0183G) as a console.
//!
//! Firmware has set baud rate and line control; they are left alone. Transmission is polled and never
//! waits, reception interrupts when the FIFO is half full or a byte has sat in it for 32 bit times.

use bulkhead_arch_support::{Mmio, relax};

/// Data register (DDI 0183G section 3.3.1).
const DR: usize = 0x000;
/// Flag register (3.3.3).
const FR: usize = 0x018;
/// Line control register (3.3.7).
const LCR_H: usize = 0x02C;
/// Control register (3.3.8).
const CR: usize = 0x030;
/// Interrupt mask set/clear register (3.3.10).
const IMSC: usize = 0x038;
/// Interrupt clear register (3.3.13).
const ICR: usize = 0x044;

const FR_BUSY: u32 = 1 << 3;
const FR_RXFE: u32 = 1 << 4;
const FR_TXFF: u32 = 1 << 5;
const LCR_H_FEN: u32 = 1 << 4;
const LCR_H_WLEN_8: u32 = 3 << 5;
const CR_UARTEN: u32 = 1 << 0;
const CR_TXE: u32 = 1 << 8;
const CR_RXE: u32 = 1 << 9;
const INTERRUPT_RECEIVE: u32 = 1 << 4;
const INTERRUPT_RECEIVE_TIMEOUT: u32 = 1 << 6;
const INTERRUPT_ALL: u32 = 0x7FF;

/// Polls of the busy flag before [`Pl011::flush`] gives up: the FIFO's 32 characters at 1200 baud last
/// 0.27 s; a poll of a device register takes 50 ns or more.
const FLUSH_POLLS: u32 = 6_000_000;

/// The UART.
#[derive(Debug)]
pub struct Pl011 {
    registers: Mmio,
}

impl Pl011 {
    /// Takes the UART whose registers these are, and switches transmitter and FIFOs on.
    #[must_use]
    pub fn new(registers: Mmio) -> Self {
        registers.write32(IMSC, 0);
        let mut uart = Self { registers };
        let control = uart.registers.read32(CR);
        if uart.registers.read32(LCR_H) & LCR_H_FEN == 0 {
            // The line control is changed while the UART is off and has sent everything (Arm DDI 0183G,
            // 3.3.8).
            uart.flush();
            uart.registers.write32(CR, control & !CR_UARTEN);
            uart.registers.write32(LCR_H, LCR_H_FEN | LCR_H_WLEN_8);
        }
        // The other bits are flow control.
        uart.registers.write32(CR, control | CR_UARTEN | CR_TXE | CR_RXE);
        uart
    }

    /// Takes the UART as it is, after an earlier [`Pl011::new`].
    #[must_use]
    pub const fn attach(registers: Mmio) -> Self {
        Self { registers }
    }

    /// Lets received bytes interrupt.
    pub fn enable_receive_interrupt(&mut self) {
        self.registers.write32(ICR, INTERRUPT_ALL);
        self.registers
            .write32(IMSC, INTERRUPT_RECEIVE | INTERRUPT_RECEIVE_TIMEOUT);
    }

    /// Transmits as many of `bytes` as the FIFO takes now; returns how many.
    pub fn send(&mut self, bytes: &[u8]) -> usize {
        let mut taken = 0;
        for byte in bytes {
            if self.registers.read32(FR) & FR_TXFF != 0 {
                break;
            }
            self.registers.write32(DR, u32::from(*byte));
            taken += 1;
        }
        taken
    }

    /// Takes a received byte, if there is one.
    pub fn receive(&mut self) -> Option<u8> {
        if self.registers.read32(FR) & FR_RXFE != 0 {
            return None;
        }
        Some(self.registers.read32(DR) as u8)
    }

    /// Waits until the transmitter has sent everything, or for `FLUSH_POLLS` polls.
    pub fn flush(&mut self) {
        for _ in 0..FLUSH_POLLS {
            if self.registers.read32(FR) & FR_BUSY == 0 {
                return;
            }
            relax();
        }
    }
}
