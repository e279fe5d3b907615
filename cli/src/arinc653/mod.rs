// SPDX-License-Identifier: Apache-2.0
//! The importer of ARINC 653 configurations in XML: `bulkhead import-arinc653`.
//!
//! Model: [`read`] takes the text of a file with the root `ARINC_653_Module` and makes a [`Module`] of it, or
//! says everything that is wrong, each with its line and column. [`write()`] makes the manifest. The manifest
//! is the user's from then on: nothing remembers where it came from.
//!
//! A thing that a manifest cannot say is an error, never silence: a channel with several destinations, a
//! pseudo partition, a name that a manifest cannot have. A thing without a meaning here (an extension of a
//! vendor, a table of the module) is a note.
//!
//! Source: the schema and the example in the appendices of ARINC Specification 653 Part 1, with the names of
//! attributes that public examples use.

mod elements;
mod model;
mod read;
mod write;

pub use model::Module;
pub use read::read;
pub use write::{Wishes, write};

use std::fmt;

/// A thing that a file says and a manifest cannot, or that is wrong in itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Line, from 1.
    pub line: u32,
    /// Column, from 1.
    pub column: u32,
    /// The finding in a sentence.
    pub text: String,
    /// True if the import goes on without it.
    pub is_note: bool,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = if self.is_note { "note" } else { "error" };
        write!(f, "{}:{}: {kind}: {}", self.line, self.column, self.text)
    }
}
