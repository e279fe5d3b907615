// SPDX-License-Identifier: Apache-2.0
//! What pCPUs tell each other.
//!
//! A mailbox is a few bitmaps: "look at this slot", "switch this slot on", "stop this partition", "load
//! this partition", "another schedule is wanted". A bit says only that there is something to look at; what it is, is kept where it
//! belongs (the partition's control block, the event gate, the backend). So a bit set twice is seen
//! once and nothing is lost, a stale bit does no harm, and posting is one atomic operation.
//!
//! **When to interrupt the owner.** A pCPU that runs a critical vCPU must not be interrupted for a less
//! important one. Each pCPU therefore publishes the slots whose readiness would change its decision
//! ([`bulkhead_sched::Policy::interested`]); a post for another slot waits for its next decision.
//!
//! **No wake-up is lost.** Poster: (1) set the bit and mark the mailbox, (2) fence, (3) read the interest. Owner: (a) publish the
//! interest, (b) fence, (c) look at the mark. Both fences are sequentially consistent, so one of them is
//! first: if (2) is, (c) sees the mark; if (b) is, (3) sees the interest and the poster signals. The owner does (a) to
//! (c) after each decision and before it runs or waits. The signal itself (an interrupt) stays pending
//! until taken, so it is not lost between (c) and the first instruction of the partition either.

use bulkhead_arch_api::PartitionId;
use bulkhead_sched::{Slot, SlotSet};
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering, fence};

/// The bit of `number` in a bitmap of 32.
#[inline]
pub const fn bit(number: u8) -> u32 {
    1_u32.wrapping_shl(number as u32)
}

/// The numbers of the bits set in `bits`, lowest first; at most 32 steps.
pub fn bits(bits: u32) -> impl Iterator<Item = u8> {
    let mut rest = bits;
    core::iter::from_fn(move || {
        if rest == 0 {
            return None;
        }
        let lowest = rest.trailing_zeros() as u8;
        rest &= !bit(lowest);
        Some(lowest)
    })
}

/// Messages for one pCPU.
#[derive(Debug, Default)]
pub struct Mailbox {
    /// Something was posted since it was emptied last.
    any: AtomicBool,
    wake: AtomicU32,
    start: AtomicU32,
    stop: AtomicU32,
    load: AtomicU32,
    schedule: AtomicU32,
    critical: AtomicU32,
    halt: AtomicBool,
    interested: AtomicU32,
}

/// What was in a mailbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Post {
    /// Slots that may have something to do.
    pub wake: u32,
    /// Slots to switch on.
    pub start: u32,
    /// Partitions to stop.
    pub stop: u32,
    /// Partitions to load.
    pub load: u32,
    /// Another schedule is wanted.
    pub schedule: bool,
    /// Slots for which a critical interrupt came.
    pub critical: u32,
    /// The hypervisor ends.
    pub halt: bool,
}

impl Mailbox {
    /// An empty one.
    pub const fn new() -> Self {
        Self {
            any: AtomicBool::new(false),
            wake: AtomicU32::new(0),
            start: AtomicU32::new(0),
            stop: AtomicU32::new(0),
            load: AtomicU32::new(0),
            schedule: AtomicU32::new(0),
            critical: AtomicU32::new(0),
            halt: AtomicBool::new(false),
            interested: AtomicU32::new(0),
        }
    }

    /// "Look at `slot`." Returns whether the owner wants to be signalled for that.
    #[must_use]
    pub fn post_wake(&self, slot: Slot) -> bool {
        self.post(&self.wake, slot.0);
        self.wants(slot)
    }

    /// "Switch `slot` on." Returns whether the owner wants to be signalled for that.
    #[must_use]
    pub fn post_start(&self, slot: Slot) -> bool {
        self.post(&self.start, slot.0);
        self.wants(slot)
    }

    /// "Load `partition`, whose first vCPU is `slot`." Returns whether the owner wants to be signalled for that.
    #[must_use]
    pub fn post_load(&self, partition: PartitionId, slot: Slot) -> bool {
        self.post(&self.load, partition.0);
        self.wants(slot)
    }

    /// "Stop `partition`." The owner is always to be signalled: others wait for its confirmation.
    pub fn post_stop(&self, partition: PartitionId) {
        self.post(&self.stop, partition.0);
    }

