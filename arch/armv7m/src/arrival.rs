// SPDX-License-Identifier: Apache-2.0
//! Interrupts whose latency is constant: when each arrived, and until when its owner is held back.
//!
//! How long an interrupt takes to its owner depends on what ran: nothing, a guest, or the hypervisor in the middle of a trap, which it
//! finishes first. A line whose latency the manifest fixes is *prompt*: it interrupts the hypervisor as well, by the one
//! priority that preempts (B1.5.4). Its handler notes the board's counter, takes the line down to the priority of all others and pends it again
//! (`bulkhead_line` in `entry`): a dozen instructions which touch nothing that the interrupted code uses. What follows is the way of every
//! interrupt, and just before the owner goes on, with everything else done, the rest of its time is spent waiting.
//!
//! The time that is waited for counts from the arrival, not from the end of what was in the way. So the latency is the same, to the
//! length of the loop that waits, as long as it is at least what the longest way takes; after a longer one the owner goes on at once.
//! Interrupts that may change who runs are taken meanwhile.
//! What is not constant: an interrupt that the owner has disabled or masks, and two of the same owner at a time.

use crate::irq::MAX_LINES;
use crate::machine::Machine;
use crate::system::{self, ICSR};
use bulkhead_arch_api::VcpuId;
use core::sync::atomic::{AtomicU32, Ordering};

/// ICSR (B3.2.4): the exception that is pending, enabled, and the most urgent of these.
const VECTPENDING: u32 = 0x1FF << 12;

/// What the handler of a prompt line reads and writes.
#[repr(C)]
pub(crate) struct Arrivals {
    /// The address of the board's counter.
    counter: AtomicU32,
    /// What it was when a line arrived last.
    times: [AtomicU32; MAX_LINES as usize],
}

const _: () = assert!(core::mem::offset_of!(Arrivals, times) == 4);

/// `entry` knows it by this name.
pub(crate) static ARRIVALS: Arrivals = Arrivals {
    counter: AtomicU32::new(0),
    times: [const { AtomicU32::new(0) }; MAX_LINES as usize],
};

/// Until when a vCPU is held back.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Held {
    vcpu: VcpuId,
    /// The counter's value then.
    until: u32,
    /// How long after the arrival that is.
    latency: u32,
}

/// Where the counter is. Requires: before any line is prompt.
pub(crate) fn find(counter: usize) {
    ARRIVALS.counter.store(counter as u32, Ordering::Relaxed);
}

impl Held {
    /// The owner of a line that has arrived, with its latency.
    pub(crate) fn of(vcpu: VcpuId, line: u32, latency: u32) -> Option<Self> {
        let arrived = ARRIVALS.times.get(line as usize)?.load(Ordering::Relaxed);
        Some(Self {
            vcpu,
            until: arrived.wrapping_add(latency),
            latency,
        })
    }
}

impl Machine {
    /// Waits until the vCPU that is about to go on may do so. Not longer than the latency of its interrupt: what is further away than that is the time of
    /// one that it did not run for, and has passed.
    #[inline]
    pub(crate) fn hold_back(&mut self, vcpu: VcpuId) {
        let Some(held) = self.held.filter(|held| held.vcpu == vcpu) else {
            return;
        };
        let rest = |now: u32| held.until.wrapping_sub(now);
        if rest(self.counter.low()) <= held.latency {
            // Each turn reads the counter, which does not stop.
            while rest(self.counter.low()) as i32 > 0 {
                if system::read(ICSR) & VECTPENDING != 0 {
                    // Taken as soon as the vCPU goes on, which is then held back again.
                    return;
                }
            }
        }
        self.held = None;
    }
}
