// SPDX-License-Identifier: Apache-2.0
//! Arm PrimeCell UART PL011 (Arm DDI 0183G), revision r1p5, as a guest sees it.
//!
//! Unlike the silicon it has no baud rate: a byte written leaves at once ([`Pl011::write`] returns it) as
//! long as the carrier of output has room for it ([`Pl011::set_room`]). The transmit FIFO therefore holds
//! nothing; its fill level is what the carrier lacks of a whole FIFO's room. A carrier that is late looks
//! to the guest like a slow line: `FR.TXFF`, `FR.BUSY`, and a transmit interrupt when it catches up, which a
//! driver that waits costs only its own time.
//!
//! Three deliberate differences, each what drivers written for this part already cope with:
//! - The 32 bit periods of silence before the receive time-out (2.8.3) pass at once, so the time-out
//!   interrupt is asserted while there is anything to read, and clearing it does not hide unread bytes. The
//!   receive interrupt is asserted along with it, at any trigger level: software written for QEMU's
//!   model, which knows no time-out, enables that one only.
//! - Bytes that the receive FIFO has no place for wait in a backlog, as with a sender that honours RTS; an
//!   overrun happens when that is full, too.
//! - `CR.UARTEN`, `TXE` and `RXE` are kept but do not gate anything: early boot code often leaves them to the
//!   firmware that ran before it.

mod registers;
#[cfg(test)]
mod tests;

use crate::receiver::Receiver;
use registers::{
    CELL_ID, CR_LOOPBACK, CR_RESET, FLAG_BUSY, FLAG_RXFE, FLAG_RXFF, FLAG_TXFE, FLAG_TXFF, FLAGS, IFLS_RESET,
    INT_CTS, INT_DCD, INT_DSR, INT_OVERRUN, INT_RI, INT_RX, INT_RX_TIMEOUT, INT_TX, INTERRUPTS,
    LCR_FIFO_ENABLE, MODEM_CTS, MODEM_DCD, MODEM_DSR, MODEM_RI, Register, STATUS_OVERRUN,
};

/// Bytes of its register window.
pub const WINDOW: u64 = 0x1000;

/// Depth of each FIFO while the FIFOs are enabled.
pub const FIFO_DEPTH: usize = 32;

/// State of one UART.
#[derive(Clone, Debug)]
pub struct Pl011 {
    receiver: Receiver,
    /// Bytes the carrier takes before the next [`Pl011::set_room`].
    room: usize,
    /// Raw status of the interrupts that are remembered, not derived.
    latched: u16,
    /// `OE` as the data register shows it with the next byte, and as the status register does until it is
    /// cleared.
    overrun: (bool, bool),
    irda_low_power: u16,
    integer_baud: u16,
    fractional_baud: u16,
    line_control: u16,
    control: u16,
    fifo_levels: u16,
    mask: u16,
    dma_control: u16,
}

impl Default for Pl011 {
    fn default() -> Self {
        Self::new()
    }
}

