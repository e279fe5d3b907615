// SPDX-License-Identifier: Apache-2.0
//! A line of text in a buffer of fixed size.
//!
//! There is no `core::fmt` here: the log prints texts, numbers and names, and the formatting machinery of the
//! language would be a fifth of the hypervisor. A line that is too long loses its end, never more.

/// Bytes of the longest time ([`stamp`]).
pub const STAMP_LEN: usize = 18;

/// A line under construction.
#[derive(Clone, Copy, Debug)]
pub struct Line<const N: usize> {
    bytes: [u8; N],
    length: usize,
}

impl<const N: usize> Default for Line<N> {
    fn default() -> Self {
        Self::new()
    }
}

impl<const N: usize> Line<N> {
    /// Makes an empty line. The function is never part of its caller, so that the line is made where it
    /// stays.
    #[must_use]
    #[inline(never)]
    pub const fn new() -> Self {
        Self {
            bytes: [0; N],
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

    /// Takes all text away.
    pub const fn clear(&mut self) {
        self.length = 0;
    }

    /// Adds a text.
    pub fn text(&mut self, text: &str) -> &mut Self {
        self.bytes(text.as_bytes())
    }

    /// Adds a number in decimal.
    pub fn decimal(&mut self, number: u64) -> &mut Self {
        self.bytes(decimal(number, &mut [0; 20]))
    }

    /// Adds a number in hexadecimal, with `0x`.
    pub fn hex(&mut self, number: u64) -> &mut Self {
        self.bytes(hex(number, &mut [0; 18]))
    }

    /// Adds the digits of a number in hexadecimal.
    pub fn digits(&mut self, number: u64) -> &mut Self {
        match hex(number, &mut [0; 18]) {
            [_, _, digits @ ..] => self.bytes(digits),
            _ => self,
        }
    }

    /// Adds a byte.
    #[inline]
    pub fn byte(&mut self, byte: u8) {
        if let Some(place) = self.bytes.get_mut(self.length) {
            *place = byte;
            self.length = self.length.wrapping_add(1);
        }
    }

    /// Adds bytes.
    pub fn bytes(&mut self, bytes: &[u8]) -> &mut Self {
        self.length = self
            .length
            .saturating_add(put(&mut self.bytes, self.length, bytes));
        self
    }

    /// Returns the bytes so far.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        self.bytes.get(..self.length).unwrap_or(&[])
    }

    /// Tells whether the line is full, so that its end may be missing.
    #[must_use]
    pub const fn is_cut(&self) -> bool {
        self.length >= N
    }
}

/// Copies as many of `bytes` as there is room for to `place`, from `start` on. Returns the number of copied
/// bytes.
#[inline(never)]
pub fn put(place: &mut [u8], start: usize, bytes: &[u8]) -> usize {
    let room = place.get_mut(start..).unwrap_or(&mut []);
    let taken = room.len().min(bytes.len());
    for (to, from) in room.iter_mut().zip(bytes) {
        *to = *from;
    }
    taken
}

/// Writes a number in decimal. The digits are at the end of `place`.
#[inline(never)]
fn decimal(number: u64, place: &mut [u8; 20]) -> &[u8] {
    let mut rest = number;
    let mut first = place.len();
    for digit in place.iter_mut().rev() {
        *digit = next_digit(&mut rest);
        first = first.saturating_sub(1);
        if rest == 0 {
            break;
        }
    }
    place.get(first..).unwrap_or(&[])
}

/// Writes a number in hexadecimal, with `0x`, to the beginning of `place`.
#[inline(never)]
fn hex(number: u64, place: &mut [u8; 18]) -> &[u8] {
    let digits = (u64::BITS.wrapping_sub((number | 1).leading_zeros())).div_ceil(4);
    // The first digit becomes the highest one.
    let mut rest = number.wrapping_shl(u64::BITS.wrapping_sub(digits.wrapping_mul(4)));
    let length = digits.wrapping_add(2) as usize;
    let [zero, x, places @ ..] = place;
    (*zero, *x) = (b'0', b'x');
    for digit in places.iter_mut().take(digits as usize) {
        let value = (rest >> 60) as u8;
        let base = if value < 10 { b'0' } else { b'a' - 10 };
        *digit = base.wrapping_add(value);
        rest <<= 4;
    }
    place.get(..length).unwrap_or(&[])
}

/// Writes a time in nanoseconds as seconds with six digits after the point. The text is at the end of
/// `place`.
pub fn stamp(nanoseconds: u64, place: &mut [u8; STAMP_LEN]) -> &[u8] {
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

    fn text<const N: usize>(line: &Line<N>) -> &str {
        core::str::from_utf8(line.as_bytes()).unwrap()
    }

    #[test]
    fn numbers_have_no_leading_zeros() {
        let mut line = Line::<256>::of("a ");
        for number in [0, u64::MAX, 100] {
            line.decimal(number);
            line.text(" ");
        }
        assert_eq!(text(&line), "a 0 18446744073709551615 100 ");
        let mut line = Line::<256>::new();
        for number in [0, u64::MAX, 0x0a00_0000] {
            line.hex(number);
            line.text(" ");
        }
        assert_eq!(text(&line), "0x0 0xffffffffffffffff 0xa000000 ");
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
    fn a_long_line_loses_its_end() {
        let mut line = Line::<256>::new();
        for _ in 0..100 {
            line.text("abc");
        }
        assert_eq!(line.as_bytes().len(), 256);
        assert!(line.is_cut() && text(&line).starts_with("abcabc"));
    }
}
