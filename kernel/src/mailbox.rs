// SPDX-License-Identifier: Apache-2.0
//! Messages between pCPUs.
//!
//! A mailbox has a bitmap for each kind of mail ("look at this slot", "switch this slot on", "stop this
//! partition", "load this partition"). A word of marks says which kinds there are. A bit says only that there
//! is something to look at. The thing itself is kept where it belongs (the partition's control block, the
//! event gate, the backend). So a bit that is set twice is seen once, and nothing is lost. A stale bit does
//! no harm. A post is two atomic operations.
//!
//! **Interrupts of the owner.** A pCPU that runs a critical vCPU must not be interrupted for a less important
//! one. Each pCPU therefore publishes the slots whose readiness would change its decision
//! ([`bulkhead_sched::Policy::interested`]). A post for another slot waits for the next decision of the pCPU.
//!
//! **No wake-up is lost.** The poster does three steps: (1) set the bit and mark the mailbox, (2) fence, (3)
//! read the interest. The owner does three steps, too: (a) publish the interest, (b) fence, (c) look at the
//! mark. Both fences are sequentially consistent, so one of them is first. If (2) is first, (c) sees the
//! mark. If (b) is first, (3) sees the interest and the poster signals. The owner does (a) to (c) after each
//! decision and before it runs or waits. The signal itself (an interrupt) stays pending until it is taken. So
//! the signal is not lost between (c) and the first instruction of the partition either.

use bulkhead_arch_api::{MAX_VCPUS_PER_PARTITION, PartitionId};
use bulkhead_sched::{Slot, SlotSet};
use core::sync::atomic::{AtomicU32, Ordering, fence};

/// Returns the bit of `number` in a bitmap of 32.
#[inline]
pub const fn bit(number: u8) -> u32 {
    1_u32.wrapping_shl(number as u32)
}

/// Returns the numbers of the bits set in `bits`, lowest first. Takes at most 32 steps.
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

/// Bits of [`Mailbox::marks`]: the kinds of mail that were posted.
const WAKE: u32 = 1;
/// Where a partition has one vCPU, there is no such mail: the life of the partition switches the vCPU on.
const START: u32 = if MAX_VCPUS_PER_PARTITION > 1 { 1 << 1 } else { 0 };
const STOP: u32 = 1 << 2;
const LOAD: u32 = 1 << 3;
const SCHEDULE: u32 = 1 << 4;
const CRITICAL: u32 = 1 << 5;
const HALT: u32 = 1 << 6;
const REVIEW: u32 = 1 << 7;

/// Messages for one pCPU.
#[derive(Debug, Default)]
pub struct Mailbox {
    /// The kinds of mail that were posted since the mailbox was emptied last.
    marks: AtomicU32,
    wake: AtomicU32,
    start: AtomicU32,
    stop: AtomicU32,
    load: AtomicU32,
    critical: AtomicU32,
    review: AtomicU32,
    interested: AtomicU32,
}

/// The mail that was in a mailbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Post {
    /// The slots that may have something to do.
    pub wake: u32,
    /// The slots to switch on.
    pub start: u32,
    /// The partitions to stop.
    pub stop: u32,
    /// The partitions to load.
    pub load: u32,
    /// True if another schedule is wanted.
    pub schedule: bool,
    /// The slots for which a critical interrupt came.
    pub critical: u32,
    /// The slots that may wait by a capability which was taken away.
    pub review: u32,
    /// True if the hypervisor ends.
    pub halt: bool,
}

impl Mailbox {
    /// Makes an empty mailbox.
    pub const fn new() -> Self {
        Self {
            marks: AtomicU32::new(0),
            wake: AtomicU32::new(0),
            start: AtomicU32::new(0),
            stop: AtomicU32::new(0),
            load: AtomicU32::new(0),
            critical: AtomicU32::new(0),
            review: AtomicU32::new(0),
            interested: AtomicU32::new(0),
        }
    }

    /// Posts "look at `slot`". Returns whether the owner wants to be signalled for that.
    #[must_use]
    pub fn post_wake(&self, slot: Slot) -> bool {
        self.post(&self.wake, slot.0, WAKE);
        self.wants(slot)
    }

