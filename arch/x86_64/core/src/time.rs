// SPDX-License-Identifier: Apache-2.0
//! Units of time: a ratio of two clocks, without a division at each use.

/// Nanoseconds of a second.
pub const NANOS: u64 = 1_000_000_000;
/// Rate of the PIT in Hz (Intel 8254 in a PC: a third of the colour subcarrier's quadruple).
pub const PIT_HERTZ: u64 = 1_193_182;
/// Rate of the power management timer in Hz (ACPI 6.4, 4.8.2.1).
pub const PM_HERTZ: u64 = 3_579_545;

/// Factors have so many bits after the point.
const SHIFT: u32 = 32;

/// Ticks of one clock for ticks of another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ratio(u64);

impl Ratio {
    /// Returns the ratio of a clock of `to` Hz to one of `from` Hz. `from` is not 0, and `to` is less than
    /// 2^32 times as much.
    #[must_use]
    pub const fn new(from: u64, to: u64) -> Self {
        let wide = (to as u128) << SHIFT;
        Self(match wide.checked_div(from as u128) {
            Some(factor) => factor as u64,
            None => 0,
        })
    }

    /// Returns so many ticks of the first clock in ticks of the second one.
    #[must_use]
    #[expect(
        clippy::arithmetic_side_effects,
        reason = "a product of two words fits in two words"
    )]
    pub const fn apply(self, ticks: u64) -> u64 {
        ((ticks as u128 * self.0 as u128) >> SHIFT) as u64
    }
}

/// Returns a time of a guest's counter, which is the hypervisor's plus `offset` and is at `now`, on the
/// hypervisor's counter. A time that is past is the present one. One that the hypervisor's counter never
/// reaches is `u64::MAX`.
#[must_use]
#[inline]
pub const fn own_time(time: u64, offset: u64, now: u64) -> u64 {
    now.wrapping_sub(offset).saturating_add(time.saturating_sub(now))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_guests_time_far_away_is_not_the_past() {
        let behind = 0_u64.wrapping_sub(5_000_000);
        assert_eq!(own_time(1500, 0, 1000), 1500);
        assert_eq!(own_time(1500, behind, 1000), 5_001_500);
        for far in [u64::MAX, u64::MAX - 15, 1 << 63] {
            assert!(own_time(far, behind, 1000) > 1 << 62, "{far:#x}");
        }
        assert_eq!(own_time(900, 0, 1000), 1000);
        assert_eq!(own_time(0, 1 << 63, (1 << 63) + 1000), 1000, "long ago");
        assert_eq!(own_time((1 << 63) + 1500, 1 << 63, (1 << 63) + 1000), 1500);
    }

    #[test]
    fn a_ratio_is_right_to_the_last_tick_of_an_hour() {
        let to_nanos = Ratio::new(2_500_000_000, NANOS);
        let hour = 3600 * 2_500_000_000;
        assert!(3600 * NANOS - to_nanos.apply(hour) < 4000);
        assert_eq!(Ratio::new(NANOS, NANOS).apply(u64::MAX), u64::MAX);
        assert_eq!(Ratio::new(NANOS, PM_HERTZ).apply(NANOS) + 1, PM_HERTZ);
    }
}
