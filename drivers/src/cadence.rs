// SPDX-License-Identifier: Apache-2.0
//! Cadence UART, as in Zynq and ZynqMP (UG1085 chapter 21; registers: UG1087, module UART), as a console.
//!
//! Firmware has set baud rate and mode; they are left alone. Transmission is polled and never waits.
//! Reception interrupts at every byte. An interrupt's status stays set until it is cleared, even if the FIFO
//! is empty again: [`CadenceUart::receive`] clears it when it finds nothing, and then looks once more, so
//! that a byte that came in between is not left without an interrupt.

use bulkhead_arch_support::{Mmio, relax};

/// Control register.
const CR: usize = 0x00;
/// Interrupt enable, disable, and status registers.
const IER: usize = 0x08;
const IDR: usize = 0x0C;
const ISR: usize = 0x14;
/// Bytes in the receive FIFO that make an interrupt.
const RXWM: usize = 0x20;
/// Channel status register.
const SR: usize = 0x2C;
/// Transmit and receive FIFO.
const FIFO: usize = 0x30;

const CR_RECEIVE: u32 = 1 << 2;
const CR_TRANSMIT: u32 = 1 << 4;
const SR_RECEIVE_EMPTY: u32 = 1 << 1;
const SR_TRANSMIT_EMPTY: u32 = 1 << 3;
const SR_TRANSMIT_FULL: u32 = 1 << 4;
const SR_TRANSMIT_ACTIVE: u32 = 1 << 11;
const INTERRUPT_RECEIVE: u32 = 1;
const INTERRUPT_ALL: u32 = 0x1FFF;

/// Polls before [`CadenceUart::flush`] gives up: the FIFO's 64 characters at 1200 baud last 0.54 s; a poll of
/// a device register takes 50 ns or more.
const FLUSH_POLLS: u32 = 12_000_000;

/// The UART.
#[derive(Debug)]
pub struct CadenceUart {
    registers: Mmio,
}

impl CadenceUart {
    /// Takes the UART whose registers these are, and switches transmitter and receiver on.
    #[must_use]
    pub fn new(registers: Mmio) -> Self {
        registers.write32(IDR, INTERRUPT_ALL);
        registers.write32(CR, CR_RECEIVE | CR_TRANSMIT);
        Self { registers }
    }

    /// Takes the UART as it is, after an earlier [`CadenceUart::new`].
    #[must_use]
    pub const fn attach(registers: Mmio) -> Self {
        Self { registers }
    }

    /// Lets received bytes interrupt.
    pub fn enable_receive_interrupt(&mut self) {
        self.registers.write32(RXWM, 1);
        self.registers.write32(ISR, INTERRUPT_ALL);
        self.registers.write32(IER, INTERRUPT_RECEIVE);
    }

    /// Transmits as many of `bytes` as the FIFO takes now; returns how many.
    pub fn send(&mut self, bytes: &[u8]) -> usize {
        let mut taken = 0;
        for byte in bytes {
            if self.status() & SR_TRANSMIT_FULL != 0 {
                break;
            }
            self.registers.write32(FIFO, u32::from(*byte));
            taken += 1;
        }
        taken
    }

    /// Takes a received byte, if there is one.
    pub fn receive(&mut self) -> Option<u8> {
        if self.status() & SR_RECEIVE_EMPTY != 0 {
            self.registers.write32(ISR, INTERRUPT_RECEIVE);
            if self.status() & SR_RECEIVE_EMPTY != 0 {
                return None;
            }
        }
        Some(self.registers.read32(FIFO) as u8)
    }

    /// Waits until the transmitter has sent everything, or for `FLUSH_POLLS` polls.
    pub fn flush(&mut self) {
        for _ in 0..FLUSH_POLLS {
            if self.status() & (SR_TRANSMIT_EMPTY | SR_TRANSMIT_ACTIVE) == SR_TRANSMIT_EMPTY {
                return;
            }
            relax();
        }
    }

    fn status(&self) -> u32 {
        self.registers.read32(SR)
    }
}
