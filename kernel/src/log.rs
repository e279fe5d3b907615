// SPDX-License-Identifier: Apache-2.0
//! Lines of the hypervisor's own log.
//!
//! A line is put together in a buffer on the stack and handed to the console as a whole. So lines of several
//! pCPUs do not mix. There is no `core::fmt` here: the log prints texts, numbers and names, and the
//! formatting machinery of the language would be a fifth of the hypervisor. A line that is too long loses its
//! end, never more.

use core::sync::atomic::{AtomicU8, Ordering};

/// The most bytes of a line.
pub const LINE_LEN: usize = 256;
/// The most bytes that a time takes ([`stamp`]).
pub(crate) const STAMP_LEN: usize = 18;

/// A line under construction.
#[derive(Clone, Copy, Debug)]
pub struct LogLine {
    bytes: [u8; LINE_LEN],
    length: usize,
}

impl Default for LogLine {
    fn default() -> Self {
        Self::new()
    }
}

impl LogLine {
    /// Makes an empty line. The function is never part of its caller, so that the line is made where it
    /// stays.
    #[must_use]
    #[inline(never)]
    pub const fn new() -> Self {
        Self {
            bytes: [0; LINE_LEN],
            length: 0,
        }
    }

    /// Makes a line that starts with `text`. The function is never part of its caller, so that the line is
    /// made where it stays.
    #[must_use]
    #[inline(never)]
    pub fn of(text: &str) -> Self {
        let mut line = Self::new();
        line.text(text);
        line
    }

    /// Adds a text.
    pub fn text(&mut self, text: &str) -> &mut Self {
        self.push(text.as_bytes());
        self
    }

    /// Adds a number in decimal.
    pub fn decimal(&mut self, number: u64) -> &mut Self {
        let mut digits = [0_u8; 20];
        let mut rest = number;
        let mut first = digits.len();
        for digit in digits.iter_mut().rev() {
            *digit = next_digit(&mut rest);
            first = first.saturating_sub(1);
            if rest == 0 {
                break;
            }
        }
        self.push(digits.get(first..).unwrap_or(&[]));
        self
    }

    /// Adds a number in hexadecimal, with `0x`.
    pub fn hex(&mut self, number: u64) -> &mut Self {
        let mut digits = [0_u8; 16];
        let mut rest = number;
        let mut first = digits.len();
        for digit in digits.iter_mut().rev() {
            let value = (rest & 15) as u8;
            rest >>= 4;
            let base = if value < 10 { b'0' } else { b'a' - 10 };
            *digit = base.wrapping_add(value);
            first = first.saturating_sub(1);
            if rest == 0 {
                break;
            }
        }
        self.push(b"0x");
        self.push(digits.get(first..).unwrap_or(&[]));
        self
    }

    /// Adds `" key="`. The value is to follow.
    pub fn key(&mut self, key: &str) -> &mut Self {
        self.text(" ").text(key).text("=")
    }

    /// Adds another line.
    pub fn join(&mut self, other: &Self) -> &mut Self {
        self.push(other.as_bytes());
        self
    }

    /// Returns the bytes so far.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        self.bytes.get(..self.length).unwrap_or(&[])
    }

    fn push(&mut self, bytes: &[u8]) {
        self.length = self
            .length
            .saturating_add(put(&mut self.bytes, self.length, bytes));
    }
}

/// Copies as many of `bytes` as there is room for to `place`, from `start` on. Returns the number of copied
/// bytes.
#[inline(never)]
pub(crate) fn put(place: &mut [u8], start: usize, bytes: &[u8]) -> usize {
    let room = place.get_mut(start..).unwrap_or(&mut []);
    let taken = room.len().min(bytes.len());
    if let (Some(room), Some(bytes)) = (room.get_mut(..taken), bytes.get(..taken)) {
        room.copy_from_slice(bytes);
    }
    taken
}