    /// "Another schedule is wanted." Nobody has to be signalled: until the frame ends there is a decision.
    pub fn post_schedule(&self) {
        self.post(&self.schedule, 0);
    }

    /// "A critical interrupt came for `slot`", after [`Mailbox::post_wake`]. The owner is always to be signalled.
    pub fn post_critical(&self, slot: Slot) {
        self.post(&self.critical, slot.0);
    }

    /// "Stop for good."
    pub fn post_halt(&self) {
        self.halt.store(true, Ordering::Release);
        self.any.store(true, Ordering::Release);
    }

    /// Says which slots the owner wants to be signalled for. What was posted before and not signalled
    /// is visible to [`Mailbox::is_empty`] and [`Mailbox::take`] afterwards.
    pub fn publish(&self, interested: SlotSet) {
        self.interested.store(interested.0, Ordering::Relaxed);
        fence(Ordering::SeqCst);
    }

    /// Whether there is nothing in it.
    #[inline]
    pub fn is_empty(&self) -> bool {
        !self.any.load(Ordering::Relaxed)
    }

    /// Empties it, but for a halt. `any` is cleared first and by a read-modify-write: a bit whose mark that takes is
    /// visible to the look at the bits, and a mark that comes later stays.
    pub fn take(&self) -> Post {
        self.any.swap(false, Ordering::AcqRel);
        if self.halt.load(Ordering::Acquire) {
            self.any.store(true, Ordering::Release);
        }
        Post {
            wake: Self::drain(&self.wake),
            start: Self::drain(&self.start),
            stop: Self::drain(&self.stop),
            load: Self::drain(&self.load),
            schedule: Self::drain(&self.schedule) != 0,
            critical: Self::drain(&self.critical),
            halt: self.halt.load(Ordering::Acquire),
        }
    }

    fn post(&self, word: &AtomicU32, number: u8) {
        word.fetch_or(bit(number), Ordering::Release);
        self.any.store(true, Ordering::Release);
        fence(Ordering::SeqCst);
    }

    fn wants(&self, slot: Slot) -> bool {
        self.interested.load(Ordering::Relaxed) & bit(slot.0) != 0
    }

    /// A plain load first: nearly always there is nothing, and a load does not take the cache line
    /// away from the other pCPUs.
    fn drain(word: &AtomicU32) -> u32 {
        if word.load(Ordering::Relaxed) == 0 {
            0
        } else {
            word.swap(0, Ordering::Acquire)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    #[test]
    fn bits_are_listed_from_the_lowest() {
        assert_eq!(bits(0).count(), 0);
        assert_eq!(bits(0x8000_0005).collect::<Vec<_>>(), [0, 2, 31]);
    }

    #[test]
    fn what_is_posted_is_taken_once() {
        let mailbox = Mailbox::new();
        assert!(mailbox.is_empty());
        assert!(!mailbox.post_wake(Slot(3)));
        assert!(!mailbox.post_wake(Slot(3)));
        assert!(!mailbox.post_start(Slot(1)));
        assert!(!mailbox.post_load(PartitionId(5), Slot(0)));
        mailbox.post_stop(PartitionId(31));
        mailbox.post_schedule();
        mailbox.post_critical(Slot(4));
        assert!(!mailbox.is_empty());
        let post = mailbox.take();
        assert_eq!(
            post,
            Post {
                wake: 8,
                start: 2,
                stop: 0x8000_0000,
                load: 32,
                schedule: true,
                critical: 16,
                halt: false
            }
        );
        assert!(mailbox.is_empty());
        assert_eq!(mailbox.take(), Post::default());
    }

    #[test]
    fn only_an_interested_owner_is_signalled() {
        let mailbox = Mailbox::new();
        mailbox.publish(SlotSet(0b100));
        assert!(mailbox.post_wake(Slot(2)));
        assert!(!mailbox.post_wake(Slot(1)));
        assert!(mailbox.post_load(PartitionId(1), Slot(2)));
        assert!(!mailbox.post_start(Slot(0)));
    }

    #[test]
    fn a_halt_stays() {
        let mailbox = Mailbox::new();
        mailbox.post_halt();
        assert!(mailbox.take().halt);
        assert!(!mailbox.is_empty());
    }
}
