// SPDX-License-Identifier: Apache-2.0
//! The real-time clock of a PC with its CMOS memory (Motorola MC146818A). It counts seconds, and has no
//! alarm and no periodic interrupt.

/// Port of the index; data is at the next.
pub const PORT: u64 = 0x70;

const STATUS_A: u8 = 0x0A;
const STATUS_B: u8 = 0x0B;
const STATUS_C: u8 = 0x0C;
const STATUS_D: u8 = 0x0D;
const CENTURY: u8 = 0x32;
/// The oscillator runs, with the usual rate.
const STATUS_A_VALUE: u8 = 0x26;
/// 24 hours, binary-coded decimal.
const STATUS_B_VALUE: u8 = 0x02;
/// Power has never failed.
const STATUS_D_VALUE: u8 = 0x80;

const DAY: u64 = 86_400;

/// The clock of a VM.
#[derive(Clone, Copy, Debug, Default)]
pub struct Rtc {
    index: u8,
}

impl Rtc {
    /// Returns the state after a reset.
    #[must_use]
    pub const fn new() -> Self {
        Self { index: 0 }
    }

    /// Answers a load from a port, if it is one of the clock's. `seconds`: since 1970.
    #[must_use]
    pub fn read(&self, port: u64, seconds: u64) -> Option<u8> {
        match port {
            PORT => Some(0xFF),
            0x71 => Some(self.register(seconds)),
            _ => None,
        }
    }

    /// Takes a store to a port; false if it is none of the clock's. The time cannot be set.
    pub const fn write(&mut self, port: u64, value: u8) -> bool {
        match port {
            PORT => self.index = value & 0x7F,
            0x71 => {}
            _ => return false,
        }
        true
    }

    fn register(&self, seconds: u64) -> u8 {
        let of_day = seconds.checked_rem(DAY).unwrap_or(0);
        let days = seconds.checked_div(DAY).unwrap_or(0);
        let part = |unit: u64, modulus: u64| {
            let value = of_day
                .checked_div(unit)
                .and_then(|value| value.checked_rem(modulus));
            decimal(value.unwrap_or(0))
        };
        let (year, month, day) = date(days);
        match self.index {
            0 => part(1, 60),
            2 => part(60, 60),
            4 => part(3600, 24),
            // The first of January 1970 was a Thursday; Sunday is 1.
            6 => decimal(days.wrapping_add(4).checked_rem(7).unwrap_or(0).wrapping_add(1)),
            7 => decimal(day),
            8 => decimal(month),
            9 => decimal(year.checked_rem(100).unwrap_or(0)),
            CENTURY => decimal(year.checked_div(100).unwrap_or(0)),
            STATUS_A => STATUS_A_VALUE,
            STATUS_B => STATUS_B_VALUE,
            STATUS_C => 0,
            STATUS_D => STATUS_D_VALUE,
            _ => 0,
        }
    }
}

/// Returns a number below 100 in binary-coded decimal.
const fn decimal(value: u64) -> u8 {
    (((value / 10) << 4) | (value % 10)) as u8
}

/// Returns the number of a binary-coded decimal.
#[must_use]
pub const fn binary(decimal: u8) -> u64 {
    ((decimal >> 4) as u64)
        .wrapping_mul(10)
        .wrapping_add((decimal & 0xF) as u64)
}

/// Returns year, month and day of a day since 1970. The arithmetic is H. Hinnant's
/// `civil_from_days`, in which years begin in March.
#[expect(
    clippy::arithmetic_side_effects,
    reason = "all divisors are constants, and days are few"
)]
const fn date(days: u64) -> (u64, u64, u64) {
    let shifted = days % (1 << 32) + 719_468;
    let (era, of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let moved = (5 * of_year + 2) / 153;
    let day = of_year - (153 * moved + 2) / 5 + 1;
    let month = if moved < 10 { moved + 3 } else { moved - 9 };
    let year = year_of_era + era * 400 + (month <= 2) as u64;
    (year, month, day)
}

/// Returns the seconds since 1970 of a date and time of day.
#[must_use]
#[expect(
    clippy::arithmetic_side_effects,
    reason = "all divisors are constants, and the parts are small"
)]
pub const fn seconds(year: u64, month: u64, day: u64, hour: u64, minute: u64, second: u64) -> u64 {
    let year = year - (month <= 2) as u64;
    let (era, of_era) = (year / 400, year % 400);
    let moved = if month > 2 { month - 3 } else { month + 9 };
    let of_year = (153 * moved + 2) / 5 + day - 1;
    let days = era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year;
    (days - 719_468) * DAY + hour * 3600 + minute * 60 + second
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(index: u8, seconds: u64) -> u8 {
        let mut clock = Rtc::new();
        assert!(clock.write(PORT, index));
        clock.read(0x71, seconds).unwrap()
    }

    #[test]
    fn the_date_is_that_of_the_calendar() {
        // 2024-02-29 23:59:58 UTC, a Thursday.
        let then = 1_709_251_198;
        let registers = [0, 2, 4, 6, 7, 8, 9, CENTURY].map(|index| read(index, then));
        assert_eq!(registers, [0x58, 0x59, 0x23, 5, 0x29, 2, 0x24, 0x20]);
        let next = [6, 7, 8].map(|index| read(index, then + 2));
        assert_eq!(next, [6, 1, 3]);
        assert_eq!(seconds(2024, 2, 29, 23, 59, 58), then);
        assert_eq!(seconds(2020, 1, 1, 0, 0, 0), 1_577_836_800);
        assert_eq!(binary(0x59), 59);
    }

    #[test]
    fn status_says_that_time_is_good() {
        assert_eq!(read(STATUS_A, 0) & 0x80, 0, "no update in progress");
        assert_eq!((read(STATUS_B, 0), read(STATUS_D, 0)), (2, 0x80));
        assert!(!Rtc::new().write(0x72, 0) && Rtc::new().read(0x72, 0).is_none());
    }
}