/// Stores `bytes` in a ring, from `start` on and at most once round. The bytes of a ring are atomics, because
/// that is Rust's word for memory that two CPUs touch. A relaxed access costs as much as a plain access.
pub(crate) fn store_in_ring(ring: &[AtomicU8], start: usize, bytes: &[u8]) {
    let (before, behind) = ring.split_at_checked(start).unwrap_or((&[], ring));
    let (first, rest) = bytes.split_at_checked(behind.len()).unwrap_or((bytes, &[]));
    for (places, bytes) in [(behind, first), (before, rest)] {
        for (place, byte) in places.iter().zip(bytes) {
            place.store(*byte, Ordering::Relaxed);
        }
    }
}

/// Writes a time in nanoseconds as seconds with six digits behind the point. The text is at the end of
/// `place`.
pub(crate) fn stamp(nanoseconds: u64, place: &mut [u8; STAMP_LEN]) -> &[u8] {
    let mut seconds = nanoseconds / 1_000_000_000;
    let mut micros = (nanoseconds % 1_000_000_000) / 1000;
    let mut first = STAMP_LEN;
    for digit in place.iter_mut().rev() {
        let behind_point = STAMP_LEN.saturating_sub(first);
        *digit = match behind_point {
            0..6 => next_digit(&mut micros),
            6 => b'.',
            _ => next_digit(&mut seconds),
        };
        first = first.saturating_sub(1);
        if behind_point > 6 && seconds == 0 {
            break;
        }
    }
    place.get(first..).unwrap_or(&[])
}

/// Takes the last decimal digit away and returns this digit. Most numbers are short, and a CPU of 32 bits
/// divides longer numbers in a hundred instructions.
fn next_digit(number: &mut u64) -> u8 {
    let (rest, digit) = match u32::try_from(*number) {
        Ok(short) => (u64::from(short / 10), (short % 10) as u8),
        Err(_) => (*number / 10, (*number % 10) as u8),
    };
    *number = rest;
    b'0'.wrapping_add(digit)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(line: &LogLine) -> &str {
        core::str::from_utf8(line.as_bytes()).unwrap()
    }

    #[test]
    fn numbers_have_no_leading_zeros() {
        let mut line = LogLine::of("a ");
        line.decimal(0).text(" ").decimal(u64::MAX).text(" ").decimal(100);
        assert_eq!(text(&line), "a 0 18446744073709551615 100");
        let mut line = LogLine::new();
        line.hex(0).key("k").hex(u64::MAX).text(" ").hex(0x0a00_0000);
        assert_eq!(text(&line), "0x0 k=0xffffffffffffffff 0xa000000");
    }

    #[test]
    fn times_have_six_digits_behind_the_point() {
        for (time, expected) in [
            (0, "0.000000"),
            (1_000_999, "0.001000"),
            (12_987_654_321_000, "12987.654321"),
            (u64::MAX, "18446744073.709551"),
        ] {
            assert_eq!(stamp(time, &mut [0; STAMP_LEN]), expected.as_bytes());
        }
    }

    #[test]
    fn a_ring_is_filled_across_its_end_and_once_round() {
        let ring = [const { AtomicU8::new(b'-') }; 8];
        let text = || ring.each_ref().map(|place| place.load(Ordering::Relaxed));
        store_in_ring(&ring, 2, b"abc");
        assert_eq!(text(), *b"--abc---");
        store_in_ring(&ring, 6, b"1234");
        assert_eq!(text(), *b"34abc-12");
        store_in_ring(&ring, 8, b"x");
        assert_eq!(text(), *b"x4abc-12", "the end is the beginning");
        store_in_ring(&ring, 7, b"0123456789");
        assert_eq!(text(), *b"12345670");
    }

    #[test]
    fn a_long_line_loses_its_end() {
        let mut line = LogLine::new();
        for _ in 0..100 {
            line.text("abc");
        }
        assert_eq!(line.as_bytes().len(), LINE_LEN);
        assert!(text(&line).starts_with("abcabc"));
    }
}
