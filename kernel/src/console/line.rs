// SPDX-License-Identifier: Apache-2.0
//! Framed bytes on their way to the transmitter.

use crate::parts::TEXT;
use bulkhead_abi::framing::{DLE, ESCAPE_MASK, RS, US, needs_escape};
use bulkhead_abi::log::line::{STAMP_LEN, put, stamp};
use bulkhead_abi::log::record::RECORD_PIECE;
use bulkhead_abi::log::text::PIECE_LEN;
use bulkhead_image::layout::NAME_LEN;

/// The length of the longest tag: RS, CR LF, `[`, time, `] `, name, `: `, US.
const TAG_MAX: usize = 1 + 2 + 1 + STAMP_LEN + 2 + NAME_LEN + 2 + 1;
/// The most bytes of a piece of the log.
const PIECE: usize = if TEXT { PIECE_LEN } else { RECORD_PIECE };
/// The size of the stage in bytes: a tag, and some text and a piece of text, all of whose bytes may be
/// escaped.
const STAGE: usize = TAG_MAX + 2 * (super::AT_ONCE + PIECE);

/// A short stretch of framed bytes.
#[derive(Debug)]
pub struct Stage {
    bytes: [u8; STAGE],
    length: usize,
    sent: usize,
}

impl Stage {
    pub(super) const fn new() -> Self {
        Self {
            bytes: [0; STAGE],
            length: 0,
            sent: 0,
        }
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.sent == self.length
    }

    /// Returns the number of bytes of text that fit even if all of them must be escaped.
    pub(super) const fn room(&self) -> usize {
        STAGE.saturating_sub(self.length) / 2
    }

    /// Returns the bytes to send next, at most `limit`.
    pub(super) fn unsent(&self, limit: usize) -> &[u8] {
        let end = self.length.min(self.sent.saturating_add(limit));
        self.bytes.get(self.sent..end).unwrap_or(&[])
    }

    /// Notes that `count` bytes have been sent.
    pub(super) const fn advance(&mut self, count: usize) {
        self.sent = self.sent.saturating_add(count);
        if self.sent >= self.length {
            self.sent = 0;
            self.length = 0;
        }
    }

    /// Adds the text that `produce` hands on a byte at a time. Bytes that need it are escaped.
    #[inline(always)]
    pub(super) fn text<T>(&mut self, produce: impl FnOnce(&mut TextSink<'_>) -> T) -> T {
        let mut sink = TextSink {
            free: self.bytes.get_mut(self.length..).unwrap_or(&mut []).iter_mut(),
        };
        let result = produce(&mut sink);
        self.length = STAGE.saturating_sub(sink.free.len());
        result
    }

    /// Adds bytes of which none needs to be escaped.
    #[inline(never)]
    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.length = self
            .length
            .saturating_add(put(&mut self.bytes, self.length, bytes));
    }
}

/// The place where text is put.
#[derive(Debug)]
pub(super) struct TextSink<'s> {
    free: core::slice::IterMut<'s, u8>,
}

impl TextSink<'_> {
    /// Adds a byte. The function is a part of its caller, because there are many bytes.
    #[inline(always)]
    pub(super) fn put(&mut self, byte: u8) {
        let mut byte = byte;
        if needs_escape(byte) {
            if let Some(place) = self.free.next() {
                *place = DLE;
            }
            byte ^= ESCAPE_MASK;
        }
        if let Some(place) = self.free.next() {
            *place = byte;
        }
    }
}

/// Adds a tag. `break_line` is set if another console's line is unfinished.
pub(super) fn tag(stage: &mut Stage, break_line: bool, now: u64, name: &[u8]) {
    stage.push(if break_line {
        &[RS, b'\r', b'\n', b'[']
    } else {
        &[RS, b'[']
    });
    stage.push(stamp(now, &mut [0; STAMP_LEN]));
    stage.push(b"] ");
    stage.push(name);
    stage.push(&[b':', b' ', US]);
}

/// Adds the begin of a record. `break_line` is set if another console's line is unfinished.
pub(super) fn record(stage: &mut Stage, break_line: bool) {
    stage.push(if break_line { &[RS, b'\r', b'\n'] } else { &[RS] });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_are_as_the_abi_says() {
        for (break_line, now, expected) in [
            (false, 0, "\x1e[0.000000] linux: \x1f"),
            (true, 1_000_042_999, "\x1e\r\n[1.000042] linux: \x1f"),
            (false, u64::MAX, "\x1e[18446744073.709551] linux: \x1f"),
        ] {
            let mut stage = Stage::new();
            tag(&mut stage, break_line, now, b"linux");
            assert_eq!(stage.unsent(1000), expected.as_bytes());
        }
    }

    #[test]
    fn control_bytes_are_escaped() {
        let mut stage = Stage::new();
        stage.text(|sink| b"a\x1e\x1f\x10b".iter().for_each(|byte| sink.put(*byte)));
        assert_eq!(stage.unsent(1000), b"a\x10\x5e\x10\x5f\x10\x50b");
    }

    #[test]
    fn sent_bytes_make_room_when_all_are_gone() {
        let mut stage = Stage::new();
        while stage.room() != 0 {
            stage.text(|sink| sink.put(b'.'));
        }
        let length = stage.unsent(1000).len();
        stage.advance(length - 1);
        assert_eq!(stage.unsent(1000).len(), 1);
        stage.advance(1);
        assert!(stage.is_empty() && stage.room() != 0);
    }
}
