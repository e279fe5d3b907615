// SPDX-License-Identifier: Apache-2.0
//! The virtual UART of a partition, whichever it is.
//!
//! What the kernel does with a UART is the same for all: bytes out, bytes in, room for output, and the
//! levels of its interrupt lines. It has at most two, at consecutive numbers.

use crate::cmsdk::CmsdkUart;
use crate::pl011::Pl011;
use bulkhead_abi::size::IS_SMALL;

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

/// A microcontroller has no PL011, and no code for it.
macro_rules! to_either {
    ($self:expr, $uart:ident => $call:expr, else $nothing:expr) => {
        match $self {
            Self::Pl011(_) if IS_SMALL => $nothing,
            Self::Pl011($uart) => $call,
            Self::Cmsdk($uart) => $call,
        }
    };
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
        to_either!(self, uart => uart.reset(), else ())
    }

    /// Levels of its interrupt lines.
    #[must_use]
    pub const fn levels(&self) -> [bool; 2] {
        match self {
            Self::Pl011(_) if IS_SMALL => [false; 2],
            Self::Pl011(uart) => [uart.level(), false],
            Self::Cmsdk(uart) => uart.levels(),
        }
    }

    /// Bytes the carrier of output would take now.
    pub fn set_room(&mut self, room: usize) {
        to_either!(self, uart => uart.set_room(room), else ())
    }

    /// A byte arrives from outside. Whether somebody may be waiting for it besides the interrupt lines.
    pub const fn receive(&mut self, byte: u8) -> bool {
        match self {
            Self::Cmsdk(uart) => uart.receive(byte),
            Self::Pl011(uart) if !IS_SMALL => {
                uart.receive(byte);
                false
            }
            Self::Pl011(_) => false,
        }
    }

    /// Takes received bytes as the guest's debugger; returns how many. Only microcontrollers have that.
    pub fn take(&mut self, into: &mut [u8]) -> usize {
        match self {
            Self::Cmsdk(uart) => uart.take(into),
            Self::Pl011(_) => 0,
        }
    }

    /// A load of `size` bytes at `offset` of the window.
    pub fn read(&mut self, offset: u64, size: u8) -> u64 {
        to_either!(self, uart => uart.read(offset, size), else 0)
    }

    /// A store of `size` bytes at `offset` of the window; returns a byte to transmit.
    pub fn write(&mut self, offset: u64, size: u8, value: u64) -> Option<u8> {
        to_either!(self, uart => uart.write(offset, size, value), else None)
    }
}
