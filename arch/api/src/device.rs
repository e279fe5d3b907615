// SPDX-License-Identifier: Apache-2.0
//! A virtual device of a partition, and its registers where a backend asks them at the trap, without an exit.
//!
//! The kernel lends a [`Window`] for as long as the vCPU runs whose memory it is in. An access that concerns
//! only that vCPU is answered there and then. An access that concerns others is not done, and becomes an
//! [`crate::Exit::Access`] as if there were no window. So a backend that knows no shorter way leaves windows
//! alone, and nothing a guest can see differs.

use crate::{AddressSpace, HostPhys, VirtualLine};
use bulkhead_abi::size::Register;

/// One window of a virtual device: where the partition finds its registers, and the interrupt of the device.
///
/// A partition has a table of them. The kernel and the backend each answer the devices that they know by
/// their numbers ([`crate::class::DeviceFacts`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VirtualDevice {
    base: Register,
    size: u32,
    line: u16,
    kind: u8,
    /// Bits 0 to 3: the number of the window. Bits 4 to 7: its address space.
    window: u8,
}

/// The line of a device that never interrupts. No controller has so many lines.
const NO_LINE: u16 = u16::MAX;

#[allow(
    clippy::unnecessary_cast,
    reason = "a register has 32 bits where tables are small"
)]
impl VirtualDevice {
    /// No device.
    pub const NOTHING: Self = Self {
        base: 0,
        size: 0,
        line: NO_LINE,
        kind: 0,
        window: 0,
    };

    /// Returns a window of the device with this number in a system image: its number and address space,
    /// `size` bytes (or registers) from `base` on.
    #[must_use]
    pub const fn new(
        kind: u32,
        (window, space): (u8, AddressSpace),
        (base, size): (u64, u64),
        interrupt: Option<VirtualLine>,
    ) -> Self {
        Self {
            base: base as Register,
            size: size as u32,
            line: match interrupt {
                Some(line) => line.0 as u16,
                None => NO_LINE,
            },
            kind: kind as u8,
            window: window & 0xF | (space as u8) << 4,
        }
    }

    /// Returns its number in a system image.
    #[must_use]
    pub const fn kind(&self) -> u32 {
        self.kind as u32
    }

    /// Returns which of the device's windows it is.
    #[must_use]
    pub const fn window(&self) -> u8 {
        self.window & 0xF
    }

    /// Returns the address of its first register.
    #[must_use]
    pub const fn base(&self) -> u64 {
        self.base as u64
    }

    /// Returns the number of its bytes.
    #[must_use]
    pub const fn size(&self) -> u32 {
        self.size
    }

    /// Returns its interrupt; of several lines the first.
    #[inline]
    #[must_use]
    pub const fn interrupt(&self) -> Option<VirtualLine> {
        match self.line {
            NO_LINE => None,
            line => Some(VirtualLine(line as u32)),
        }
    }

    /// Returns the window: its first address and its bytes.
    #[inline]
    #[must_use]
    pub const fn registers(&self) -> (u64, u64) {
        (self.base as u64, self.size as u64)
    }

    /// Tells whether the window is in this address space.
    #[inline]
    #[must_use]
    pub const fn is_in(&self, space: AddressSpace) -> bool {
        self.window >> 4 == space as u8
    }

    /// Returns where in the window an address is.
    #[inline]
    #[must_use]
    pub const fn offset_of(&self, address: u64) -> Option<u64> {
        let offset = address.wrapping_sub(self.base as u64);
        if offset < self.size as u64 {
            Some(offset)
        } else {
            None
        }
    }
}

/// Memory that the system image sets aside for frames, a word at a time.
pub trait FrameWords {
    /// Returns the word at this address, which is a multiple of 4.
    fn word(&mut self, at: HostPhys) -> u32;
    /// Changes it.
    fn set_word(&mut self, at: HostPhys, value: u32);
}

/// No memory: where there are no networks.
pub(crate) struct NoWords;

impl FrameWords for NoWords {
    fn word(&mut self, _at: HostPhys) -> u32 {
        0
    }

    fn set_word(&mut self, _at: HostPhys, _value: u32) {}
}

/// The outcome of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stored {
    /// It is done.
    Done,
    /// It is done, and the level of the line is this one now.
    Level(bool),
    /// Nothing is done: it must be an exit.
    Exit,
}

/// A device. Offsets are multiples of 4, accesses are words. Worst case of each: constant.
pub trait Window {
    /// Loads the register at `offset`. `None`: nothing is done, it must be an exit.
    fn load(&mut self, offset: u32, memory: &mut impl FrameWords) -> Option<u32>;
    /// Stores to it.
    fn store(&mut self, offset: u32, value: u32, memory: &mut impl FrameWords) -> Stored;
}
