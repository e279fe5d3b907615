// SPDX-License-Identifier: Apache-2.0
//! An [`Entry`] as a record of the serial line, for a hypervisor that leaves the text to the host tool.
//!
//! A record has the place of a tag ([`crate::framing`]), so no partition can make one:
//!
//! ```text
//! RS ["\r\n"] "=" number " " time " " head { " " fact } " " check "\r\n" US
//! ```
//!
//! All fields are hexadecimal, without leading zeros. `number` counts the records, from 0 on, and wraps after
//! 255. Facts of zero at the end are left out. A terminal shows a record as a line of its own, and a person
//! can read the numbers of [`Entry`] in it. `check` depends on every bit of the other fields, so a record
//! with a byte that was changed or lost is no record. A record that was lost as a whole leaves a gap in the
//! numbers. The next record begins with the next RS.

use super::entry::{ENTRY_WORDS, Entry};
use super::line::Line;
use crate::framing::US;

/// The first byte of a record, in the place of the first byte of a tag.
pub const RECORD: u8 = b'=';
/// Bytes of a piece of a record at most: the number, a space, and a word.
pub const RECORD_PIECE: usize = 1 + 2 + WORD;
/// Bytes of a word at most, with the space before it.
const WORD: usize = 1 + 16;
/// Bytes of a record between RS and US at most, without the line end at its begin.
pub const RECORD_MAX: usize = 1 + 2 + ENTRY_WORDS * WORD + 1 + 8 + 2;
/// The end of a record.
const END: &[u8] = &[b'\r', b'\n', US];

/// A record that is being written.
#[derive(Clone, Copy, Debug, Default)]
pub struct Written {
    /// The number of the record.
    number: u8,
    /// The words that are written.
    words: u8,
    /// The check of the words so far.
    check: u32,
}

/// Returns the check of words whose check was `check`, and one more. Each step can be undone, so words that
/// differ in one field never have the same check.
const fn mixed(check: u32, word: u64) -> u32 {
    let low = (check ^ word as u32).wrapping_mul(0x9E37_79B1).rotate_left(15);
    (low ^ (word >> 32) as u32)
        .wrapping_mul(0x85EB_CA77)
        .rotate_left(13)
}

/// Returns the check of a record with this number and no words.
const fn begun(number: u8) -> u32 {
    mixed(0x4255_4C4B, number as u64)
}

impl Written {
    /// Returns the state before the first record.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            number: 0,
            words: 0,
            check: 0,
        }
    }

    /// Writes the next piece of the record in the place of what `to` holds. Returns true if the record is
    /// complete with it. The next call then begins the next record.
    #[inline(never)]
    pub fn piece(&mut self, entry: &Entry, to: &mut Line<RECORD_PIECE>) -> bool {
        to.clear();
        if self.words == 0 {
            self.check = begun(self.number);
            to.byte(RECORD);
            to.digits(self.number.into());
        }
        let words = entry.words();
        let used = words
            .iter()
            .rposition(|word| *word != 0)
            .map_or(0, |last| last.saturating_add(1));
        let is_last = usize::from(self.words) >= used;
        to.byte(b' ');
        if is_last {
            to.digits(self.check.into());
            to.bytes(END);
            *self = Self {
                number: self.number.wrapping_add(1),
                ..Self::new()
            };
        } else {
            let word = words.get(usize::from(self.words)).copied().unwrap_or(0);
            self.check = mixed(self.check, word);
            self.words = self.words.wrapping_add(1);
            to.digits(word);
        }
        is_last
    }
}

