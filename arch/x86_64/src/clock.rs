// SPDX-License-Identifier: Apache-2.0
//! Time: the time-stamp counter, and the timer of the local APIC for deadlines.
//!
//! The timer serves the kernel's deadline and the timers of the vCPU that runs, whichever comes first. It
//! counts at most 2^31 of its ticks; a later time is approached in several steps.

use crate::board::BOARD;
use crate::machine::Machine;
use crate::{physical, sysreg};
use bulkhead_arch_api::{Clock, Ticks};

/// The most ticks that the timer is set to.
const MOST: u64 = 1 << 31;

impl Machine {
    /// Sets the timer for this time, or for the kernel's deadline if that is earlier.
    #[inline(always)]
    pub(crate) fn set_timer(&mut self, time: Ticks) {
        let time = time.min(self.deadline);
        if time != self.armed {
            self.start_timer(time);
        }
    }

    #[inline(never)]
    fn start_timer(&mut self, time: Ticks) {
        self.armed = time;
        let count = if time == Ticks::NEVER || self.quiet {
            0
        } else {
            let left = time.0.saturating_sub(sysreg::counter());
            let ratio = BOARD.get().map(|board| board.timer);
            // One more tick, so that the time has come when it fires.
            let count = ratio.map_or(MOST, |ratio| ratio.apply(left.min(MOST)) + 1);
            count.min(MOST) as u32
        };
        physical::start_timer(count);
    }

    /// Notes that the timer has fired, and tells whether the kernel's deadline has come.
    pub(crate) fn timer_fired(&mut self) -> bool {
        self.armed = Ticks::NEVER;
        self.looks = true;
        let is_due = self.deadline.0 <= sysreg::counter();
        if is_due {
            self.deadline = Ticks::NEVER;
        }
        is_due
    }
}

impl Clock for Machine {
    #[inline(always)]
    fn now(&self) -> Ticks {
        Ticks(sysreg::counter())
    }

    fn hertz(&self) -> u64 {
        BOARD.get().map_or(0, |board| board.hertz)
    }

    #[inline]
    fn arm(&mut self, deadline: Ticks) {
        self.deadline = deadline;
    }

    fn disarm(&mut self) {
        self.deadline = Ticks::NEVER;
    }
}
