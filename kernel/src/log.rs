// SPDX-License-Identifier: Apache-2.0
//! The hypervisor's own log: its entries, and lines of several entries for boot and end.
//!
//! An event is told as an [`Entry`]: facts in numbers, in a bounded number of instructions. `crate::record`
//! keeps the entries, and [`crate::console`] shows them when the transmitter has room. Text of the
//! hypervisor's own ([`LogLine`]) is for the reason of an end: the crash record keeps it, too, and a reader
//! of a dump need not have the system.

use bulkhead_abi::log::entry::{MORE, TEXT_LEN};
use bulkhead_abi::log::line::Line;
use bulkhead_abi::log::{Entry, Kind};

/// The most bytes of a line.
pub const LINE_LEN: usize = 256;

const _: () = assert!(LINE_LEN.div_ceil(TEXT_LEN) < bulkhead_abi::log::LINE_ENTRIES);

/// A line under construction.
pub type LogLine = Line<LINE_LEN>;

/// A line of several entries, which the hypervisor writes at its boot or its end: an entry, and text after
/// it.
#[derive(Clone, Debug)]
pub struct Entries<'t> {
    /// The entry that is to be written now.
    pub entry: Entry,
    /// The text after it.
    rest: &'t [u8],
}

impl<'t> Entries<'t> {
    /// Makes the line of an entry and a text after it.
    pub const fn of(entry: Entry, text: &'t [u8]) -> Self {
        let mut line = Self { entry, rest: text };
        line.mark();
        line
    }

    /// Makes the line of a text.
    pub fn of_text(text: &'t [u8]) -> Self {
        let mut line = Self {
            entry: Entry::new(Kind::Text, 0),
            rest: text,
        };
        line.advance();
        line
    }

    /// Goes on to the next entry. Returns false if there is none.
    #[inline(never)]
    pub fn advance(&mut self) -> bool {
        if self.rest.is_empty() {
            return false;
        }
        self.entry = Entry::text(self.entry.time, self.rest);
        self.rest = self.rest.get(TEXT_LEN..).unwrap_or(&[]);
        self.mark();
        true
    }

    /// Notes in the entry whether the line goes on.
    const fn mark(&mut self) {
        if !self.rest.is_empty() {
            self.entry.flags |= MORE;
        }
    }
}

/// Returns the entry of a line that begins with a number.
pub const fn numbered(kind: Kind, number: u32) -> Entry {
    let mut entry = Entry::new(kind, 0);
    entry.facts = [number as u64, 0, 0, 0, 0, 0];
    entry
}
