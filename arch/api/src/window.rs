// SPDX-License-Identifier: Apache-2.0
//! Registers of a virtual device that a backend asks at the trap, without an exit.
//!
//! The kernel lends a [`Window`] for as long as the vCPU runs whose memory it is in. An access that concerns nobody but that vCPU is
//! answered there and then; what concerns others is not done, and becomes an [`crate::Exit::Access`] as if there were no window. So a backend
//! that knows no shorter way leaves windows alone, and nothing a guest can see differs.

use crate::{GuestPhys, HostPhys, VirtualLine};

/// Where the registers are, and on which line their device interrupts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// First register.
    pub base: GuestPhys,
    /// Bytes.
    pub size: u32,
    /// Its interrupt.
    pub line: Option<VirtualLine>,
}

/// Memory that the system image sets aside for frames, a word at a time.
pub trait FrameWords {
    /// The word at this address, which is a multiple of 4.
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

/// What became of a store.
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
