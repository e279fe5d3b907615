// SPDX-License-Identifier: Apache-2.0
//! The releases of a periodic loop.
//!
//! Releases have absolute deadlines, so lateness shows and does not add up. If the work of a release ends a
//! period or more late, the releases that came due meanwhile are missed. They are left out, and the phase
//! stays.

use crate::hypercall::{self, Handle};

/// The releases since the start. All times are nanoseconds of the hypervisor's clock.
pub struct Releases {
    clock: Handle,
    period: u64,
    due: u64,
    /// The number of missed releases.
    pub missed: u64,
    /// The longest time from a release to the first instruction after it.
    pub jitter: u64,
    /// The longest time from a release to the end of its work.
    pub response: u64,
}

impl Releases {
    /// Returns releases each `period`, which is not 0, the first in one period from now. `clock` is a
    /// capability for the timer.
    #[must_use]
    pub fn new(clock: Handle, period: u64) -> Self {
        Self {
            clock,
            period,
            due: hypercall::timer_now(clock).unwrap_or(0) + period,
            missed: 0,
            jitter: 0,
            response: 0,
        }
    }

    /// Sleeps until the next release.
    pub fn wait(&mut self) {
        // A release in the past is no error of the caller's: it shows as lateness.
        let _ = hypercall::timer_sleep(self.clock, self.due);
        self.jitter = self.jitter.max(self.late());
    }

    /// Ends the work of a release.
    pub fn end(&mut self) {
        let response = self.late();
        self.response = self.response.max(response);
        let missed = response / self.period;
        self.missed += missed;
        self.due += (missed + 1) * self.period;
    }

    /// Returns the time since the release.
    fn late(&self) -> u64 {
        hypercall::timer_now(self.clock)
            .unwrap_or(0)
            .saturating_sub(self.due)
    }
}
