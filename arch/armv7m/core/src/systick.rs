// SPDX-License-Identifier: Apache-2.0
//! The guest's system timer (Arm DDI 0403E.e, B3.3), computed from the clock instead of counted.
//!
//! Nothing happens between two looks: the timer knows when it reaches zero next, and a reader
//! first catches up with how often that has been. Time is in cycles of the processor clock.

const ENABLE: u32 = 1;
const TICKINT: u32 = 1 << 1;
const CLKSOURCE: u32 = 1 << 2;
const COUNTFLAG: u32 = 1 << 16;
const MASK: u32 = 0x00FF_FFFF;

/// Its state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SysTick {
    /// ENABLE, TICKINT and CLKSOURCE.
    control: u32,
    count_flag: bool,
    reload: u32,
    /// While it stands still: the current value.
    frozen: u32,
    /// While it runs: when it reaches zero next, and what it counts down from until then.
    zero_at: u64,
    loaded: u32,
    calibration: u32,
    /// Cycles of the processor clock in one of the reference clock; 0: there is no reference clock.
    reference: u32,
}

impl SysTick {
    pub(crate) const fn new(calibration: u32, reference: u32) -> Self {
        Self {
            control: 0,
            count_flag: false,
            reload: 0,
            frozen: 0,
            zero_at: u64::MAX,
            loaded: 0,
            calibration,
            reference,
        }
    }

    /// Cycles in a count.
    fn cycles(&self) -> u64 {
        if self.control & CLKSOURCE != 0 || self.reference == 0 {
            1
        } else {
            u64::from(self.reference)
        }
    }

    /// Tells whether it counts: with a reload value of 0 it stays at zero (B3.3.1).
    #[inline(always)]
    pub(crate) const fn runs(&self) -> bool {
        self.control & ENABLE != 0 && self.zero_at != u64::MAX
    }

    /// Catches up; returns whether the exception becomes pending.
    pub(crate) fn advance(&mut self, now: u64) -> bool {
        if !self.runs() || now < self.zero_at {
            return false;
        }
        self.count_flag = true;
        if self.reload == 0 {
            self.zero_at = u64::MAX;
            self.frozen = 0;
        } else {
            let period = u64::from(self.reload).wrapping_add(1).wrapping_mul(self.cycles());
            let late = now.wrapping_sub(self.zero_at);
            // The period is not 0: the reload value is not.
            let passed = late.checked_div(period).unwrap_or(0).wrapping_add(1);
            self.zero_at = self.zero_at.wrapping_add(passed.wrapping_mul(period));
            self.loaded = self.reload;
        }
        self.control & TICKINT != 0
    }

    /// Returns when it will make its exception pending next.
    pub(crate) const fn next(&self) -> Option<u64> {
        if self.runs() && self.control & TICKINT != 0 {
            Some(self.zero_at)
        } else {
            None
        }
    }

    fn current(&self, now: u64) -> u32 {
        if !self.runs() {
            return self.frozen;
        }
        let left = self.zero_at.saturating_sub(now).div_ceil(self.cycles());
        // The count after zero is the one in which the reload value is loaded.
        u32::try_from(left)
            .ok()
            .filter(|left| *left <= self.loaded)
            .unwrap_or(0)
    }

    /// Starts to count down from `value`, which is what it shows now.
    fn start(&mut self, value: u32, now: u64) {
        let (loaded, counts) = if value == 0 {
            (self.reload, u64::from(self.reload).wrapping_add(1))
        } else {
            (value, u64::from(value))
        };
        self.loaded = loaded;
        self.frozen = value;
        self.zero_at = if value == 0 && self.reload == 0 {
            u64::MAX
        } else {
            now.saturating_add(counts.wrapping_mul(self.cycles()))
        };
    }

    /// Reads the register at `offset` from 0xE000E010. Requires: caught up.
    pub(crate) fn read(&mut self, offset: u32, now: u64) -> u32 {
        match offset {
            0x0 => {
                let flag = if self.count_flag { COUNTFLAG } else { 0 };
                self.count_flag = false;
                let forced = if self.reference == 0 { CLKSOURCE } else { 0 };
                self.control | flag | forced
            }
            0x4 => self.reload,
            0x8 => self.current(now),
            0xC => self.calibration,
            _ => 0,
        }
    }

