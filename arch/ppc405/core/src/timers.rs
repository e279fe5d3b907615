// SPDX-License-Identifier: Apache-2.0
//! The guest's timers: programmable and fixed interval timer, and watchdog (User's Manual, chapter 6).
//!
//! The time base is the CPU's own, because a program in problem state reads it without a trap. All times here
//! are its ticks.

/// TCR.
pub mod tcr {
    /// Watchdog period.
    pub const WP: u32 = 0xC000_0000;
    /// Watchdog reset control.
    pub const WRC: u32 = 0x3000_0000;
    /// Watchdog interrupt enable.
    pub const WIE: u32 = 0x0800_0000;
    /// Programmable interval timer interrupt enable.
    pub const PIE: u32 = 0x0400_0000;
    /// Period of the fixed interval timer.
    pub const FP: u32 = 0x0300_0000;
    /// Its interrupt enable.
    pub const FIE: u32 = 0x0080_0000;
    /// Automatic reload enable.
    pub const ARE: u32 = 0x0040_0000;
}

/// TSR.
pub mod tsr {
    /// The watchdog has had its first period.
    pub const ENW: u32 = 0x8000_0000;
    /// It has had its second one: its interrupt.
    pub const WIS: u32 = 0x4000_0000;
    /// Interrupt of the programmable interval timer.
    pub const PIS: u32 = 0x0800_0000;
    /// Interrupt of the fixed interval timer.
    pub const FIS: u32 = 0x0400_0000;
}

/// A time that never comes.
pub const NEVER: u64 = u64::MAX;

/// The shortest time between two interrupts of the programmable timer that reloads itself. A reload value of
/// a few ticks would ask for more interrupts than any program could handle.
const SHORTEST: u64 = 256;

/// The state of the timers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timers {
    control: u32,
    status: u32,
    /// The value that was loaded last.
    reload: u32,
    /// The time at which the programmable timer expires.
    expiry: u64,
    /// The time up to which fixed interval timer and watchdog are settled.
    settled: u64,
    /// True if the watchdog has come to its end, and TCR asks for a reset then.
    bites: bool,
}

/// Returns how often the bit of the time base whose rises are `1 << period` ticks apart has risen up to a
/// time. It rises in the middle of a period.
const fn rises(time: u64, period: u32) -> u64 {
    let half = 1_u64.wrapping_shl(period.wrapping_sub(1));
    time.wrapping_add(half).wrapping_shr(period)
}

/// Returns the time of the first rise of that bit after a time.
const fn next_rise(time: u64, period: u32) -> u64 {
    let half = 1_u64.wrapping_shl(period.wrapping_sub(1));
    let next = rises(time, period).wrapping_add(1);
    next.wrapping_shl(period).wrapping_sub(half)
}

impl Timers {
    /// Returns the timers after a reset at this time.
    #[must_use]
    pub const fn new(now: u64) -> Self {
        Self {
            control: 0,
            status: 0,
            reload: 0,
            expiry: NEVER,
            settled: now,
            bites: false,
        }
    }

    /// Returns the logarithm of the fixed interval timer's period.
    const fn fixed_period(&self) -> u32 {
        ((self.control & tcr::FP) >> 24).wrapping_mul(4).wrapping_add(9)
    }

    /// Returns the logarithm of the watchdog's period.
    const fn watchdog_period(&self) -> u32 {
        ((self.control & tcr::WP) >> 30).wrapping_mul(4).wrapping_add(17)
    }

    /// Settles everything that has happened up to a time.
    pub const fn advance(&mut self, now: u64) {
        if now >= self.expiry {
            self.status |= tsr::PIS;
            self.expiry = if self.control & tcr::ARE != 0 && self.reload != 0 {
                let reload = if (self.reload as u64) < SHORTEST {
                    SHORTEST
                } else {
                    self.reload as u64
                };
                let late = now.wrapping_sub(self.expiry);
                let left = match late.checked_rem(reload) {
                    Some(into) => reload.wrapping_sub(into),
                    None => reload,
                };
                now.saturating_add(left)
            } else {
                NEVER
            };
        }
        if now <= self.settled {
            return;
        }
        let (fixed, watchdog) = (self.fixed_period(), self.watchdog_period());
        if rises(now, fixed) != rises(self.settled, fixed) {
            self.status |= tsr::FIS;
        }
        // Three periods come to the end; more make no difference.
        let count = rises(now, watchdog).wrapping_sub(rises(self.settled, watchdog));
        let mut turn = 0;
        while turn < 3 && turn < count {
            self.watchdog_period_ends();
            turn = turn.wrapping_add(1);
        }
        self.settled = now;
    }

    /// Takes the watchdog one state on (figure 6-5).
    const fn watchdog_period_ends(&mut self) {
        if self.status & tsr::ENW == 0 {
            self.status |= tsr::ENW;
        } else if self.status & tsr::WIS == 0 {
            self.status |= tsr::WIS;
        } else if self.control & tcr::WRC != 0 {
            self.bites = true;
        }
    }

