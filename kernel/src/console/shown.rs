// SPDX-License-Identifier: Apache-2.0
//! The log on the serial line, in one of two forms: as text (`text`, the part), or as records from which the
//! host tool makes the same text (`records`).

use super::line::Stage;
use bulkhead_abi::log::{Entry, Names};
use core::fmt::Debug;

/// The entry of the log that is being shown, in a form.
pub trait Shown: Debug {
    /// The state in which no entry is being shown.
    const NOTHING: Self;
    /// Returns the time of the entry, if one is not shown to its end yet.
    fn time(&self) -> Option<u64>;
    /// Takes an entry to be shown. The one before must be shown to its end.
    fn put(&mut self, entry: Entry);
    /// Adds the begin of a stretch of the log to the stage.
    fn begin(stage: &mut Stage, break_line: bool, time: u64);
    /// Adds pieces of the entry to the stage: about `AT_ONCE` bytes. Returns the number of bytes, and
    /// whether they end a line.
    fn add_pieces(&mut self, log: &dyn Names, stage: &mut Stage) -> (u32, bool);
}
