// SPDX-License-Identifier: Apache-2.0
//! A line of text that is put together where nothing may fail: in what reports a crash.

/// A line of at most `ROOM` bytes; what does not fit is cut off.
#[derive(Debug)]
pub struct Report<const ROOM: usize> {
    bytes: [u8; ROOM],
    used: usize,
}

impl<const ROOM: usize> Default for Report<ROOM> {
    fn default() -> Self {
        Self::new()
    }
}

impl<const ROOM: usize> Report<ROOM> {
    /// Makes an empty line.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            bytes: [0; ROOM],
            used: 0,
        }
    }

    fn byte(&mut self, byte: u8) {
        if let Some(slot) = self.bytes.get_mut(self.used) {
            *slot = byte;
            self.used += 1;
        }
    }

    /// Adds text.
    pub fn text(&mut self, text: &str) -> &mut Self {
        for byte in text.bytes() {
            self.byte(byte);
        }
        self
    }

    /// Adds a number in hexadecimal, with at least `least` digits.
    pub fn number(&mut self, value: u64, least: u32) -> &mut Self {
        let digits = (u64::BITS - value.leading_zeros()).div_ceil(4).max(least);
        for digit in (0..digits).rev() {
            let nibble = (value.checked_shr(4 * digit).unwrap_or(0) & 0xF) as u8;
            self.byte(if nibble < 10 {
                b'0' + nibble
            } else {
                b'a' + nibble - 10
            });
        }
        self
    }

    /// Adds a number in decimal, with at least `least` digits (of at most 20).
    pub fn decimal(&mut self, value: u64, least: usize) -> &mut Self {
        let mut digits = [b'0'; 20];
        let mut rest = value;
        let mut used = 0;
        for place in digits.iter_mut().rev() {
            if rest == 0 && used >= least {
                break;
            }
            *place = b'0' + (rest % 10) as u8;
            rest /= 10;
            used += 1;
        }
        for digit in digits.into_iter().skip(20 - used) {
            self.byte(digit);
        }
        self
    }

    /// Returns the line so far; a plain word if the cut went through a character.
    #[must_use]
    pub fn as_str(&self) -> &str {
        let bytes = self.bytes.get(..self.used);
        bytes
            .and_then(|bytes| core::str::from_utf8(bytes).ok())
            .unwrap_or("LOCKDOWN")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_the_digits_they_need_and_those_that_are_asked_for() {
        let mut line = Report::<64>::new();
        line.text("a=").number(0, 1).text(" b=").number(0xBEEF, 8);
        line.text(" c=").number(u64::MAX, 1);
        assert_eq!(line.as_str(), "a=0 b=0000beef c=ffffffffffffffff");
    }

    #[test]
    fn decimals_are_filled_up_with_zeroes() {
        let mut line = Report::<64>::new();
        line.decimal(0, 1).text(".").decimal(42, 6).text(" ");
        line.decimal(u64::MAX, 0).text(" ").decimal(7, 99);
        assert_eq!(
            line.as_str(),
            "0.000042 18446744073709551615 00000000000000000007"
        );
    }

    #[test]
    fn what_does_not_fit_is_cut_off() {
        let mut line = Report::<4>::new();
        line.text("LOCKDOWN").number(1, 1);
        assert_eq!(line.as_str(), "LOCK");
    }
}