/// Reads the bytes between RS and US, without the line end at their begin. Returns the number of the record
/// and the entry, or `None` if the bytes are no whole record.
#[cfg(any(test, feature = "read"))]
#[must_use]
pub fn read(bytes: &[u8]) -> Option<(u8, Entry)> {
    let text = core::str::from_utf8(bytes).ok()?;
    let text = text.strip_prefix(char::from(RECORD))?.strip_suffix("\r\n")?;
    let (text, check) = text.rsplit_once(' ')?;
    let mut fields = text.split(' ');
    let number = u8::try_from(field(fields.next()?)?).ok()?;
    let mut words = [0; ENTRY_WORDS];
    let mut places = words.iter_mut();
    let mut sum = begun(number);
    for text in fields {
        let word = field(text)?;
        *places.next()? = word;
        sum = mixed(sum, word);
    }
    (field(check)? == u64::from(sum)).then_some(())?;
    Some((number, Entry::decode(words)?))
}

/// Reads a field, which has one form only.
#[cfg(any(test, feature = "read"))]
fn field(text: &str) -> Option<u64> {
    let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    let is_short = text == "0" || !text.starts_with('0');
    let is_good = is_short && text.bytes().all(is_digit);
    u64::from_str_radix(text, 16).ok().filter(|_| is_good)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::Kind;
    use std::vec::Vec;

    fn record(entry: &Entry, state: &mut Written) -> Vec<u8> {
        let (mut bytes, mut piece) = (Vec::new(), Line::new());
        for _ in 0..=ENTRY_WORDS {
            let is_last = state.piece(entry, &mut piece);
            bytes.extend(piece.as_bytes());
            if is_last {
                assert_eq!(bytes.pop(), Some(US));
                assert!(bytes.len() <= RECORD_MAX);
                return bytes;
            }
            assert!(piece.as_bytes().len() <= RECORD_PIECE);
        }
        panic!("the record goes on");
    }

    /// Returns an entry of words that are short, long or zero.
    fn entry(seed: &mut u64) -> Entry {
        let mut words = [0; ENTRY_WORDS].map(|_: u64| {
            *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (*seed ^ *seed >> 29)
                .checked_shr((*seed >> 57) as u32)
                .unwrap_or(0)
        });
        words[1] = words[1] << 8 | (1 + *seed % Kind::ALL.len() as u64);
        Entry::decode(words).unwrap()
    }

    #[test]
    fn each_entry_comes_back_from_its_record() {
        let (mut seed, mut state) = (3, Written::new());
        for number in 0..3000_u32 {
            let entry = entry(&mut seed);
            assert_eq!(read(&record(&entry, &mut state)), Some((number as u8, entry)));
        }
        let all = Entry {
            time: u64::MAX,
            line: 0xFF_FFFF,
            facts: [u64::MAX; 6],
            ..Entry::decode([u64::MAX, u64::MAX << 8 | 1, 0, 0, 0, 0, 0, 0]).unwrap()
        };
        assert_eq!(read(&record(&all, &mut state)).unwrap().1, all);
    }

    #[test]
    fn a_record_has_the_bytes_that_this_page_says() {
        let mut entry = Entry::new(Kind::State, 1_000_042);
        (entry.partition, entry.detail) = (1, 3);
        let bytes = record(&entry, &mut Written::new());
        let text = core::str::from_utf8(&bytes).unwrap();
        assert!(
            text.starts_with("=0 f426a 3000109 ") && text.ends_with("\r\n"),
            "{text}"
        );
    }

    #[test]
    fn a_record_with_a_byte_changed_lost_or_added_is_none() {
        let (mut seed, mut state) = (5, Written::new());
        for _ in 0..40 {
            let good = record(&entry(&mut seed), &mut state);
            for at in 0..good.len() {
                let mut lost = good.clone();
                lost.remove(at);
                // A byte that is like its neighbour can be lost at either place.
                assert_eq!(read(&lost), None, "{good:?} without {at}");
                for byte in (0..=u8::MAX).filter(|byte| *byte != good[at]) {
                    let mut changed = good.clone();
                    changed[at] = byte;
                    assert_eq!(read(&changed), None, "{good:?} with {byte} at {at}");
                }
                let mut added = good.clone();
                added.insert(at, b'0');
                assert_eq!(read(&added), None, "{good:?} with 0 before {at}");
            }
        }
    }
}
