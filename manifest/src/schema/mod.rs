// SPDX-License-Identifier: Apache-2.0
//! What a manifest and a board file may contain, as data.
//!
//! One description drives everything that must agree about the format: the check for unknown keys and
//! wrong types ([`shape`]), the JSON Schema for editors ([`json`]) and the reference page of the book
//! ([`reference`]). A new key is one line in [`manifest`] or [`board`] and one in the reader; forgetting
//! the first makes every file that uses the key fail.

pub(crate) mod board;
pub(crate) mod json;
pub(crate) mod manifest;
pub(crate) mod reference;
pub(crate) mod scheduling;
pub(crate) mod shape;
mod timing;

/// A table of the format.
#[derive(Debug)]
pub(crate) struct TableSchema {
    /// What it describes, for messages: "a partition".
    pub what: &'static str,
    /// What it is for.
    pub doc: &'static str,
    pub keys: &'static [Key],
}

/// A key of a table.
#[derive(Debug)]
pub(crate) struct Key {
    pub name: &'static str,
    pub doc: &'static str,
    pub kind: Kind,
    pub need: Need,
}

/// Whether a key must be there.
#[derive(Debug)]
pub(crate) enum Need {
    Required,
    Optional,
    /// Optional; what its absence means.
    Default(&'static str),
}

/// Type of a value.
#[derive(Debug)]
pub(crate) enum Kind {
    Text,
    Boolean,
    /// An integer within the bounds, both included.
    Integer(u64, u64),
    /// An address: an integer of 64 bits.
    Address,
    /// Bytes: an integer or a string with a unit.
    Size,
    /// A string with a unit.
    Duration,
    /// One of a few words, each with what it means.
    Choice(&'static [(&'static str, &'static str)]),
    List(&'static Kind),
    Table(&'static TableSchema),
    /// A table whose keys are names the user chooses.
    Map {
        /// What a key is.
        key: &'static str,
        of: &'static TableSchema,
    },
}

impl Kind {
    /// The type in words, for messages and the reference.
    pub fn describe(&self) -> String {
        match self {
            Self::Text => "a string".to_owned(),
            Self::Boolean => "true or false".to_owned(),
            Self::Integer(low, high) => format!("an integer from {low} to {high}"),
            Self::Address => "an address (integer)".to_owned(),
            Self::Size => "a size such as \"64M\" (units K, M, G) or an integer of bytes".to_owned(),
            Self::Duration => "a duration such as \"10ms\" (units ns, us, ms, s)".to_owned(),
            Self::Choice(choices) => {
                let names: Vec<_> = choices.iter().map(|(name, _)| format!("\"{name}\"")).collect();
                format!("one of {}", names.join(", "))
            }
            Self::List(of) => match of {
                Self::Text => "an array of strings".to_owned(),
                Self::Table(table) => format!("an array of tables, each {}", table.what),
                other => format!("an array, each element {}", other.describe()),
            },
            Self::Table(table) => format!("a table: {}", table.what),
            Self::Map { key, of } => format!("a table of tables, one per {key}, each {}", of.what),
        }
    }
}
