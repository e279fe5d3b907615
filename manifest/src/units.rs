// SPDX-License-Identifier: Apache-2.0
//! Sizes and durations as people write them.

/// Smallest unit of memory that can be mapped.
pub(crate) const PAGE: u64 = 4096;
/// A block of level 2 of the translation tables.
pub(crate) const BLOCK: u64 = 2 << 20;
/// A block of level 1 of the translation tables.
pub(crate) const GIB: u64 = 1 << 30;

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

/// `"256M"` in bytes.
pub(crate) fn parse_size(text: &str) -> Option<u64> {
    parse(text, &SIZES)
}

/// `"10ms"` in nanoseconds.
pub(crate) fn parse_duration(text: &str) -> Option<u64> {
    parse(text, &DURATIONS)
}

fn parse(text: &str, units: &[(&str, u64)]) -> Option<u64> {
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let (_, factor) = units.iter().find(|(name, _)| *name == unit.trim_start())?;
    number.parse::<u64>().ok()?.checked_mul(*factor)
}

/// A size in the largest unit that needs no fraction.
#[must_use]
pub fn format_size(bytes: u64) -> String {
    for (unit, factor) in [("G", 1 << 30), ("M", 1 << 20), ("K", 1 << 10)] {
        if bytes >= factor && bytes.is_multiple_of(factor) {
            return format!("{}{unit}", bytes / factor);
        }
    }
    format!("{bytes}")
}

/// A duration in the largest unit that needs no fraction.
#[must_use]
pub fn format_duration(nanoseconds: u64) -> String {
    for (unit, factor) in DURATIONS.iter().rev() {
        if nanoseconds >= *factor && nanoseconds.is_multiple_of(*factor) {
            return format!("{}{unit}", nanoseconds / factor);
        }
    }
    format!("{nanoseconds}ns")
}

/// `value` rounded up to a multiple of `align` (a power of two); `None` beyond 64 bits.
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
