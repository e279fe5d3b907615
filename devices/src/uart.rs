// SPDX-License-Identifier: Apache-2.0
//! The virtual UART of a partition, whichever it is.
//!
//! What the kernel does with a UART is the same for all: bytes out, bytes in, room for output, and the
//! levels of its interrupt lines. It has at most two, at consecutive numbers.

use crate::cmsdk::CmsdkUart;
use crate::pl011::Pl011;

/// Which one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Arm PrimeCell PL011.
    Pl011,
    /// UART of the Cortex-M System Design Kit.
    Cmsdk,
}

/// A UART.
#[derive(Clone, Debug)]
pub enum Uart {
    /// Arm PrimeCell PL011.
    Pl011(Pl011),
    /// UART of the Cortex-M System Design Kit.
    Cmsdk(CmsdkUart),
}

impl Uart {
    /// The state after a cold reset.
    #[must_use]
    pub const fn new(kind: Kind) -> Self {
        match kind {
            Kind::Pl011 => Self::Pl011(Pl011::new()),
            Kind::Cmsdk => Self::Cmsdk(CmsdkUart::new()),
        }
    }

    /// Cold reset: unread input is gone.
    pub fn reset(&mut self) {
        match self {
            Self::Pl011(uart) => uart.reset(),
            Self::Cmsdk(uart) => uart.reset(),
        }
    }

    /// Levels of its interrupt lines.
    #[must_use]
    pub const fn levels(&self) -> [bool; 2] {
        match self {
            Self::Pl011(uart) => [uart.level(), false],
            Self::Cmsdk(uart) => uart.levels(),
        }
    }

    /// Bytes the carrier of output would take now.
    pub fn set_room(&mut self, room: usize) {
        match self {
            Self::Pl011(uart) => uart.set_room(room),
            Self::Cmsdk(uart) => uart.set_room(room),
        }
    }

    /// A byte arrives from outside.
    pub const fn receive(&mut self, byte: u8) {
        match self {
            Self::Pl011(uart) => uart.receive(byte),
            Self::Cmsdk(uart) => uart.receive(byte),
        }
    }

    /// A load of `size` bytes at `offset` of the window.
    pub fn read(&mut self, offset: u64, size: u8) -> u64 {
        match self {
            Self::Pl011(uart) => uart.read(offset, size),
            Self::Cmsdk(uart) => uart.read(offset, size),
        }
    }

    /// A store of `size` bytes at `offset` of the window; returns a byte to transmit.
    pub fn write(&mut self, offset: u64, size: u8, value: u64) -> Option<u8> {
        match self {
            Self::Pl011(uart) => uart.write(offset, size, value),
            Self::Cmsdk(uart) => uart.write(offset, size, value),
        }
    }
}
