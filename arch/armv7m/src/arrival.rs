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
//! Interrupts that may change who runs are taken meanwhile. Each is counted in the log area (`Prompt`): in time, or later and by how much.
//! A line that is masked (its owner is still in the handler of the one before, has disabled it, or could not run now) has no time of
//! arrival; what comes then is counted as such when the line is opened.
//! What is not constant: an interrupt that the owner has disabled or masks, and two of the same owner at a time.

use crate::irq::MAX_LINES;
use crate::log;
use crate::machine::Machine;
use crate::system::{self, ICSR};
use bulkhead_arch_api::PartitionId;
use core::num::NonZeroU32;
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

/// Until when a partition is held back.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Held {
    /// The counter's value then.
    until: u32,
    /// How long after the arrival that is.
    latency: NonZeroU32,
}

/// Where the counter is. Requires: before any line is prompt.
pub(crate) fn find(counter: usize) {
    ARRIVALS.counter.store(counter as u32, Ordering::Relaxed);
}

fn add(counter: &AtomicU32) {
    counter.store(counter.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
}

/// A line is opened that has been pending: it came while it was masked.
pub(crate) fn came_unseen(partition: PartitionId) {
    if let Some(place) = log::area().partitions.get(usize::from(partition.0)) {
        add(&place.prompt.unknown);
    }
}

impl Machine {
    /// A line with this latency has arrived, whose owner has not gone on yet. Of two that wait the first counts, so neither is late for the
    /// other's sake.
    pub(crate) fn hold(&mut self, partition: PartitionId, line: u32, latency: NonZeroU32) {
        let arrived = ARRIVALS.times.get(line as usize);
        if let Some((held, arrived)) = self.held.get_mut(usize::from(partition.0)).zip(arrived) {
            let until = arrived.load(Ordering::Relaxed).wrapping_add(latency.get());
            held.get_or_insert(Held { until, latency });
        }
    }

    /// Waits until the partition whose vCPU is about to go on may do so, and notes whether that was in time.
    #[inline]
    pub(crate) fn hold_back(&mut self, partition: PartitionId) {
        let held = self.held.get_mut(usize::from(partition.0));
        if let Some(held) = held.and_then(Option::take) {
            self.wait_for(partition, held);
        }
    }

    #[inline(never)]
    fn wait_for(&mut self, partition: PartitionId, held: Held) {
        let rest = |now: u32| held.until.wrapping_sub(now);
        let first = rest(self.counter.low());
        let is_late = first > held.latency.get();
        // Each turn reads the counter, which does not stop.
        while !is_late && rest(self.counter.low()) as i32 > 0 {
            if system::read(ICSR) & VECTPENDING != 0 {
                // Taken as soon as the vCPU goes on, which is then held back again.
                if let Some(slot) = self.held.get_mut(usize::from(partition.0)) {
                    *slot = Some(held);
                }
                return;
            }
        }
        let Some(place) = log::area().partitions.get(usize::from(partition.0)) else {
            return;
        };
        let prompt = &place.prompt;
        if is_late {
            add(&prompt.late);
            let most = first.wrapping_neg().max(prompt.latest.load(Ordering::Relaxed));
            prompt.latest.store(most, Ordering::Relaxed);
        } else {
            add(&prompt.kept);
        }
    }
}
