// SPDX-License-Identifier: Apache-2.0
//! Owners of prompt lines (`arrival`) are held back until the time of their interrupt has come.

use crate::arrival::{ARRIVALS, Held, add};
use crate::log;
use crate::machine::Machine;
use crate::sysreg::{self, ICSR};
use bulkhead_arch_api::PartitionId;
use core::num::NonZeroU32;
use core::sync::atomic::Ordering;

/// ICSR (B3.2.4): the exception that is pending, enabled, and the most urgent of these.
const VECTPENDING: u32 = 0x1FF << 12;

impl Machine {
    /// Holds the partition back: a line with this latency has arrived, and its owner has not gone on yet. If
    /// two lines wait, the first one counts, so neither is late for the other's sake.
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
            if sysreg::read(ICSR) & VECTPENDING != 0 {
                // This interrupt is taken as soon as the vCPU goes on, which is then held back again.
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
