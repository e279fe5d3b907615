// SPDX-License-Identifier: Apache-2.0
//! Two units of time and the conversions between them.
//!
//! Inside, the kernel counts ticks of the board's one counter, because comparing and arming then need no
//! arithmetic. Guests and manifests speak nanoseconds since boot. A conversion to ticks rounds up, so that
//! nothing wakes before the time it asked for. A conversion to nanoseconds rounds down. Both conversions
//! saturate: a time beyond the end of the counter never comes.

use bulkhead_arch_api::Ticks;

const NANOSECONDS_PER_SECOND: u64 = 1_000_000_000;
/// The fastest counter for which the conversions below are exact.
const MAX_HERTZ: u64 = 10_000_000_000;

/// A sleep. Its verbs are in [`crate::dispatch`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SleepWait {
    /// The slot of the capability by which the vCPU sleeps.
    pub index: u8,
}

/// The time at which the hypervisor booted, and the speed of the counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timebase {
    boot: Ticks,
    hertz: u64,
}

impl Timebase {
    /// Makes the time base of a counter that showed `boot` when the hypervisor started. The speed is 0 as
    /// long as it is not known. Then the counter counts as the fastest one: a board that cannot start tells
    /// so in its first microseconds.
    #[must_use]
    pub const fn new(boot: Ticks, hertz: u64) -> Self {
        let hertz = if hertz == 0 || hertz > MAX_HERTZ {
            MAX_HERTZ
        } else {
            hertz
        };
        Self { boot, hertz }
    }

    /// Returns ticks that last at least `nanoseconds`.
    #[must_use]
    pub const fn duration(&self, nanoseconds: u64) -> Ticks {
        self.convert(nanoseconds, NANOSECONDS_PER_SECOND - 1)
    }

    /// Returns ticks that last at most `nanoseconds`.
    #[must_use]
    pub const fn duration_within(&self, nanoseconds: u64) -> Ticks {
        self.convert(nanoseconds, 0)
    }

    /// Converts nanoseconds to ticks. `extra`, a fraction of a tick in parts of 10^-9, decides the direction
    /// of the rounding. The function is one place for all callers: it is long where a CPU has no divisions of
    /// 64 bits.
    #[inline(never)]
    const fn convert(&self, nanoseconds: u64, extra: u64) -> Ticks {
        let (Some(seconds), Some(rest)) = (
            nanoseconds.checked_div(NANOSECONDS_PER_SECOND),
            nanoseconds.checked_rem(NANOSECONDS_PER_SECOND),
        ) else {
            return Ticks::NEVER;
        };
        // `rest * hertz` is below 10^9 * 10^10 and fits.
        let part = rest.wrapping_mul(self.hertz).wrapping_add(extra);
        let Some(part) = part.checked_div(NANOSECONDS_PER_SECOND) else {
            return Ticks::NEVER;
        };
        Ticks(seconds.saturating_mul(self.hertz).saturating_add(part))
    }

    /// Returns the time `nanoseconds` after boot.
    #[must_use]
    pub const fn at(&self, nanoseconds: u64) -> Ticks {
        self.boot.plus(self.duration(nanoseconds))
    }

    /// Returns the nanoseconds from boot to `now`.
    #[must_use]
    pub const fn nanoseconds(&self, now: Ticks) -> u64 {
        let ticks = now.since(self.boot).0;
        let (Some(seconds), Some(rest)) = (ticks.checked_div(self.hertz), ticks.checked_rem(self.hertz))
        else {
            return u64::MAX;
        };
        // A rest below 10^10 times 10^9 fits.
        let part = match rest.wrapping_mul(NANOSECONDS_PER_SECOND).checked_div(self.hertz) {
            Some(part) => part,
            None => 0,
        };
        seconds
            .saturating_mul(NANOSECONDS_PER_SECOND)
            .saturating_add(part)
    }

    /// Returns the time at which the hypervisor booted.
    #[must_use]
    pub const fn boot(&self) -> Ticks {
        self.boot
    }

    /// Returns the ticks per second.
    #[must_use]
    pub const fn hertz(&self) -> u64 {
        self.hertz
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_nanosecond_counter_is_the_identity_from_boot_on() {
        let base = Timebase::new(Ticks(500), 1_000_000_000);
        assert_eq!(base.at(1_234), Ticks(1_734));
        assert_eq!(base.nanoseconds(Ticks(1_734)), 1_234);
        assert_eq!(base.nanoseconds(Ticks(3)), 0);
    }

    #[test]
    fn ticks_round_up_and_nanoseconds_down() {
        let base = Timebase::new(Ticks(0), 62_500_000);
        assert_eq!(base.duration(16), Ticks(1));
        assert_eq!(base.duration(17), Ticks(2));
        assert_eq!(base.duration(1), Ticks(1));
        assert_eq!(base.duration_within(31), Ticks(1));
        assert_eq!(base.duration_within(32), Ticks(2));
        assert_eq!(base.duration_within(3_000_000_015), Ticks(187_500_000));
        assert_eq!(base.nanoseconds(Ticks(3)), 48);
        assert_eq!(base.duration(3_000_000_016), Ticks(187_500_001));
    }

    #[test]
    fn the_far_future_never_comes() {
        let base = Timebase::new(Ticks(10), 1_000_000_000);
        assert_eq!(base.at(u64::MAX), Ticks::NEVER);
        // A speed that is not known counts as the fastest.
        assert_eq!(Timebase::new(Ticks(0), 0).nanoseconds(Ticks(50)), 5);
    }
}
