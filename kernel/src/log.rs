// SPDX-License-Identifier: Apache-2.0
//! The hypervisor's own log: its entries, and lines of text for boot and end.
//!
//! An event that comes while partitions run is told as an [`Entry`](bulkhead_abi::log::Entry): facts in
//! numbers, in a bounded number of instructions. `crate::record` keeps the entries, and [`crate::console`]
//! turns them into text when the transmitter has room. Text of the hypervisor's own ([`LogLine`]) is for
//! boot, when no partition loses time, and for the end.

use bulkhead_abi::log::entry::TEXT_LEN;
use bulkhead_abi::log::line::Line;

/// The most bytes of a line.
pub const LINE_LEN: usize = 256;

const _: () = assert!(LINE_LEN.div_ceil(TEXT_LEN) <= bulkhead_abi::log::LINE_ENTRIES);

/// A line under construction.
#[derive(Clone, Copy, Debug, Default)]
pub struct LogLine(Line<LINE_LEN>);

impl LogLine {
    /// Makes an empty line.
    #[must_use]
    pub const fn new() -> Self {
        Self(Line::new())
    }

    /// Makes a line that starts with `text`.
    #[must_use]
    pub fn of(text: &str) -> Self {
        Self(Line::of(text))
    }

    /// Adds a text.
    pub fn text(&mut self, text: &str) -> &mut Self {
        self.0.text(text);
        self
    }

    /// Adds bytes of text.
    pub fn bytes(&mut self, bytes: &[u8]) -> &mut Self {
        self.0.bytes(bytes);
        self
    }

    /// Adds a number in decimal.
    pub fn decimal(&mut self, number: u64) -> &mut Self {
        self.0.decimal(number);
        self
    }

    /// Adds a number in hexadecimal, with `0x`.
    pub fn hex(&mut self, number: u64) -> &mut Self {
        self.0.hex(number);
        self
    }

    /// Adds another line.
    pub fn join(&mut self, other: &Self) -> &mut Self {
        self.0.bytes(other.as_bytes());
        self
    }

    /// Returns the bytes so far.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        self.0.as_bytes()
    }
}
