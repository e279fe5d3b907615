// SPDX-License-Identifier: Apache-2.0
//! The virtual interface of a partition to a network, whichever it is.
//!
//! There is one so far. A second one makes [`Adapter`] an enum, as [`crate::uart::Uart`] is.

pub use crate::lan9118::{Arrival, FRAME_MAX, FrameMemory, Lan9118 as Adapter};

/// Tells whether the register at `offset` is a counter that always runs. Such a register is the
/// clock's, not the device's.
#[inline]
#[must_use]
pub const fn is_counter(offset: u64) -> bool {
    offset == crate::lan9118::FREE_RUN
}

/// Returns the number that such a counter shows so many nanoseconds after the start.
#[inline]
#[must_use]
pub const fn counted(nanoseconds: u64) -> u32 {
    (nanoseconds / COUNTER_NS) as u32
}

/// Nanoseconds of a tick of the counter, which runs at 25 MHz.
const COUNTER_NS: u64 = 40;
