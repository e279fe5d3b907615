// SPDX-License-Identifier: Apache-2.0
//! UART of the Cortex-M System Design Kit (Arm DDI 0479D, 4.3), as a guest sees it.
//!
//! Unlike the silicon it has no baud rate: a byte written leaves at once ([`CmsdkUart::write`] returns it) as
//! long as the carrier of output has room for it; a carrier that is late looks like a slow line
//! (STATE.TXFULL), with a transmit interrupt when it catches up. Received bytes wait in a backlog, as with a
//! sender that honours RTS; an overrun happens when that is full.
//!
//! One deliberate difference: the silicon raises the receive interrupt once per byte, and bytes are a tenth
//! of a millisecond apart. Here the next byte is there at once. So clearing the interrupt after having read a
//! byte, as drivers do, acknowledges the byte that was read, not the one after it.

use crate::receiver::Receiver;

/// Bytes of its register window.
pub const WINDOW: u64 = 0x1000;

const DATA: u64 = 0x00;
const STATE: u64 = 0x04;
const CONTROL: u64 = 0x08;
const INTERRUPT: u64 = 0x0C;
const DIVIDER: u64 = 0x10;
/// First of the identification registers, from PID4 to CID3.
const IDENTIFICATION: u64 = 0xFD0;
const CELL_ID: [u8; 12] = [0x04, 0, 0, 0, 0x21, 0xB8, 0x1B, 0, 0x0D, 0xF0, 0x05, 0xB1];

const STATE_TRANSMIT_FULL: u32 = 1;
const STATE_RECEIVE_FULL: u32 = 1 << 1;
const STATE_TRANSMIT_OVERRUN: u32 = 1 << 2;
const STATE_RECEIVE_OVERRUN: u32 = 1 << 3;
const CONTROL_TRANSMIT: u32 = 1;
const CONTROL_RECEIVE: u32 = 1 << 1;
const CONTROL_TRANSMIT_INTERRUPT: u32 = 1 << 2;
const CONTROL_RECEIVE_INTERRUPT: u32 = 1 << 3;
/// The interrupts of both overruns.
const CONTROL_OVERRUN_INTERRUPTS: u32 = 3 << 4;
const CONTROL_BITS: u32 = 0x7F;
const INTERRUPT_TRANSMIT: u32 = 1;
const INTERRUPT_RECEIVE: u32 = 1 << 1;
const INTERRUPT_OVERRUNS: u32 = 3 << 2;
const DIVIDER_BITS: u32 = 0xF_FFFF;

/// State of one UART.
#[derive(Clone, Debug, Default)]
pub struct CmsdkUart {
    receiver: Receiver,
    /// Bytes the carrier takes before the next [`CmsdkUart::set_room`].
    room: usize,
    control: u32,
    divider: u32,
    /// STATE: the overruns.
    overruns: u32,
    /// INTSTATUS but for the receive interrupt, which is derived.
    interrupts: u32,
    /// The guest has cleared the receive interrupt of the byte that waits.
    acknowledged: bool,
    /// It has read a byte since it cleared the receive interrupt last.
    has_read: bool,
    /// A debugger takes the received bytes without asking the registers.
    bypassed: bool,
}

