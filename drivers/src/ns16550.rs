// SPDX-License-Identifier: Apache-2.0
//! NS 16550A UART with registers in memory, a byte each (TI SLLS597, "TL16C550C").
//!
//! It never waits itself, except in [`Uart::flush`].

use crate::uart::Uart;
use bulkhead_arch_support::{Mmio, relax};

/// RBR to read, THR to write.
const DATA: usize = 0;
const INTERRUPT_ENABLE: usize = 1;
/// FCR to write.
const FIFO_CONTROL: usize = 2;
const LINE_CONTROL: usize = 3;
const MODEM_CONTROL: usize = 4;
const LINE_STATUS: usize = 5;

const IER_RECEIVED: u8 = 1;
/// Both FIFOs on and empty.
const FCR_ENABLE: u8 = 7;
/// Eight bits, no parity.
const LCR_8N1: u8 = 3;
const LCR_DIVISOR: u8 = 1 << 7;
/// DTR, RTS, and OUT2, which connects the interrupt on some boards.
const MCR_ON: u8 = 0xB;
const LSR_READY: u8 = 1;
const LSR_EMPTY: u8 = 1 << 5;
const LSR_IDLE: u8 = 1 << 6;
/// Bytes that an empty transmit FIFO takes.
const FIFO_DEPTH: usize = 16;
const BAUD: u32 = 115_200;
/// Clock cycles of a bit at a divisor of 1.
const OVERSAMPLING: u32 = 16;

/// Polls of the state before [`Uart::flush`] gives up: a FIFO lasts 1.4 ms.
const FLUSH_POLLS: u32 = 1_000_000;

/// The UART.
#[derive(Debug)]
pub struct Ns16550 {
    registers: Mmio,
}

impl Uart for Ns16550 {
    /// Leaves the rate as it is if `hertz` is 0.
    fn new(registers: Mmio, hertz: u32) -> Self {
        if hertz != 0 {
            let divisor = (hertz / (OVERSAMPLING * BAUD)).clamp(1, u32::from(u16::MAX)) as u16;
            let [high, low] = divisor.to_be_bytes();
            registers.write8(LINE_CONTROL, LCR_DIVISOR | LCR_8N1);
            registers.write8(DATA, low);
            registers.write8(INTERRUPT_ENABLE, high);
        }
        registers.write8(LINE_CONTROL, LCR_8N1);
        registers.write8(INTERRUPT_ENABLE, 0);
        registers.write8(FIFO_CONTROL, FCR_ENABLE);
        registers.write8(MODEM_CONTROL, MCR_ON);
        Self { registers }
    }

    fn attach(registers: Mmio) -> Self {
        Self { registers }
    }

    fn enable_receive_interrupt(&mut self) {
        self.registers.write8(INTERRUPT_ENABLE, IER_RECEIVED);
    }

    fn send(&mut self, bytes: &[u8]) -> usize {
        if self.registers.read8(LINE_STATUS) & LSR_EMPTY == 0 {
            return 0;
        }
        let taken = bytes.len().min(FIFO_DEPTH);
        for byte in bytes.iter().take(taken) {
            self.registers.write8(DATA, *byte);
        }
        taken
    }

    fn receive(&mut self) -> Option<u8> {
        if self.registers.read8(LINE_STATUS) & LSR_READY == 0 {
            return None;
        }
        Some(self.registers.read8(DATA))
    }

    /// Waits for `FLUSH_POLLS` polls at most.
    fn flush(&mut self) {
        for _ in 0..FLUSH_POLLS {
            if self.registers.read8(LINE_STATUS) & LSR_IDLE != 0 {
                return;
            }
            relax();
        }
    }
}
