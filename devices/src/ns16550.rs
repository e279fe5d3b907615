// SPDX-License-Identifier: Apache-2.0
//! NS 16550A UART (TI SLLS597, "TL16C550C"), as a guest sees it.
//!
//! Unlike the silicon it has no baud rate: a byte written leaves at once ([`Ns16550::write`] returns it) as
//! long as the carrier of output has room for it ([`Ns16550::set_room`]). A carrier that is late looks to
//! the guest like a slow line: LSR.THRE and LSR.TEMT are clear, and the transmit interrupt comes when there
//! is room again.
//!
//! Two deliberate differences, which drivers for this part cope with: a received byte interrupts at once,
//! at any trigger level of the FIFO; and bytes that the FIFO has no place for wait in a backlog, as
//! with a sender that honours RTS.

use crate::receiver::Receiver;

/// Registers, which are bytes.
pub const WINDOW: u64 = 8;

/// Depth of the transmit FIFO.
pub const FIFO_DEPTH: usize = 16;

/// RBR, THR and, with LCR.DLAB, DLL.
const DATA: u64 = 0;
/// IER and, with LCR.DLAB, DLM.
const INTERRUPT_ENABLE: u64 = 1;
/// IIR to read, FCR to write.
const INTERRUPT_ID: u64 = 2;
const LINE_CONTROL: u64 = 3;
const MODEM_CONTROL: u64 = 4;
const LINE_STATUS: u64 = 5;
const MODEM_STATUS: u64 = 6;
const SCRATCH: u64 = 7;

const IER_RECEIVED: u8 = 1;
const IER_TRANSMIT: u8 = 1 << 1;
const IER_LINE: u8 = 1 << 2;
const IIR_NOTHING: u8 = 1;
const IIR_TRANSMIT: u8 = 2;
const IIR_RECEIVED: u8 = 4;
const IIR_LINE: u8 = 6;
const IIR_FIFOS: u8 = 3 << 6;
const FCR_ENABLE: u8 = 1;
const FCR_CLEAR_RECEIVER: u8 = 1 << 1;
const LCR_DIVISOR: u8 = 1 << 7;
const LSR_READY: u8 = 1;
const LSR_OVERRUN: u8 = 1 << 1;
/// THRE and TEMT.
const LSR_EMPTY: u8 = 3 << 5;
const MCR_LOOP: u8 = 1 << 4;
/// CTS, DSR and DCD are asserted.
const MSR_CONNECTED: u8 = 0xB0;

/// State of one UART.
#[derive(Clone, Debug)]
pub struct Ns16550 {
    receiver: Receiver,
    /// Bytes the carrier takes before the next [`Ns16550::set_room`].
    room: usize,
    divisor: [u8; 2],
    interrupt_enable: u8,
    line_control: u8,
    modem_control: u8,
    scratch: u8,
    has_fifos: bool,
    overrun: bool,
    /// The transmitter has become empty since IIR said so last.
    is_emptied: bool,
}

impl Default for Ns16550 {
    fn default() -> Self {
        Self::new()
    }
}

