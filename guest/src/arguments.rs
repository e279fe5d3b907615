// SPDX-License-Identifier: Apache-2.0
//! The words of a kernel command line, by which one guest binary serves many tests.

/// Returns the value of `key=value` in a command line, the last one if there are several.
#[must_use]
pub fn value<'a>(line: &'a str, key: &str) -> Option<&'a str> {
    line.split_ascii_whitespace()
        .filter_map(|word| word.split_once('='))
        .rfind(|(name, _)| *name == key)
        .map(|(_, value)| value)
}

/// Returns the value of `key=NUMBER` (decimal, or hexadecimal with `0x`), or `default` if there is no such
/// word.
#[must_use]
pub fn number(line: &str, key: &str, default: u64) -> u64 {
    let Some(text) = value(line, key) else {
        return default;
    };
    let parsed = match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16),
        None => text.parse(),
    };
    parsed.unwrap_or(default)
}

#[cfg(test)]
mod tests {
    use super::{number, value};

    #[test]
    fn last_word_with_the_key_wins() {
        assert_eq!(
            value("fault=none console=ttyAMA0 fault=memory-read", "fault"),
            Some("memory-read")
        );
        assert_eq!(value("default=1", "fault"), None);
        assert_eq!(value("fault", "fault"), None);
        assert_eq!(value("", "fault"), None);
    }

    #[test]
    fn numbers_have_two_bases_and_a_default() {
        assert_eq!(number("a=12 b=0x1f c=x", "a", 7), 12);
        assert_eq!(number("a=12 b=0x1f c=x", "b", 7), 31);
        assert_eq!(number("a=12 b=0x1f c=x", "c", 7), 7);
        assert_eq!(number("a=12 b=0x1f c=x", "d", 7), 7);
    }
}