    /// Writes the register at `offset` from 0xE000E010. Requires: caught up.
    pub(crate) fn write(&mut self, offset: u32, value: u32, now: u64) {
        match offset {
            0x0 => {
                let current = self.current(now);
                self.control = value & (ENABLE | TICKINT | CLKSOURCE);
                if self.control & ENABLE != 0 {
                    self.start(current, now);
                } else {
                    self.frozen = current;
                    self.zero_at = u64::MAX;
                }
            }
            0x4 => {
                self.reload = value & MASK;
                // It waited at zero for something to count down from.
                if self.control & ENABLE != 0 && self.zero_at == u64::MAX && self.reload != 0 {
                    self.start(self.frozen, now);
                }
            }
            0x8 => {
                self.count_flag = false;
                self.frozen = 0;
                if self.control & ENABLE != 0 {
                    self.start(0, now);
                }
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn running(reload: u32, now: u64) -> SysTick {
        let mut timer = SysTick::new(0, 25);
        timer.write(0x4, reload, now);
        timer.write(0x8, 0, now);
        timer.write(0x0, ENABLE | TICKINT | CLKSOURCE, now);
        timer
    }

    #[test]
    fn a_period_is_one_longer_than_the_reload_value() {
        let mut timer = running(9, 100);
        assert_eq!(timer.next(), Some(110));
        assert!(!timer.advance(109));
        assert_eq!(timer.read(8, 109), 1);
        assert!(timer.advance(110));
        assert_eq!(timer.read(8, 110), 0);
        assert_eq!(timer.read(8, 111), 9);
        assert_eq!(timer.next(), Some(120));
    }

    #[test]
    fn being_late_by_many_periods_is_one_exception_and_the_phase_stays() {
        let mut timer = running(9, 100);
        assert!(timer.advance(100 + 10 * 1000 + 3));
        assert_eq!(timer.next(), Some(100 + 10 * 1001));
        assert_eq!(timer.read(0, 0) & COUNTFLAG, COUNTFLAG);
        assert_eq!(timer.read(0, 0) & COUNTFLAG, 0, "reading clears it");
    }

    #[test]
    fn a_stopped_timer_keeps_its_value_and_goes_on_from_there() {
        let mut timer = running(99, 0);
        timer.write(0, 0, 40);
        assert_eq!((timer.next(), timer.read(8, 4000)), (None, 60));
        timer.write(0, ENABLE | TICKINT | CLKSOURCE, 5000);
        assert_eq!(timer.next(), Some(5060));
    }

    #[test]
    fn a_new_reload_value_counts_from_the_next_period_on() {
        let mut timer = running(99, 0);
        timer.write(4, 9, 50);
        assert_eq!(timer.next(), Some(100));
        assert!(timer.advance(100));
        assert_eq!(timer.next(), Some(110));
        timer.write(4, 0, 105);
        assert!(timer.advance(110));
        assert_eq!(
            timer.next(),
            None,
            "a reload value of 0 stops it at the next zero"
        );
        assert_eq!(timer.read(8, 200), 0);
    }

    #[test]
    fn the_reference_clock_is_slower() {
        let mut timer = SysTick::new(0, 25);
        timer.write(4, 3, 0);
        timer.write(0, ENABLE | TICKINT, 0);
        assert_eq!(timer.next(), Some(100));
        assert_eq!(timer.read(8, 26), 3);
        assert_eq!(
            SysTick::new(0, 0).read(0, 0),
            CLKSOURCE,
            "no reference clock to choose"
        );
    }

    #[test]
    fn no_sequence_of_extreme_values_overflows() {
        let mut timer = running(MASK, u64::MAX - 3);
        timer.advance(u64::MAX);
        timer.write(0, ENABLE, u64::MAX);
        timer.advance(u64::MAX);
        assert!(timer.read(8, u64::MAX) <= MASK);
    }
}
