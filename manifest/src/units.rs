// SPDX-License-Identifier: Apache-2.0
//! Sizes and durations in the form that people write.

use std::fmt;

/// The smallest unit of memory that can be mapped.
pub(crate) const PAGE: u64 = 4096;
/// A block of level 2 of the translation tables.
pub(crate) const BLOCK: u64 = 2 << 20;
/// A block of level 1 of the translation tables.
pub(crate) const GIB: u64 = 1 << 30;

macro_rules! quantities {
    ($($(#[doc = $doc:literal])+ $name:ident)+) => {$(
        $(#[doc = $doc])+
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
        pub struct $name(u64);

        impl $name {
            /// Makes a quantity of a number.
            pub(crate) const fn new(number: u64) -> Self {
                Self(number)
            }

            /// Returns the number.
            #[must_use]
            pub const fn get(self) -> u64 {
                self.0
            }

            /// Tells whether the quantity is a multiple of `unit`.
            #[must_use]
            pub const fn is_multiple_of(self, unit: u64) -> bool {
                self.0.is_multiple_of(unit)
            }
        }

        impl From<$name> for u64 {
            fn from(quantity: $name) -> Self {
                quantity.0
            }
        }
    )+};
}

quantities! {
    /// An address as a manifest gives it. Such quantities have no operators, so that no sum of them wraps. A
    /// sum is an `Option`. [`get`](Self::get) is for comparisons, for texts and for the system image.
    Address
    /// Bytes as a manifest gives them.
    Size
    /// Nanoseconds as a manifest gives them.
    Duration
}

impl fmt::LowerHex for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Duration {
    /// The longest duration.
    pub(crate) const MAX: Self = Self(u64::MAX);

    /// Returns the sum, if 64 bits can express the sum.
    pub(crate) const fn plus(self, other: Self) -> Option<Self> {
        match self.0.checked_add(other.0) {
            Some(sum) => Some(Self(sum)),
            None => None,
        }
    }
}

const SIZES: [(&str, u64); 7] = [
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
    ("K", 1 << 10),
    ("M", 1 << 20),
    ("G", 1 << 30),
    ("", 1),
];
const DURATIONS: [(&str, u64); 4] = [("ns", 1), ("us", 1_000), ("ms", 1_000_000), ("s", 1_000_000_000)];

/// Returns a text such as `"256M"` in bytes.
pub(crate) fn parse_size(text: &str) -> Option<u64> {
    parse(text, &SIZES)
}

/// Returns a text such as `"10ms"` in nanoseconds.
pub(crate) fn parse_duration(text: &str) -> Option<u64> {
    parse(text, &DURATIONS)
}

fn parse(text: &str, units: &[(&str, u64)]) -> Option<u64> {
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let (_, factor) = units.iter().find(|(name, _)| *name == unit.trim_start())?;
    number.parse::<u64>().ok()?.checked_mul(*factor)
}

/// Writes a size in the largest unit that needs no fraction.
#[must_use]
pub fn format_size(bytes: u64) -> String {
    for (unit, factor) in [("G", 1 << 30), ("M", 1 << 20), ("K", 1 << 10)] {
        if bytes >= factor && bytes.is_multiple_of(factor) {
            return format!("{}{unit}", bytes / factor);
        }
    }
    format!("{bytes}")
}

/// Writes a duration in the largest unit that needs no fraction.
#[must_use]
pub fn format_duration(nanoseconds: u64) -> String {
    for (unit, factor) in DURATIONS.iter().rev() {
        if nanoseconds >= *factor && nanoseconds.is_multiple_of(*factor) {
            return format!("{}{unit}", nanoseconds / factor);
        }
    }
    format!("{nanoseconds}ns")
}

/// Returns `value` rounded up to a multiple of `align` (a power of two); `None` beyond 64 bits.
pub(crate) fn align_up(value: u64, align: u64) -> Option<u64> {
    Some(value.checked_add(align - 1)? & !(align - 1))
}

#[cfg(test)]
mod tests {
    use super::{align_up, format_duration, format_size, parse_duration, parse_size};

    #[test]
    fn sizes_have_units() {
        assert_eq!(parse_size("256M"), Some(256 << 20));
        assert_eq!(parse_size("64 KiB"), Some(64 << 10));
        assert_eq!(parse_size("4096"), Some(4096));
        assert_eq!(parse_size("1T"), None);
        assert_eq!(parse_size("-1K"), None);
        assert_eq!(parse_size(""), None);
        assert_eq!(parse_size("99999999999G"), None);
    }

    #[test]
    fn durations_need_a_unit() {
        assert_eq!(parse_duration("10ms"), Some(10_000_000));
        assert_eq!(parse_duration("10"), None);
        assert_eq!(format_duration(1_500_000), "1500us");
        assert_eq!(format_size(3 << 19), "1536K");
    }

    #[test]
    fn rounding_up_does_not_wrap() {
        assert_eq!(align_up(1, 4096), Some(4096));
        assert_eq!(align_up(u64::MAX, 4096), None);
    }
}
