// SPDX-License-Identifier: Apache-2.0
//! The log as text.

use super::AT_ONCE;
use super::line::{Stage, tag};
use super::shown::Shown;
use bulkhead_abi::framing::HYPERVISOR_CONSOLE;
use bulkhead_abi::log::{Entry, Names, PieceLine};

/// The entry as text.
#[derive(Debug)]
pub struct Text {
    /// The entry that is not shown to its end yet.
    entry: Option<Entry>,
    /// The next piece of the entry.
    next: u8,
    /// The piece before.
    piece: PieceLine,
}

impl Shown for Text {
    const NOTHING: Self = Self {
        entry: None,
        next: 0,
        piece: PieceLine::new(),
    };

    fn time(&self) -> Option<u64> {
        self.entry.as_ref().map(|entry| entry.time)
    }

    fn put(&mut self, entry: Entry) {
        self.next = 0;
        self.entry = Some(entry);
    }

    fn begin(stage: &mut Stage, break_line: bool, time: u64) {
        tag(stage, break_line, time, HYPERVISOR_CONSOLE.as_bytes());
    }

    #[inline(never)]
    fn add_pieces(&mut self, log: &dyn Names, stage: &mut Stage) -> (u32, bool) {
        let mut taken = 0_usize;
        while taken < AT_ONCE
            && let Some(entry) = &self.entry
        {
            let has_piece = entry.piece(log, &mut self.next, &mut self.piece);
            let ends = !has_piece && !entry.has_more();
            if ends {
                self.piece.text("\r\n");
            }
            let bytes = self.piece.as_bytes();
            // The log has no bytes that must be escaped: its texts are here, and names are checked.
            stage.push(bytes);
            taken = taken.saturating_add(bytes.len());
            if !has_piece {
                self.entry = None;
                return (taken as u32, ends);
            }
        }
        (taken as u32, false)
    }
}
