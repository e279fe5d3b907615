// SPDX-License-Identifier: Apache-2.0
//! The log as records.

use super::AT_ONCE;
use super::line::{Stage, record};
use super::shown::Shown;
use bulkhead_abi::log::line::Line;
use bulkhead_abi::log::record::{RECORD_PIECE, Written};
use bulkhead_abi::log::{Entry, Names};

/// The entry as a record. The record is as short as a burst, so no other console comes between its bytes.
#[derive(Debug)]
pub struct Records {
    /// The entry that is not shown to its end yet.
    entry: Option<Entry>,
    written: Written,
    piece: Line<RECORD_PIECE>,
}

const _: () = assert!(bulkhead_abi::log::record::RECORD_MAX < super::BURST as usize);

impl Shown for Records {
    const NOTHING: Self = Self {
        entry: None,
        written: Written::new(),
        piece: Line::new(),
    };

    fn time(&self) -> Option<u64> {
        self.entry.as_ref().map(|entry| entry.time)
    }

    fn put(&mut self, entry: Entry) {
        self.entry = Some(entry);
    }

    fn begin(stage: &mut Stage, break_line: bool, _: u64) {
        record(stage, break_line);
    }

    #[inline(never)]
    fn add_pieces(&mut self, _: &dyn Names, stage: &mut Stage) -> (u32, bool) {
        let mut taken = 0_usize;
        while taken < AT_ONCE
            && let Some(entry) = &self.entry
        {
            let ends = self.written.piece(entry, &mut self.piece);
            let bytes = self.piece.as_bytes();
            stage.push(bytes);
            taken = taken.saturating_add(bytes.len());
            if ends {
                self.entry = None;
                return (taken as u32, true);
            }
        }
        (taken as u32, false)
    }
}
