// SPDX-License-Identifier: Apache-2.0
//! A writer of CBOR (RFC 8949): definite lengths, the shortest heads, nothing else.
//!
//! The order of the keys of a map is the caller's. A writer without room goes on to count, so the caller
//! learns the length that would have been enough.

/// Major types (RFC 8949, section 3.1).
const UNSIGNED: u8 = 0;
const NEGATIVE: u8 = 1;
const BYTES: u8 = 2;
const TEXT: u8 = 3;
const ARRAY: u8 = 4;
const MAP: u8 = 5;
const TAG: u8 = 6;

/// Writes into a slice.
#[derive(Debug)]
pub struct Writer<'a> {
    bytes: &'a mut [u8],
    length: usize,
}

impl<'a> Writer<'a> {
    /// Makes a writer that begins at the start of `bytes`.
    pub const fn new(bytes: &'a mut [u8]) -> Self {
        Self { bytes, length: 0 }
    }

    /// Returns the bytes that were written, or would have been with more room.
    #[must_use]
    pub const fn length(&self) -> usize {
        self.length
    }

    /// Returns the length if all was written.
    #[must_use]
    pub fn finish(self) -> Option<usize> {
        (self.length <= self.bytes.len()).then_some(self.length)
    }

    /// Writes bytes as they are.
    pub fn raw(&mut self, bytes: &[u8]) {
        let end = self.length.saturating_add(bytes.len());
        if let Some(place) = self.bytes.get_mut(self.length..end) {
            place.copy_from_slice(bytes);
        }
        self.length = end;
    }

    /// Writes the head of an item, in as few bytes as possible.
    fn head(&mut self, major: u8, value: u64) {
        let major = major << 5;
        let bytes = value.to_be_bytes();
        let [.., a, b, c, d] = bytes;
        match value {
            0..24 => self.raw(&[major | d]),
            24..0x100 => self.raw(&[major | 24, d]),
            0x100..0x1_0000 => self.raw(&[major | 25, c, d]),
            0x1_0000..0x1_0000_0000 => self.raw(&[major | 26, a, b, c, d]),
            _ => {
                self.raw(&[major | 27]);
                self.raw(&bytes);
            }
        }
    }

    /// Writes a number.
    pub fn integer(&mut self, value: i64) {
        match u64::try_from(value) {
            Ok(value) => self.head(UNSIGNED, value),
            // -1 - n is encoded as n: the bits of a negative number, inverted.
            Err(_) => self.head(NEGATIVE, !value.cast_unsigned()),
        }
    }

    /// Writes a string of bytes.
    pub fn bytes(&mut self, bytes: &[u8]) {
        self.head(BYTES, bytes.len() as u64);
        self.raw(bytes);
    }

    /// Writes the head of a string of bytes that follows.
    pub fn bytes_follow(&mut self, length: usize) {
        self.head(BYTES, length as u64);
    }

    /// Writes a text.
    pub fn text(&mut self, text: &str) {
        self.head(TEXT, text.len() as u64);
        self.raw(text.as_bytes());
    }

    /// Writes the head of an array of this many items.
    pub fn array(&mut self, items: usize) {
        self.head(ARRAY, items as u64);
    }

    /// Writes the head of a map of this many pairs.
    pub fn map(&mut self, pairs: usize) {
        self.head(MAP, pairs as u64);
    }

    /// Writes a tag for the item that follows.
    pub fn tag(&mut self, tag: u64) {
        self.head(TAG, tag);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(write: impl FnOnce(&mut Writer<'_>), expected: &[u8]) {
        let mut bytes = [0xEE; 16];
        let mut writer = Writer::new(&mut bytes);
        write(&mut writer);
        let length = writer.finish().unwrap();
        assert_eq!(bytes[..length], *expected);
    }

    // RFC 8949, appendix A.
    #[test]
    fn examples_of_the_standard() {
        written(|writer| writer.integer(0), &[0x00]);
        written(|writer| writer.integer(23), &[0x17]);
        written(|writer| writer.integer(24), &[0x18, 0x18]);
        written(|writer| writer.integer(1000), &[0x19, 0x03, 0xe8]);
        written(
            |writer| writer.integer(1_000_000),
            &[0x1a, 0x00, 0x0f, 0x42, 0x40],
        );
        written(
            |writer| writer.integer(1_000_000_000_000),
            &[0x1b, 0x00, 0x00, 0x00, 0xe8, 0xd4, 0xa5, 0x10, 0x00],
        );
        written(|writer| writer.integer(-1), &[0x20]);
        written(|writer| writer.integer(-1000), &[0x39, 0x03, 0xe7]);
        written(|writer| writer.bytes(&[1, 2, 3, 4]), &[0x44, 1, 2, 3, 4]);
        written(|writer| writer.text("IETF"), &[0x64, 0x49, 0x45, 0x54, 0x46]);
        written(|writer| writer.array(3), &[0x83]);
        written(|writer| writer.map(2), &[0xa2]);
        written(|writer| writer.tag(18), &[0xd2]);
    }

    #[test]
    fn without_room_only_the_length_is_right() {
        let mut bytes = [0xEE; 4];
        let mut writer = Writer::new(&mut bytes);
        writer.text("four");
        writer.integer(1);
        assert_eq!(writer.length(), 6);
        assert_eq!(writer.finish(), None);
        assert_eq!(bytes, [0x64, 0xEE, 0xEE, 0xEE]);
    }
}