    /// Posts "look whether `slot` may still wait". Returns whether the owner wants to be signalled for that.
    #[must_use]
    pub fn post_review(&self, slot: Slot) -> bool {
        self.post(&self.review, slot.0, REVIEW);
        self.wants(slot)
    }

    /// Posts "switch `slot` on". Returns whether the owner wants to be signalled for that.
    #[must_use]
    pub fn post_start(&self, slot: Slot) -> bool {
        self.post(&self.start, slot.0, START);
        self.wants(slot)
    }

    /// Posts "load `partition`, whose first vCPU is `slot`". Returns whether the owner wants to be signalled
    /// for that.
    #[must_use]
    pub fn post_load(&self, partition: PartitionId, slot: Slot) -> bool {
        self.post(&self.load, partition.0, LOAD);
        self.wants(slot)
    }

    /// Posts "stop `partition`". The owner is always to be signalled, because other pCPUs wait for its
    /// confirmation.
    pub fn post_stop(&self, partition: PartitionId) {
        self.post(&self.stop, partition.0, STOP);
    }

    /// Posts "another schedule is wanted". The owner needs no signal, because there is a decision before the
    /// frame ends.
    pub fn post_schedule(&self) {
        self.mark(SCHEDULE);
    }

    /// Posts "a critical interrupt came for `slot`", after [`Mailbox::post_wake`]. The owner is always to be
    /// signalled.
    pub fn post_critical(&self, slot: Slot) {
        self.post(&self.critical, slot.0, CRITICAL);
    }

    /// Posts "stop for good".
    pub fn post_halt(&self) {
        self.mark(HALT);
    }

    /// Publishes the slots that the owner wants to be signalled for. Afterwards [`Mailbox::is_empty`] and
    /// [`Mailbox::take`] see everything that was posted before and not signalled.
    pub fn publish(&self, interested: SlotSet) {
        self.interested.store(interested.0, Ordering::Relaxed);
        fence(Ordering::SeqCst);
    }

