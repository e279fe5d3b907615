// SPDX-License-Identifier: Apache-2.0
//! Lines of the hypervisor's own log.
//!
//! A line is put together in a buffer on the stack and handed to the console as a whole, so that lines
//! of several pCPUs do not mix. There is no `core::fmt` here: what the log prints are texts, numbers and
//! names, and the formatting machinery of the language would be a fifth of the hypervisor. A line that is
//! too long loses its end, never more.

/// Bytes of a line.
pub const LINE_LEN: usize = 256;

/// A line under construction.
#[derive(Clone, Copy, Debug)]
pub struct Line {
    bytes: [u8; LINE_LEN],
    length: usize,
}

impl Default for Line {
    fn default() -> Self {
        Self::new()
    }
}

impl Line {
    /// An empty line.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            bytes: [0; LINE_LEN],
            length: 0,
        }
    }

    /// A line that starts with `text`.
    #[must_use]
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
        let mut used = 0_usize;
        for digit in digits.iter_mut().rev() {
            *digit = next_digit(&mut rest);
            used = used.saturating_add(1);
            if rest == 0 {
                break;
            }
        }
        self.push(digits.get(digits.len().saturating_sub(used)..).unwrap_or(&[]));
        self
    }

    /// Adds a number in hexadecimal, with `0x`.
    pub fn hex(&mut self, number: u64) -> &mut Self {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        let nibbles = (64_u32.saturating_sub(number.leading_zeros())).div_ceil(4).max(1);
        self.push(b"0x");
        for nibble in (0..nibbles).rev() {
            let value = number.wrapping_shr(nibble.saturating_mul(4)) & 15;
            self.push(
                DIGITS
                    .get(value as usize..)
                    .and_then(|rest| rest.get(..1))
                    .unwrap_or(b"?"),
            );
        }
        self
    }

    /// Adds a time in nanoseconds as seconds with six digits behind the point.
    pub fn seconds(&mut self, nanoseconds: u64) -> &mut Self {
        let mut digits = *b".000000";
        let mut rest = (nanoseconds / 1000) % 1_000_000;
        for digit in digits.iter_mut().skip(1).rev() {
            *digit = next_digit(&mut rest);
        }
        self.decimal(nanoseconds / 1_000_000_000).push(&digits);
        self
    }

    /// Adds `" key="`, to be followed by the value.
    pub fn key(&mut self, key: &str) -> &mut Self {
        self.text(" ").text(key).text("=")
    }

    /// Adds another line.
    pub fn join(&mut self, other: &Self) -> &mut Self {
        self.push(other.as_bytes());
        self
    }

    /// The bytes so far.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        self.bytes.get(..self.length).unwrap_or(&[])
    }

    fn push(&mut self, bytes: &[u8]) {
        let room = self.bytes.get_mut(self.length..).unwrap_or(&mut []);
        let taken = room.len().min(bytes.len());
        for (to, from) in room.iter_mut().zip(bytes) {
            *to = *from;
        }
        self.length = self.length.saturating_add(taken);
    }
}

/// Takes the last decimal digit away. Most numbers are short, and a CPU of 32 bits divides longer ones in a hundred instructions.
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

    fn text(line: &Line) -> &str {
        core::str::from_utf8(line.as_bytes()).unwrap()
    }

    #[test]
    fn numbers_have_no_leading_zeros() {
        let mut line = Line::of("a ");
        line.decimal(0).text(" ").decimal(u64::MAX).text(" ").decimal(100);
        assert_eq!(text(&line), "a 0 18446744073709551615 100");
        let mut line = Line::new();
        line.hex(0).key("k").hex(u64::MAX).text(" ").hex(0x0a00_0000);
        assert_eq!(text(&line), "0x0 k=0xffffffffffffffff 0xa000000");
    }

    #[test]
    fn seconds_have_six_digits_behind_the_point() {
        let mut line = Line::new();
        line.seconds(0)
            .text(" ")
            .seconds(1_000_999)
            .text(" ")
            .seconds(12_987_654_321_000);
        assert_eq!(text(&line), "0.000000 0.001000 12987.654321");
    }

    #[test]
    fn a_long_line_loses_its_end() {
        let mut line = Line::new();
        for _ in 0..100 {
            line.text("abc");
        }
        assert_eq!(line.as_bytes().len(), LINE_LEN);
        assert!(text(&line).starts_with("abcabc"));
    }
}