impl CmsdkUart {
    /// Returns the state after a cold reset, with room for a byte.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            receiver: Receiver::new(),
            room: 1,
            control: 0,
            divider: 0,
            overruns: 0,
            interrupts: 0,
            acknowledged: false,
            has_read: false,
            bypassed: false,
        }
    }

    /// Does a cold reset: unread input is gone.
    pub fn reset(&mut self) {
        let room = self.room;
        *self = Self::new();
        self.room = room;
    }

    /// Levels of the receive and the transmit line. Overruns are reported on a third one, which is not there.
    #[must_use]
    pub const fn levels(&self) -> [bool; 2] {
        let status = self.interrupt_status();
        [status & INTERRUPT_RECEIVE != 0, status & INTERRUPT_TRANSMIT != 0]
    }

    /// Sets the number of bytes that the carrier of output would take now. When there is room again, the byte
    /// that was in the way has left.
    pub fn set_room(&mut self, room: usize) {
        if self.room == 0 && room != 0 {
            self.transmitted();
        }
        self.room = room;
    }

    /// Takes a byte from outside. Returns whether a reader other than the interrupt's handler may be waiting
    /// for it.
    pub const fn receive(&mut self, byte: u8) -> bool {
        if self.control & CONTROL_RECEIVE == 0 && !self.bypassed {
            return false;
        }
        if !self.receiver.push(byte) {
            self.overruns |= STATE_RECEIVE_OVERRUN;
            self.interrupts |= (self.control & CONTROL_OVERRUN_INTERRUPTS & (1 << 5)) >> 2;
        }
        self.bypassed
    }

    /// Takes the oldest bytes as the guest's debugger, which no register has to let; returns how many. From
    /// the first time on bytes are kept for it even if the receiver is off.
    pub fn take(&mut self, into: &mut [u8]) -> usize {
        self.bypassed = true;
        let mut taken = 0_usize;
        for place in into {
            let Some(byte) = self.receiver.pop() else {
                break;
            };
            *place = byte;
            self.acknowledged = false;
            taken = taken.saturating_add(1);
        }
        taken
    }

    /// Answers a load of `size` bytes at `offset` of the window. Parts of a register read as such.
    pub fn read(&mut self, offset: u64, size: u8) -> u64 {
        let lane = offset & 3;
        if lane.saturating_add(u64::from(size)) > 4 {
            return 0;
        }
        let value = match offset & !3 {
            // Only the lane with the data takes the byte out.
            DATA if lane == 0 => self.take_data(),
            STATE => self.state(),
            CONTROL => self.control,
            INTERRUPT => self.interrupt_status(),
            DIVIDER => self.divider,
            register => identification(register),
        };
        let keep = match size {
            1 => 0xFF,
            2 => 0xFFFF,
            _ => u32::MAX,
        };
        u64::from(value.wrapping_shr((lane as u32).wrapping_mul(8)) & keep)
    }

    /// Takes a store of `size` bytes at `offset` of the window; returns a byte to transmit. Stores that do
    /// not start at a register are ignored, as is data when there is no room.
    pub fn write(&mut self, offset: u64, size: u8, value: u64) -> Option<u8> {
        if size == 0 || size > 4 {
            return None;
        }
        let value = value as u32;
        match offset {
            DATA => return self.put_data(value as u8),
            STATE => self.overruns &= !value,
            CONTROL => self.control = value & CONTROL_BITS,
            INTERRUPT => self.clear_interrupts(value),
            DIVIDER => self.divider = value & DIVIDER_BITS,
            _ => {}
        }
        None
    }

    const fn interrupt_status(&self) -> u32 {
        let waits = self.receiver.length() != 0 && !self.acknowledged;
        if waits && self.control & CONTROL_RECEIVE_INTERRUPT != 0 {
            self.interrupts | INTERRUPT_RECEIVE
        } else {
            self.interrupts
        }
    }

    const fn state(&self) -> u32 {
        let transmit = if self.room == 0 { STATE_TRANSMIT_FULL } else { 0 };
        let receive = if self.receiver.length() != 0 {
            STATE_RECEIVE_FULL
        } else {
            0
        };
        transmit | receive | self.overruns
    }

    fn take_data(&mut self) -> u32 {
        match self.receiver.pop() {
            Some(byte) => {
                self.acknowledged = false;
                self.has_read = true;
                u32::from(byte)
            }
            None => 0,
        }
    }

    fn put_data(&mut self, byte: u8) -> Option<u8> {
        if self.control & CONTROL_TRANSMIT == 0 {
            return None;
        }
        let Some(room) = self.room.checked_sub(1) else {
            self.overruns |= STATE_TRANSMIT_OVERRUN;
            self.interrupts |= (self.control & CONTROL_OVERRUN_INTERRUPTS & (1 << 4)) >> 2;
            return None;
        };
        self.room = room;
        if room != 0 {
            self.transmitted();
        }
        Some(byte)
    }

    /// Notes that a byte has left.
    const fn transmitted(&mut self) {
        if self.control & CONTROL_TRANSMIT_INTERRUPT != 0 {
            self.interrupts |= INTERRUPT_TRANSMIT;
        }
    }

    const fn clear_interrupts(&mut self, bits: u32) {
        self.interrupts &= !(bits & (INTERRUPT_TRANSMIT | INTERRUPT_OVERRUNS));
        if bits & INTERRUPT_RECEIVE != 0 {
            self.acknowledged = !self.has_read;
            self.has_read = false;
        }
    }
}

