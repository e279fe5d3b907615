// SPDX-License-Identifier: Apache-2.0
//! The virtual UART of a partition, whichever it is.
//!
//! The kernel uses every UART in the same way: bytes out, bytes in, room for output, and the
//! levels of its interrupt lines. It has at most two, at consecutive numbers.

use crate::cmsdk::CmsdkUart;
use crate::ns16550::Ns16550;
use crate::pl011::Pl011;
use bulkhead_arch_api::class::{VirtualUart, may_have};

/// A UART.
#[derive(Clone, Debug)]
pub enum Uart {
    /// Arm PrimeCell PL011.
    Pl011(Pl011),
    /// UART of the Cortex-M System Design Kit.
    Cmsdk(CmsdkUart),
    /// NS 16550A.
    Ns16550(Ns16550),
}

/// A class binary whose VMs have no PL011 has no code for it.
const HAS_PL011: bool = may_have(VirtualUart::Pl011);
/// The same for a UART of the Cortex-M System Design Kit.
const HAS_CMSDK: bool = may_have(VirtualUart::Cmsdk);
/// The same for an NS 16550A.
const HAS_NS16550: bool = may_have(VirtualUart::Ns16550);

/// Calls the UART, whichever it is.
macro_rules! to_either {
    ($self:expr, $uart:ident => $call:expr, else $nothing:expr) => {
        match $self {
            Self::Pl011(_) if !HAS_PL011 => $nothing,
            Self::Pl011($uart) => $call,
            Self::Cmsdk(_) if !HAS_CMSDK => $nothing,
            Self::Cmsdk($uart) => $call,
            Self::Ns16550(_) if !HAS_NS16550 => $nothing,
            Self::Ns16550($uart) => $call,
        }
    };
}

impl Uart {
    /// Returns the state after a cold reset.
    #[must_use]
    pub const fn new(kind: VirtualUart) -> Self {
        match kind {
            VirtualUart::Pl011 => Self::Pl011(Pl011::new()),
            VirtualUart::Cmsdk => Self::Cmsdk(CmsdkUart::new()),
            VirtualUart::Ns16550 => Self::Ns16550(Ns16550::new()),
        }
    }

    /// Does a cold reset: unread input is gone.
    pub fn reset(&mut self) {
        to_either!(self, uart => uart.reset(), else ())
    }

    /// Levels of its interrupt lines.
    #[must_use]
    pub const fn levels(&self) -> [bool; 2] {
        match self {
            Self::Pl011(_) if !HAS_PL011 => [false; 2],
            Self::Pl011(uart) => [uart.level(), false],
            Self::Cmsdk(_) if !HAS_CMSDK => [false; 2],
            Self::Cmsdk(uart) => uart.levels(),
            Self::Ns16550(_) if !HAS_NS16550 => [false; 2],
            Self::Ns16550(uart) => [uart.level(), false],
        }
    }

    /// Sets the number of bytes that the carrier of output would take now.
    pub fn set_room(&mut self, room: usize) {
        to_either!(self, uart => uart.set_room(room), else ())
    }

    /// Takes a byte from outside. Returns whether a reader other than the interrupt's handler may be waiting
    /// for it.
    pub const fn receive(&mut self, byte: u8) -> bool {
        match self {
            Self::Cmsdk(uart) if HAS_CMSDK => uart.receive(byte),
            Self::Pl011(uart) if HAS_PL011 => {
                uart.receive(byte);
                false
            }
            Self::Ns16550(uart) if HAS_NS16550 => {
                uart.receive(byte);
                false
            }
            Self::Pl011(_) | Self::Cmsdk(_) | Self::Ns16550(_) => false,
        }
    }

    /// Takes received bytes as the guest's debugger; returns how many. Only microcontrollers have that.
    pub fn take(&mut self, into: &mut [u8]) -> usize {
        match self {
            Self::Cmsdk(uart) if HAS_CMSDK => uart.take(into),
            Self::Pl011(_) | Self::Cmsdk(_) | Self::Ns16550(_) => 0,
        }
    }

    /// Answers a load of `size` bytes at `offset` of the window.
    pub fn read(&mut self, offset: u64, size: u8) -> u64 {
        to_either!(self, uart => uart.read(offset, size), else 0)
    }

    /// Answers a load or store that has no effect beside the UART, or returns `None` ([`Pl011::touch`]).
    #[inline]
    pub fn touch(&mut self, offset: u64, size: u8, stored: Option<u64>) -> Option<u64> {
        match self {
            Self::Pl011(uart) if HAS_PL011 => uart.touch(offset, size, stored),
            Self::Ns16550(uart) if HAS_NS16550 => uart.touch(offset, size, stored),
            _ => None,
        }
    }

    /// Takes a store of `size` bytes at `offset` of the window; returns a byte to transmit.
    pub fn write(&mut self, offset: u64, size: u8, value: u64) -> Option<u8> {
        to_either!(self, uart => uart.write(offset, size, value), else None)
    }
}