impl Pl011 {
    /// Returns the state after a cold reset, with room for a whole FIFO.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            receiver: Receiver::new(),
            room: FIFO_DEPTH,
            latched: 0,
            overrun: (false, false),
            irda_low_power: 0,
            integer_baud: 0,
            fractional_baud: 0,
            line_control: 0,
            control: CR_RESET,
            fifo_levels: IFLS_RESET,
            mask: 0,
            dma_control: 0,
        }
    }

    /// Does a cold reset: unread input is gone.
    pub fn reset(&mut self) {
        let room = self.room;
        *self = Self::new();
        self.room = room;
    }

    /// Returns the level of the interrupt line (UARTINTR).
    #[must_use]
    pub const fn level(&self) -> bool {
        self.raw_status() & self.mask != 0
    }

    /// Sets the number of bytes that the carrier of output would take now. Rising through the transmit
    /// trigger level, it raises the transmit interrupt (2.8.2: a transition, not a level).
    pub fn set_room(&mut self, room: usize) {
        if room == self.room {
            return;
        }
        let was_below = self.below_trigger();
        self.room = room;
        if !was_below && self.below_trigger() {
            self.latched |= INT_TX;
        }
    }

    /// Takes a byte from outside.
    pub const fn receive(&mut self, byte: u8) {
        if self.receiver.push(byte) {
            self.latched |= INT_RX;
        } else {
            self.overrun = (true, true);
            self.latched |= INT_OVERRUN;
        }
    }

    /// Answers a load of `size` bytes at `offset` of the window. Parts of a register read as such; what
    /// crosses a register, is wider than one or is nowhere reads as zero.
    pub fn read(&mut self, offset: u64, size: u8) -> u64 {
        match Register::at(offset, size) {
            // Only the lane with the data takes the byte out.
            Some((Register::Data, 0)) => part_of(self.take_data(), 0, size),
            Some(_) => self.look(offset, size).unwrap_or(0),
            None => 0,
        }
    }

    /// Returns what a load of at most four bytes within a register sees, unless the register is the data
    /// register.
    #[inline(never)]
    fn look(&self, offset: u64, size: u8) -> Option<u64> {
        let register = Register::of(offset)?;
        let value = match register {
            Register::ReceiveStatus if self.overrun.1 => STATUS_OVERRUN,
            Register::Data => return None,
            Register::ReceiveStatus | Register::Clear => 0,
            Register::Flags => self.flags(),
            Register::IrdaLowPower => self.irda_low_power,
            Register::IntegerBaud => self.integer_baud,
            Register::FractionalBaud => self.fractional_baud,
            Register::LineControl => self.line_control,
            Register::Control => self.control,
            Register::FifoLevels => self.fifo_levels,
            Register::Mask => self.mask,
            Register::RawStatus => self.raw_status(),
            Register::MaskedStatus => self.raw_status() & self.mask,
            Register::DmaControl => self.dma_control,
            Register::Id(index) => CELL_ID.get(usize::from(index)).copied().map_or(0, u16::from),
        };
        Some(part_of(value, offset & 3, size))
    }

    /// Takes a store of `size` bytes at `offset` of the window; returns a byte to transmit. Stores that do
    /// not start at a register are ignored, as is data for a full FIFO.
    pub fn write(&mut self, offset: u64, size: u8, value: u64) -> Option<u8> {
        let Some((register, 0)) = Register::at(offset, size) else {
            return None;
        };
        let value = (value & 0xFFFF) as u16;
        match register {
            Register::Data => return self.put_data((value & 0xFF) as u8),
            Register::ReceiveStatus => self.overrun.1 = false,
            Register::LineControl => self.set_line_control(value & 0xFF),
            Register::Control => self.set_control(value),
            Register::Mask => self.mask = value & INTERRUPTS,
            Register::Clear => self.latched &= !value,
            _ => self.keep(register, value),
        }
        None
    }

    /// Answers a load or store that has no effect beside the UART: no byte is taken or leaves, and the
    /// interrupt line keeps its level. The result of a store is 0. Returns `None`, and has done nothing, if
    /// the access may have such an effect. Requires: the carrier has room for a whole FIFO.
    pub fn touch(&mut self, offset: u64, size: u8, stored: Option<u64>) -> Option<u64> {
        if self.room < FIFO_DEPTH {
            return None;
        }
        let Some(value) = stored else {
            // Drivers read the flags before each byte. With room for a whole FIFO, the FIFO is empty.
            return if offset == FLAGS {
                Some(part_of(self.flags_with(0), 0, size))
            } else {
                self.look(offset, size)
            };
        };
        if offset & 3 != 0 {
            return None;
        }
        let register = Register::of(offset)?;
        let value = (value & 0xFFFF) as u16;
        let (mask, latched) = match register {
            Register::Mask => (value & INTERRUPTS, self.latched),
            Register::Clear => (self.mask, self.latched & !value),
            Register::IrdaLowPower
            | Register::IntegerBaud
            | Register::FractionalBaud
            | Register::FifoLevels
            | Register::DmaControl => {
                self.keep(register, value);
                return Some(0);
            }
            _ => return None,
        };
        let before = self.level();
        let derived = self.raw_status() & !self.latched;
        if before != ((latched | derived) & mask != 0) {
            return None;
        }
        (self.mask, self.latched) = (mask, latched);
        Some(0)
    }

    /// Keeps the value of a register that does nothing else.
    const fn keep(&mut self, register: Register, value: u16) {
        match register {
            Register::IrdaLowPower => self.irda_low_power = value & 0xFF,
            Register::IntegerBaud => self.integer_baud = value,
            Register::FractionalBaud => self.fractional_baud = value & 0x3F,
            Register::FifoLevels => self.fifo_levels = value & 0x3F,
            Register::DmaControl => self.dma_control = value & 0x7,
            _ => {}
        }
    }

    const fn depth(&self) -> usize {
        if self.line_control & LCR_FIFO_ENABLE != 0 {
            FIFO_DEPTH
        } else {
            1
        }
    }

    /// Returns the number of bytes in the transmit FIFO: what the carrier lacks of room for a whole one.
    const fn transmit_fill(&self) -> usize {
        self.depth().saturating_sub(self.room)
    }

    /// Tells whether the transmit FIFO is at or below its trigger level (3.3.9, TXIFLSEL).
    const fn below_trigger(&self) -> bool {
        let level = if self.depth() == 1 {
            0
        } else {
            match self.fifo_levels & 0x7 {
                0 => FIFO_DEPTH / 8,
                1 => FIFO_DEPTH / 4,
                2 => FIFO_DEPTH / 2,
                3 => FIFO_DEPTH / 4 * 3,
                _ => FIFO_DEPTH / 8 * 7,
            }
        };
        self.transmit_fill() <= level
    }

    const fn flags(&self) -> u16 {
        self.flags_with(self.transmit_fill())
    }

    /// Returns the flags with so many bytes in the transmit FIFO.
    #[inline(always)]
    const fn flags_with(&self, fill: usize) -> u16 {
        let mut flags = self.modem_inputs();
        let waiting = self.receiver.length();
        if waiting == 0 {
            flags |= FLAG_RXFE;
        }
        if waiting >= self.depth() {
            flags |= FLAG_RXFF;
        }
        if fill == 0 {
            flags |= FLAG_TXFE;
        } else {
            flags |= FLAG_BUSY;
        }
        if fill >= self.depth() {
            flags |= FLAG_TXFF;
        }
        flags
    }

    /// Returns the modem status as the flag register shows it: nothing is wired except in loopback (3.3.8,
    /// LBE), where RTS, DTR, OUT1 and OUT2 come back as CTS, DSR, DCD and RI.
    #[inline(always)]
    const fn modem_inputs(&self) -> u16 {
        if self.control & CR_LOOPBACK == 0 {
            return 0;
        }
        let mut inputs = 0;
        if self.control & (1 << 11) != 0 {
            inputs |= MODEM_CTS;
        }
        if self.control & (1 << 10) != 0 {
            inputs |= MODEM_DSR;
        }
        if self.control & (1 << 12) != 0 {
            inputs |= MODEM_DCD;
        }
        if self.control & (1 << 13) != 0 {
            inputs |= MODEM_RI;
        }
        inputs
    }

    const fn raw_status(&self) -> u16 {
        if self.receiver.length() == 0 {
            self.latched
        } else {
            self.latched | INT_RX_TIMEOUT
        }
    }

    const fn take_data(&mut self) -> u16 {
        let byte = self.receiver.pop();
        let mut value = match byte {
            Some(byte) => byte as u16,
            None => 0,
        };
        if self.receiver.length() == 0 {
            self.latched &= !INT_RX;
        }
        // 3.3.1: OE stands until there is space in the FIFO again, which this read has made.
        if self.overrun.0 && byte.is_some() {
            value |= STATUS_OVERRUN << 8;
            self.overrun.0 = false;
        }
        value
    }

    fn put_data(&mut self, byte: u8) -> Option<u8> {
        if self.room == 0 {
            return None;
        }
        let looped = self.control & CR_LOOPBACK != 0;
        if looped {
            self.receive(byte);
        } else {
            self.room = self.room.saturating_sub(1);
        }
        // The byte has left already: if that brings the FIFO to its trigger level or below, it passed it.
        if self.below_trigger() {
            self.latched |= INT_TX;
        } else {
            self.latched &= !INT_TX;
        }
        (!looped).then_some(byte)
    }

    fn set_line_control(&mut self, value: u16) {
        let was_below = self.below_trigger();
        self.line_control = value;
        if was_below && !self.below_trigger() {
            self.latched &= !INT_TX;
        }
    }

    const fn set_control(&mut self, value: u16) {
        let before = self.modem_inputs();
        self.control = value;
        let changed = before ^ self.modem_inputs();
        if changed & MODEM_CTS != 0 {
            self.latched |= INT_CTS;
        }
        if changed & MODEM_DSR != 0 {
            self.latched |= INT_DSR;
        }
        if changed & MODEM_DCD != 0 {
            self.latched |= INT_DCD;
        }
        if changed & MODEM_RI != 0 {
            self.latched |= INT_RI;
        }
    }
}

/// Returns `size` bytes of a register's value, from byte `lane` on.
#[inline]
const fn part_of(value: u16, lane: u64, size: u8) -> u64 {
    let keep = match size {
        1 => 0xFF,
        _ => 0xFFFF,
    };
    // A register has 16 bits.
    if lane > 1 {
        0
    } else {
        (value as u64 >> (lane << 3)) & keep
    }
}