fn identification(register: u64) -> u32 {
    let index = register.checked_sub(IDENTIFICATION).map(|offset| offset >> 2);
    let byte = index.and_then(|index| CELL_ID.get(usize::try_from(index).ok()?));
    byte.copied().map_or(0, u32::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn enabled(control: u64) -> CmsdkUart {
        let mut uart = CmsdkUart::new();
        uart.write(CONTROL, 4, control);
        uart
    }

    #[test]
    fn bytes_leave_while_there_is_room() {
        let mut uart = enabled(1);
        uart.set_room(2);
        assert_eq!(uart.write(DATA, 4, 0x141), Some(0x41));
        assert_eq!(uart.read(STATE, 4), 0);
        assert_eq!(uart.write(DATA, 1, 0x42), Some(0x42));
        assert_eq!(uart.read(STATE, 4), 1);
        assert_eq!(uart.write(DATA, 4, 0x43), None, "lost");
        assert_eq!(uart.read(STATE, 4), 0b101);
        uart.write(STATE, 4, 0b100);
        uart.set_room(5);
        assert_eq!(uart.read(STATE, 4), 0);
        assert_eq!(enabled(0).write(DATA, 4, 0x41), None, "the transmitter is off");
    }

    #[test]
    fn the_transmit_interrupt_says_that_a_byte_has_left() {
        let mut uart = enabled(0b101);
        uart.set_room(1);
        assert_eq!(uart.levels(), [false, false]);
        uart.write(DATA, 4, 0x41);
        assert_eq!(uart.levels(), [false, false], "no room: it has not left");
        uart.set_room(1);
        assert_eq!(uart.levels(), [false, true]);
        assert_eq!(uart.read(INTERRUPT, 4), 1);
        uart.write(INTERRUPT, 4, 1);
        assert_eq!(uart.levels(), [false, false]);
    }

    #[test]
    fn every_received_byte_interrupts_in_whichever_order_a_driver_clears_and_reads() {
        for clears_first in [false, true] {
            let mut uart = enabled(0b1010);
            for byte in [0x41, 0x42, 0x43] {
                uart.receive(byte);
            }
            for byte in [0x41, 0x42, 0x43] {
                assert_eq!(uart.levels(), [true, false]);
                if clears_first {
                    uart.write(INTERRUPT, 4, 2);
                }
                assert_eq!(uart.read(DATA, 4), byte);
                if !clears_first {
                    uart.write(INTERRUPT, 4, 2);
                }
            }
            assert_eq!(uart.levels(), [false, false]);
            assert_eq!(uart.read(STATE, 4), 0);
        }
    }

    #[test]
    fn nothing_is_received_while_the_receiver_is_off_and_an_overrun_is_told() {
        let mut uart = enabled(0);
        uart.receive(1);
        assert_eq!(uart.read(STATE, 4), 0);
        let mut uart = enabled(0b10);
        for _ in 0..=crate::receiver::CAPACITY {
            uart.receive(2);
        }
        assert_eq!(uart.read(STATE, 4), 0b1010);
        uart.reset();
        assert_eq!(uart.read(STATE, 4), 0);
    }

    #[test]
    fn the_identification_is_that_of_the_part() {
        let mut uart = CmsdkUart::new();
        assert_eq!(uart.read(0xFE0, 4), 0x21);
        assert_eq!(uart.read(0xFFC, 4), 0xB1);
        assert_eq!(uart.read(0xFFF, 4), 0);
        assert_eq!(uart.read(0x14, 4), 0);
        assert_eq!(uart.read(0xFE1, 1), 0);
    }
}
