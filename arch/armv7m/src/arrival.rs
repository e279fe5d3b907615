// SPDX-License-Identifier: Apache-2.0
//! Interrupts whose latency is constant: the time at which each arrived, and the time until which its owner
//! is held back.
//!
//! The time from an interrupt to its owner depends on the code that ran: none, a guest, or the hypervisor in
//! the middle of a trap, which it finishes first. A line whose latency the manifest fixes is *prompt*: it
//! interrupts the hypervisor as well, by the one priority that preempts (B1.5.4). Its handler notes the
//! board's counter, takes the line down to the priority of all others and pends it again (`bulkhead_line` in
//! `entry`). The handler has a dozen instructions, which touch nothing that the interrupted code uses. Then
//! the line goes the way of every interrupt. Just before the owner goes on, with everything else done, the
//! hypervisor waits for the rest of the latency.
//!
//! The latency counts from the arrival, not from the end of the work that was in the way. So the latency is
//! the same, up to the length of the loop that waits, as long as it is at least the time of the longest way.
//! After a longer way the owner goes on at once. Interrupts that may change the running vCPU are taken
//! meanwhile. Each arrival is counted in the log area (`Prompt`): in time, or later and by how much. A masked
//! line (its owner is still in the handler of the interrupt before, has disabled the line, or could not run
//! now) has no time of arrival. An interrupt that arrives meanwhile is counted as such when the line is
//! opened. The latency is not constant in three cases: the owner has disabled or masks the interrupt, two
//! interrupts of the same owner come at a time, or the hypervisor's clock interrupts the end of the wait. The
//! clock is then served first, and the owner is late by the time of that work at most.

use crate::sysreg::MAX_LINES;
use core::num::NonZeroU32;
use core::sync::atomic::{AtomicU32, Ordering};

/// The counter and the times that the handler of a prompt line uses.
#[repr(C)]
pub(crate) struct Arrivals {
    /// The address of the board's counter.
    counter: AtomicU32,
    /// The counter's value when a line arrived last.
    pub(crate) times: [AtomicU32; MAX_LINES as usize],
}

const _: () = assert!(core::mem::offset_of!(Arrivals, times) == 4);

/// The data of prompt lines. `entry` knows it by this name.
pub(crate) static ARRIVALS: Arrivals = Arrivals {
    counter: AtomicU32::new(0),
    times: [const { AtomicU32::new(0) }; MAX_LINES as usize],
};

/// The time until which a partition is held back.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Held {
    /// The counter's value then.
    pub(crate) until: u32,
    /// The time between the arrival and that value.
    pub(crate) latency: NonZeroU32,
}

/// Stores the address of the counter. Requires: before any line is prompt.
pub(crate) fn find(counter: usize) {
    ARRIVALS.counter.store(counter as u32, Ordering::Relaxed);
}

/// Counts one more.
pub(crate) fn add(counter: &AtomicU32) {
    counter.store(counter.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
}
