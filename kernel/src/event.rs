// SPDX-License-Identifier: Apache-2.0
//! Event gates: 64 events that a partition can wait for.
//!
//! Each partition has one gate. Raising events is one atomic operation on any pCPU; the events of a gate are
//! consumed by whoever looks first. A vCPU that finds none registers as a waiter and blocks; a raiser
//! wakes all waiters, and each looks again on its own pCPU.
//!
//! **No event is lost.** Waiter: (1) register, (2) fence, (3) look. Raiser: (a) raise, (b) fence, (c) read
//! the waiters. Whichever fence is first, either (3) sees the event or (c) sees the waiter.

use bulkhead_abi::atomic::AtomicU64;
use bulkhead_arch_api::{VcpuId, VcpuSet};
use core::sync::atomic::{Ordering, fence};

/// One gate.
#[derive(Debug, Default)]
pub struct Gate {
    pending: AtomicU64,
    waiters: AtomicU64,
}

impl Gate {
    /// A gate without events.
    pub const fn new() -> Self {
        Self {
            pending: AtomicU64::new(0),
            waiters: AtomicU64::new(0),
        }
    }

    /// Raises `events`; the vCPUs returned must look again.
    #[must_use]
    pub fn raise(&self, events: u64) -> VcpuSet {
        self.pending.fetch_or(events, Ordering::Release);
        fence(Ordering::SeqCst);
        VcpuSet(self.waiters.load(Ordering::Relaxed))
    }

    /// Consumes the pending events; 0 if there are none.
    pub fn take(&self) -> u64 {
        if self.pending.load(Ordering::Relaxed) == 0 {
            0
        } else {
            self.pending.swap(0, Ordering::Acquire)
        }
    }

    /// Makes `vcpu` a waiter, or consumes what is pending: then the result is not 0 and it is no waiter.
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

    /// `vcpu` waits no longer.
    pub fn leave(&self, vcpu: VcpuId) {
        self.waiters.fetch_and(!VcpuSet::of(vcpu).0, Ordering::Relaxed);
    }

    /// `vcpu` waits no longer; what has come meanwhile, if anything.
    pub fn give_up(&self, vcpu: VcpuId) -> Option<u64> {
        self.leave(vcpu);
        match self.take() {
            0 => None,
            events => Some(events),
        }
    }

    /// Whether there are events. For one who has just said that there are none: raised before that or seen here.
    pub fn has_events(&self) -> bool {
        fence(Ordering::SeqCst);
        self.pending.load(Ordering::Relaxed) != 0
    }

    /// Forgets pending events: the owner starts anew.
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
