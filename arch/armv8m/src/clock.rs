// SPDX-License-Identifier: Apache-2.0
//! Time: a free-running counter of 32 bits, and one timer for the kernel's deadline.
//!
//! The counter wraps after some minutes, so the timer is never set further ahead than half of that. VMs have
//! a SysTick, which the hypervisor does not use.

use crate::machine::Machine;
use crate::pair::{start_ticks, stop_ticks};
use bulkhead_arch_api::{Clock, Ticks};

/// The furthest ahead that the timer is set.
const FURTHEST: u64 = 1 << 31;

impl Machine {
    /// Sets the timer for the kernel's deadline.
    #[inline]
    pub(crate) fn set_timer(&mut self) {
        if self.deadline != self.armed {
            self.start_timer(self.deadline);
        }
    }

    #[inline(never)]
    fn start_timer(&mut self, wanted: Ticks) {
        let ahead = wanted.since(self.now()).0.clamp(1, FURTHEST);
        if self.second().is_some() {
            start_ticks(ahead as u32);
        } else {
            self.timer.start(ahead as u32);
        }
        self.armed = wanted;
    }

    /// Handles an interrupt of the timer. Tells whether the kernel's deadline has come, which is then
    /// forgotten.
    pub(crate) fn timer_fired(&mut self) -> bool {
        if self.second().is_some() {
            stop_ticks();
        } else {
            self.timer.stop();
        }
        self.armed = Ticks(0);
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