impl Ns16550 {
    /// Returns the state after a cold reset, with room for a whole FIFO.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            receiver: Receiver::new(),
            room: FIFO_DEPTH,
            divisor: [12, 0],
            interrupt_enable: 0,
            line_control: 0,
            modem_control: 0,
            scratch: 0,
            has_fifos: false,
            overrun: false,
            is_emptied: false,
        }
    }

    /// Does a cold reset: unread input is gone.
    pub fn reset(&mut self) {
        let room = self.room;
        *self = Self::new();
        self.room = room;
    }

    /// Returns the level of its interrupt line.
    #[must_use]
    pub const fn level(&self) -> bool {
        self.interrupt() != IIR_NOTHING
    }

    /// Sets the number of bytes that the carrier of output would take now.
    pub fn set_room(&mut self, room: usize) {
        if self.room == 0 && room != 0 {
            self.is_emptied = true;
        }
        self.room = room;
    }

    /// Takes a byte from outside.
    pub const fn receive(&mut self, byte: u8) {
        if !self.receiver.push(byte) {
            self.overrun = true;
        }
    }

    /// Answers a load of `size` bytes at `offset` of the window. A load of several bytes reads as many
    /// registers.
    pub fn read(&mut self, offset: u64, size: u8) -> u64 {
        let mut value = 0;
        for place in 0..size.min(4) {
            let byte = self.load(offset.wrapping_add(place.into()));
            value |= u64::from(byte) << u32::from(place).wrapping_mul(8);
        }
        value
    }

    /// Takes a store of `size` bytes at `offset` of the window; returns a byte to transmit. Only the first
    /// register of a store of several bytes is written.
    pub fn write(&mut self, offset: u64, _size: u8, value: u64) -> Option<u8> {
        let value = value as u8;
        match offset {
            DATA if self.has_divisor() => {
                let [low, _] = &mut self.divisor;
                *low = value;
            }
            DATA => return self.transmit(value),
            INTERRUPT_ENABLE if self.has_divisor() => {
                let [_, high] = &mut self.divisor;
                *high = value;
            }
            INTERRUPT_ENABLE => {
                // An empty transmitter interrupts as soon as it may.
                let begins = value & !self.interrupt_enable & IER_TRANSMIT != 0;
                self.is_emptied |= begins && self.room != 0;
                self.interrupt_enable = value & 0xF;
            }
            INTERRUPT_ID => {
                self.has_fifos = value & FCR_ENABLE != 0;
                if value & FCR_CLEAR_RECEIVER != 0 {
                    self.receiver = Receiver::new();
                }
            }
            LINE_CONTROL => self.line_control = value,
            MODEM_CONTROL => self.modem_control = value & 0x1F,
            SCRATCH => self.scratch = value,
            _ => {}
        }
        None
    }

    /// Answers a load or store of one register that has no effect beside the UART, or returns `None`, and has
    /// done nothing ([`crate::pl011::Pl011::touch`]). Requires: the carrier has room for a whole FIFO.
    pub fn touch(&mut self, offset: u64, size: u8, stored: Option<u64>) -> Option<u64> {
        if size != 1 || self.room == 0 {
            return None;
        }
        let Some(value) = stored else {
            let is_plain = match offset {
                DATA => self.has_divisor(),
                INTERRUPT_ID => self.interrupt() != IIR_TRANSMIT,
                LINE_STATUS => !self.overrun,
                _ => true,
            };
            return is_plain.then(|| self.load(offset).into());
        };
        let is_plain = match offset {
            DATA | INTERRUPT_ENABLE => self.has_divisor(),
            INTERRUPT_ID => false,
            _ => true,
        };
        is_plain.then(|| {
            self.write(offset, size, value);
            0
        })
    }

    fn load(&mut self, register: u64) -> u8 {
        let [low, high] = self.divisor;
        match register {
            DATA if self.has_divisor() => low,
            DATA => self.receiver.pop().unwrap_or(0),
            INTERRUPT_ENABLE if self.has_divisor() => high,
            INTERRUPT_ENABLE => self.interrupt_enable,
            INTERRUPT_ID => self.identify(),
            LINE_CONTROL => self.line_control,
            MODEM_CONTROL => self.modem_control,
            LINE_STATUS => self.line_status(),
            MODEM_STATUS => self.modem_status(),
            SCRATCH => self.scratch,
            _ => 0xFF,
        }
    }

    const fn has_divisor(&self) -> bool {
        self.line_control & LCR_DIVISOR != 0
    }

    /// Returns the most urgent cause of an interrupt.
    const fn interrupt(&self) -> u8 {
        if self.overrun && self.interrupt_enable & IER_LINE != 0 {
            IIR_LINE
        } else if self.receiver.length() != 0 && self.interrupt_enable & IER_RECEIVED != 0 {
            IIR_RECEIVED
        } else if self.is_emptied && self.interrupt_enable & IER_TRANSMIT != 0 {
            IIR_TRANSMIT
        } else {
            IIR_NOTHING
        }
    }

    const fn identify(&mut self) -> u8 {
        let cause = self.interrupt();
        if cause == IIR_TRANSMIT {
            self.is_emptied = false;
        }
        if self.has_fifos { cause | IIR_FIFOS } else { cause }
    }

    fn line_status(&mut self) -> u8 {
        let ready = if self.receiver.length() != 0 { LSR_READY } else { 0 };
        let empty = if self.room != 0 { LSR_EMPTY } else { 0 };
        let overrun = if core::mem::take(&mut self.overrun) {
            LSR_OVERRUN
        } else {
            0
        };
        ready | empty | overrun
    }

    /// Returns the modem's status. In a loop the modem's outputs are its inputs: DTR is DSR, RTS is CTS, OUT1
    /// is RI, OUT2 is DCD.
    const fn modem_status(&self) -> u8 {
        if self.modem_control & MCR_LOOP == 0 {
            return MSR_CONNECTED;
        }
        let outputs = self.modem_control;
        (outputs & 2) << 3 | (outputs & 1) << 5 | (outputs & 4) << 4 | (outputs & 8) << 4
    }

    fn transmit(&mut self, byte: u8) -> Option<u8> {
        self.is_emptied = false;
        if self.modem_control & MCR_LOOP != 0 {
            self.is_emptied = true;
            self.receive(byte);
            return None;
        }
        let room = self.room.checked_sub(1)?;
        self.room = room;
        self.is_emptied = room != 0;
        Some(byte)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_leave_while_there_is_room() {
        let mut uart = Ns16550::new();
        uart.set_room(1);
        assert_eq!(uart.read(LINE_STATUS, 1), 0x60);
        assert_eq!(uart.write(DATA, 1, 0x41), Some(0x41));
        assert_eq!(uart.read(LINE_STATUS, 1), 0);
        assert_eq!(uart.write(DATA, 1, 0x42), None, "lost");
        uart.set_room(3);
        assert_eq!(uart.read(LINE_STATUS, 1), 0x60);
    }

    #[test]
    fn the_divisor_hides_data_and_interrupts() {
        let mut uart = Ns16550::new();
        uart.write(LINE_CONTROL, 1, 0x83);
        uart.write(DATA, 1, 1);
        uart.write(INTERRUPT_ENABLE, 1, 2);
        assert_eq!((uart.read(DATA, 1), uart.read(INTERRUPT_ENABLE, 1)), (1, 2));
        uart.write(LINE_CONTROL, 1, 3);
        assert_eq!((uart.read(DATA, 1), uart.read(INTERRUPT_ENABLE, 1)), (0, 0));
    }

    #[test]
    fn reading_the_cause_ends_the_transmit_interrupt_alone() {
        let mut uart = Ns16550::new();
        assert!(!uart.level());
        uart.write(INTERRUPT_ENABLE, 1, 3);
        assert_eq!(uart.read(INTERRUPT_ID, 1), u64::from(IIR_TRANSMIT));
        assert_eq!(uart.read(INTERRUPT_ID, 1), u64::from(IIR_NOTHING));
        uart.receive(7);
        assert!(uart.level());
        assert_eq!(uart.read(INTERRUPT_ID, 1), u64::from(IIR_RECEIVED));
        assert_eq!(uart.read(INTERRUPT_ID, 1), u64::from(IIR_RECEIVED));
        assert_eq!(uart.read(DATA, 1), 7);
        assert!(!uart.level());
        uart.write(INTERRUPT_ID, 1, 1);
        assert_eq!(uart.read(INTERRUPT_ID, 1), 0xC1);
    }

    #[test]
    fn a_loop_returns_bytes_and_signals() {
        let mut uart = Ns16550::new();
        assert_eq!(uart.read(MODEM_STATUS, 1), 0xB0);
        uart.write(MODEM_CONTROL, 1, 0x1A);
        assert_eq!(uart.read(MODEM_STATUS, 1), 0x90, "as autoconfig of Linux expects");
        assert_eq!(uart.write(DATA, 1, 0x55), None);
        assert_eq!(uart.read(DATA, 1), 0x55);
        uart.reset();
        assert_eq!(uart.read(MODEM_CONTROL, 1), 0);
    }

    #[test]
    fn an_overrun_is_told_once() {
        let mut uart = Ns16550::new();
        for _ in 0..=crate::receiver::CAPACITY {
            uart.receive(1);
        }
        assert_eq!(uart.read(LINE_STATUS, 1), 0x63);
        assert_eq!(uart.read(LINE_STATUS, 1), 0x61);
    }
}
