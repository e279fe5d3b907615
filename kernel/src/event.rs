// SPDX-License-Identifier: Apache-2.0
//! Event gates: 64 events that a partition can wait for.
//!
//! Each partition has one gate. A raise of events is one atomic operation on any pCPU. The vCPU that looks
//! first consumes the events of a gate. A vCPU that finds no event registers as a waiter and blocks. A raiser
//! wakes all waiters, and each waiter looks again on its own pCPU.
//!
//! **No event is lost.** The waiter does three steps: (1) register, (2) fence, (3) look. The raiser does
//! three steps, too: (a) raise, (b) fence, (c) read the waiters. One of the fences is first. Then either (3)
//! sees the event or (c) sees the waiter.

use bulkhead_abi::atomic::AtomicU64;
use bulkhead_arch_api::{PartitionId, VcpuId, VcpuSet};
use core::sync::atomic::{Ordering, fence};

/// A wait for events. Its verbs are in [`crate::dispatch`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventWait {
    /// The partition whose gate it is.
    pub gate: PartitionId,
    /// The slot of the capability by which the vCPU waits.
    pub index: u8,
}

/// The event gate of one partition.
#[derive(Debug, Default)]
pub struct Gate {
    pending: AtomicU64,
    waiters: AtomicU64,
}

impl Gate {
    /// Makes a gate without events.
    pub const fn new() -> Self {
        Self {
            pending: AtomicU64::new(0),
            waiters: AtomicU64::new(0),
        }
    }

    /// Raises `events`. Returns the vCPUs that must look again.
    #[must_use]
    pub fn raise(&self, events: u64) -> VcpuSet {
        self.pending.fetch_or(events, Ordering::Release);
        fence(Ordering::SeqCst);
        VcpuSet(self.waiters.load(Ordering::Relaxed))
    }

    /// Consumes the pending events. Returns 0 if there are none.
    pub fn take(&self) -> u64 {
        if self.pending.load(Ordering::Relaxed) == 0 {
            0
        } else {
            self.pending.swap(0, Ordering::Acquire)
        }
    }

    /// Makes `vcpu` a waiter, or consumes the pending events. In the second case the result is not 0, and
    /// `vcpu` is no waiter.
    pub fn wait(&self, vcpu: VcpuId) -> u64 {
        let own = VcpuSet::of(vcpu).0;
        self.waiters.fetch_or(own, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        let events = self.take();
        if events != 0 {
            self.leave(vcpu);
        }
        events
    }

    /// Makes `vcpu` a waiter that consumes nothing. Returns whether there are events already.
    pub fn watch(&self, vcpu: VcpuId) -> bool {
        self.waiters.fetch_or(VcpuSet::of(vcpu).0, Ordering::Relaxed);
        self.has_events()
    }

    /// Takes `vcpu` from the waiters.
    pub fn leave(&self, vcpu: VcpuId) {
        self.waiters.fetch_and(!VcpuSet::of(vcpu).0, Ordering::Relaxed);
    }

    /// Takes `vcpu` from the waiters. Returns the events that have come meanwhile, if there are any.
    pub fn give_up(&self, vcpu: VcpuId) -> Option<u64> {
        self.leave(vcpu);
        match self.take() {
            0 => None,
            events => Some(events),
        }
    }

    /// Tells whether there are events. This is for a caller that has just announced that there are none. An
    /// event was either raised before the announcement, or is seen here.
    pub fn has_events(&self) -> bool {
        fence(Ordering::SeqCst);
        self.pending.load(Ordering::Relaxed) != 0
    }

    /// Forgets pending events, because the owner starts anew.
    pub fn clear(&self) {
        self.pending.store(0, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_add_up_and_are_consumed_once() {
        let gate = Gate::new();
        assert!(gate.raise(1).is_empty());
        assert!(gate.raise(1 << 63).is_empty());
        assert_eq!(gate.take(), 1 | 1 << 63);
        assert_eq!(gate.take(), 0);
    }

    #[test]
    fn a_waiter_is_named_to_the_raiser_until_it_leaves() {
        let gate = Gate::new();
        assert_eq!(gate.wait(VcpuId(7)), 0);
        assert_eq!(gate.raise(4), VcpuSet::of(VcpuId(7)));
        assert_eq!(gate.wait(VcpuId(7)), 4);
        assert!(gate.raise(1).is_empty());
        gate.clear();
        assert_eq!(gate.take(), 0);
    }
}