    /// Returns the time of the next event that the guest would notice.
    #[must_use]
    pub const fn next_event(&self) -> u64 {
        let mut next = NEVER;
        if self.control & tcr::PIE != 0 && self.status & tsr::PIS == 0 {
            next = self.expiry;
        }
        if self.control & tcr::FIE != 0 && self.status & tsr::FIS == 0 {
            next = earlier(next, next_rise(self.settled, self.fixed_period()));
        }
        let waits = self.control & tcr::WIE != 0 && self.status & tsr::WIS == 0;
        if waits || self.control & tcr::WRC != 0 {
            next = earlier(next, next_rise(self.settled, self.watchdog_period()));
        }
        next
    }

    /// Tells whether the programmable timer interrupts.
    #[must_use]
    pub const fn programmable(&self) -> bool {
        self.status & tsr::PIS != 0 && self.control & tcr::PIE != 0
    }

    /// Tells whether the fixed interval timer interrupts.
    #[must_use]
    pub const fn fixed(&self) -> bool {
        self.status & tsr::FIS != 0 && self.control & tcr::FIE != 0
    }

    /// Tells whether the watchdog interrupts.
    #[must_use]
    pub const fn watchdog(&self) -> bool {
        self.status & tsr::WIS != 0 && self.control & tcr::WIE != 0
    }

    /// Tells whether the watchdog has reset the processor.
    #[must_use]
    pub const fn has_bitten(&self) -> bool {
        self.bites
    }

    /// Reads TCR.
    #[must_use]
    pub const fn control(&self) -> u32 {
        self.control
    }

    /// Writes TCR. WRC can be set and not cleared again.
    pub const fn set_control(&mut self, value: u32) {
        self.control = value | self.control & tcr::WRC;
    }

    /// Reads TSR.
    #[must_use]
    pub const fn status(&self) -> u32 {
        self.status
    }

    /// Writes TSR: a one clears a bit.
    pub const fn clear_status(&mut self, value: u32) {
        self.status &= !value;
    }

    /// Reads PIT.
    #[must_use]
    pub const fn count(&self, now: u64) -> u32 {
        if self.expiry == NEVER {
            return 0;
        }
        let left = self.expiry.saturating_sub(now);
        if left > u32::MAX as u64 {
            u32::MAX
        } else {
            left as u32
        }
    }

    /// Writes PIT: the timer starts, or stops with 0.
    pub const fn load(&mut self, value: u32, now: u64) {
        self.reload = value;
        self.expiry = if value == 0 {
            NEVER
        } else {
            now.saturating_add(value as u64)
        };
    }
}

const fn earlier(one: u64, other: u64) -> u64 {
    if one < other { one } else { other }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_programmable_timer_expires_once_or_reloads() {
        let mut timers = Timers::new(0);
        timers.set_control(tcr::PIE);
        timers.load(1000, 10);
        assert_eq!((timers.next_event(), timers.count(510)), (1010, 500));
        timers.advance(1009);
        assert!(!timers.programmable());
        timers.advance(1010);
        assert!(timers.programmable());
        assert_eq!((timers.next_event(), timers.count(1011)), (NEVER, 0));
        timers.clear_status(tsr::PIS);
        assert!(!timers.programmable());
        timers.set_control(tcr::PIE | tcr::ARE);
        timers.load(1000, 2000);
        timers.advance(3010);
        assert!(timers.programmable());
        timers.clear_status(tsr::PIS);
        assert_eq!(timers.next_event(), 4000, "the period is kept");
        timers.advance(7500);
        assert!(timers.programmable(), "several periods are one interrupt");
        timers.clear_status(tsr::PIS);
        assert_eq!(timers.next_event(), 8000);
    }

    #[test]
    fn a_tiny_reload_value_is_slowed_down() {
        let mut timers = Timers::new(0);
        timers.set_control(tcr::PIE | tcr::ARE);
        timers.load(1, 0);
        timers.advance(1);
        timers.clear_status(tsr::PIS);
        assert_eq!(timers.next_event(), 1 + SHORTEST);
    }

    #[test]
    fn the_fixed_interval_follows_the_time_base() {
        let mut timers = Timers::new(0);
        timers.set_control(tcr::FIE);
        assert_eq!(timers.next_event(), 256);
        timers.advance(255);
        assert!(!timers.fixed());
        timers.advance(256);
        assert!(timers.fixed());
        timers.clear_status(tsr::FIS);
        assert_eq!(timers.next_event(), 256 + 512);
        timers.set_control(tcr::FIE | 1 << 24);
        assert_eq!(timers.next_event(), 4096);
    }

    #[test]
    fn the_watchdog_warns_then_bites() {
        let mut timers = Timers::new(0);
        timers.set_control(tcr::WIE | tcr::WRC);
        timers.advance(1 << 16);
        assert_eq!(timers.status() & tsr::ENW, tsr::ENW);
        timers.advance((1 << 16) + (1 << 17));
        assert!(timers.watchdog() && !timers.has_bitten());
        let mut fed = timers;
        fed.clear_status(tsr::ENW | tsr::WIS);
        fed.advance(3 << 17);
        assert!(!fed.has_bitten());
        timers.set_control(tcr::WIE);
        timers.advance(3 << 17);
        assert!(timers.has_bitten(), "WRC stays set");
    }
}