    /// Tells whether the mailbox is empty.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.marks.load(Ordering::Relaxed) == 0
    }

    /// Tells whether the mailbox has mail that a decision which runs or waits for these slots must not leave
    /// unread. A mere look at any other slot waits for the next decision. Otherwise pCPUs that post without
    /// end would keep the owner deciding.
    pub fn is_pressing(&self, SlotSet(slots): SlotSet) -> bool {
        // Acquire: a pCPU that sees a mark sees the bit that the mark announces.
        let marks = self.marks.load(Ordering::Acquire);
        if marks & !(WAKE | START | SCHEDULE | REVIEW) != 0 {
            return true;
        }
        let concerned = self.wake.load(Ordering::Relaxed)
            | self.start.load(Ordering::Relaxed)
            | self.review.load(Ordering::Relaxed);
        marks != 0 && concerned & slots != 0
    }

    /// Tells whether the mailbox has orders to stop or to load a partition.
    pub fn has_orders(&self) -> bool {
        self.marks.load(Ordering::Relaxed) & (STOP | LOAD) != 0
    }

    /// Puts orders back that the owner took and has not carried out.
    pub fn put_back(&self, stop: u32, load: u32) {
        for (word, partitions, mark) in [(&self.stop, stop, STOP), (&self.load, load, LOAD)] {
            if partitions != 0 {
                word.fetch_or(partitions, Ordering::Release);
                self.mark(mark);
            }
        }
    }

    /// Empties the mailbox, except for a halt. The marks are cleared first, and by a read-modify-write. If
    /// the clearing takes the mark of a bit, the look at the bits sees that bit. A mark that comes later
    /// stays.
    pub fn take(&self) -> Post {
        let marks = self.marks.fetch_and(HALT, Ordering::AcqRel);
        let drain = |mark: u32, word: &AtomicU32| {
            if marks & mark == 0 {
                0
            } else {
                word.swap(0, Ordering::Acquire)
            }
        };
        Post {
            wake: drain(WAKE, &self.wake),
            start: drain(START, &self.start),
            stop: drain(STOP, &self.stop),
            load: drain(LOAD, &self.load),
            schedule: marks & SCHEDULE != 0,
            critical: drain(CRITICAL, &self.critical),
            review: drain(REVIEW, &self.review),
            halt: marks & HALT != 0,
        }
    }

    /// Empties the mailbox if it has only slots to switch on. Returns these slots, or none.
    #[inline]
    pub fn take_starts(&self) -> u32 {
        if START == 0 {
            return 0;
        }
        let only = self
            .marks
            .compare_exchange(START, 0, Ordering::AcqRel, Ordering::Relaxed);
        if only.is_ok() {
            self.start.swap(0, Ordering::Acquire)
        } else {
            0
        }
    }

    fn post(&self, word: &AtomicU32, number: u8, mark: u32) {
        // A pCPU may find the bit because of the mark of another post. That pCPU sees everything done before
        // this post, too.
        word.fetch_or(bit(number), Ordering::Release);
        self.mark(mark);
    }

    /// Sets a mark. The pCPU that takes the mark sees everything that was posted before it.
    fn mark(&self, mark: u32) {
        self.marks.fetch_or(mark, Ordering::Release);
        fence(Ordering::SeqCst);
    }

    fn wants(&self, slot: Slot) -> bool {
        self.interested.load(Ordering::Relaxed) & bit(slot.0) != 0
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
        assert!(!mailbox.post_review(Slot(6)));
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
                review: 64,
                halt: false
            }
        );
        assert!(mailbox.is_empty());
        assert_eq!(mailbox.take(), Post::default());
    }

    #[test]
    fn starts_are_taken_alone_or_with_the_rest() {
        let mailbox = Mailbox::new();
        assert_eq!(mailbox.take_starts(), 0);
        assert!(!mailbox.post_start(Slot(3)));
        assert!(!mailbox.post_start(Slot(1)));
        assert_eq!(mailbox.take_starts(), 0b1010);
        assert!(mailbox.is_empty());
        assert!(!mailbox.post_start(Slot(2)));
        mailbox.post_schedule();
        assert_eq!(mailbox.take_starts(), 0);
        let post = mailbox.take();
        assert_eq!((post.start, post.schedule), (0b100, true));
        mailbox.post_halt();
        assert!(!mailbox.post_start(Slot(0)));
        assert_eq!(mailbox.take_starts(), 0);
        assert_eq!(mailbox.take().start, 1);
        assert_eq!(mailbox.take_starts(), 0);
        assert!(mailbox.take().halt);
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
    fn only_what_concerns_the_decision_is_pressing() {
        let mailbox = Mailbox::new();
        assert!(!mailbox.is_pressing(SlotSet(u32::MAX)));
        assert!(!mailbox.post_wake(Slot(3)));
        mailbox.post_schedule();
        assert!(!mailbox.is_pressing(SlotSet(0b0111)));
        assert!(mailbox.is_pressing(SlotSet(0b1000)));
        assert_eq!(mailbox.take().wake, 0b1000);
        assert!(!mailbox.post_start(Slot(0)));
        assert!(!mailbox.is_pressing(SlotSet(0b1000)));
        assert!(mailbox.is_pressing(SlotSet(0b0001)));
        let orders: [fn(&Mailbox); 4] = [
            |mailbox| mailbox.post_stop(PartitionId(1)),
            |mailbox| mailbox.put_back(0, 1),
            |mailbox| mailbox.post_critical(Slot(2)),
            Mailbox::post_halt,
        ];
        for order in orders {
            let mailbox = Mailbox::new();
            order(&mailbox);
            assert!(mailbox.is_pressing(SlotSet(0)));
        }
    }

    #[test]
    fn orders_that_are_put_back_are_taken_again() {
        let mailbox = Mailbox::new();
        mailbox.put_back(0b110, 0);
        let post = mailbox.take();
        assert_eq!((post.stop, post.load), (0b110, 0));
        mailbox.put_back(0, 0);
        assert!(mailbox.is_empty());
        mailbox.put_back(0b100, 0b1);
        let post = mailbox.take();
        assert_eq!((post.stop, post.load), (0b100, 0b1));
    }

    #[test]
    fn a_halt_stays() {
        let mailbox = Mailbox::new();
        mailbox.post_halt();
        assert!(mailbox.take().halt);
        assert!(!mailbox.is_empty());
    }
}
