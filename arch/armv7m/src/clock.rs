// SPDX-License-Identifier: Apache-2.0
//! Time: a free-running counter of 32 bits, and one timer for the event that comes first.
//!
//! The counter (`counter`) wraps after some minutes, so the timer is never set further ahead than half of
//! that. The timer interrupts for the kernel's deadline and for the guest's own timer. For the guest's timer,
//! it does not interrupt again before [`OWN_RATE`] allows. Otherwise a guest whose SysTick has a tiny reload
//! value would keep the CPU in the hypervisor.

use crate::machine::Machine;
use bulkhead_arch_api::{Clock, Ticks};

/// The furthest ahead that the timer is set.
const FURTHEST: u64 = 1 << 31;

/// The most interrupts per second that the timer makes for guests' own timers.
const OWN_RATE: u64 = 100_000;

impl Machine {
    /// Sets the timer for `wanted`.
    #[inline]
    pub(crate) fn set_timer(&mut self, wanted: Ticks) {
        if wanted != self.armed {
            self.start_timer(wanted);
        }
    }

    #[inline(never)]
    fn start_timer(&mut self, wanted: Ticks) {
        let ahead = wanted.since(self.now()).0.clamp(1, FURTHEST);
        self.timer.start(ahead as u32);
        self.armed = wanted;
    }

    /// Handles an interrupt of the timer.
    pub(crate) fn timer_fired(&mut self) {
        self.timer.stop();
        let apart = u64::from(self.hertz) / OWN_RATE;
        self.earliest_own = Ticks(self.now().0.saturating_add(apart));
        // The timer is not set for the event that is wanted next.
        self.armed = Ticks(0);
    }

    /// Tells whether the kernel's deadline has come. Such a deadline is then forgotten.
    pub(crate) fn take_deadline(&mut self) -> bool {
        let has_come = self.deadline <= self.now();
        if has_come {
            self.deadline = Ticks::NEVER;
        }
        has_come
    }
}

impl Clock for Machine {
    #[inline]
    fn now(&self) -> Ticks {
        Ticks(self.counter.read())
    }

    fn hertz(&self) -> u64 {
        u64::from(self.hertz)
    }

    #[inline]
    fn arm(&mut self, deadline: Ticks) {
        self.deadline = deadline;
    }

    #[inline]
    fn disarm(&mut self) {
        self.deadline = Ticks::NEVER;
    }
}
