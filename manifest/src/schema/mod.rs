// SPDX-License-Identifier: Apache-2.0
//! The form of manifests and board files.
//!
//! A table of the format is declared once, by [`declare::tables`]. The documentation of a structure and its
//! fields gives the words for people. The type of a field is the type of the value. The declaration makes the
//! structure, its reader ([`form`]), the check for unknown keys and wrong types ([`shape`]), the JSON Schema
//! for editors ([`json`]) and the reference page of the book ([`reference`]). The last three work on
//! [`TableSchema`], which is the declaration as data. Keys of a class or of a driver are declared beside the
//! class or the driver. [`TableSchema::keys`] joins them to their table.
#![deny(clippy::arithmetic_side_effects)]

pub(crate) mod declare;
pub(crate) mod form;
pub(crate) mod json;
pub(crate) mod reference;
pub(crate) mod shape;

/// A table of the format.
#[derive(Debug)]
pub(crate) struct TableSchema {
    /// The noun for messages: "a partition".
    pub what: &'static str,
    /// A description for the reference.
    pub doc: &'static str,
    /// The keys that are declared with the table.
    pub own: &'static [Key],
    /// The function that returns all keys of the table, made from the table's own.
    pub complete: fn(&'static [Key]) -> Vec<Key>,
}

impl TableSchema {
    /// Returns all keys, with the keys of classes and drivers.
    pub fn keys(&self) -> Vec<Key> {
        (self.complete)(self.own)
    }
}

/// A key of a table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Key {
    pub name: &'static str,
    pub doc: &'static str,
    pub kind: ValueKind,
    pub need: Need,
}

/// The meaning of the absence of a key.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Need {
    Required,
    Optional,
    /// This value, as a manifest would give it.
    Default(&'static str),
    /// A value that depends on other keys, in words.
    Otherwise(&'static str),
}

impl Need {
    /// Returns the value that stands in for an absent key, as a manifest would give it.
    pub const fn literal(self) -> Option<&'static str> {
        match self {
            Self::Default(literal) => Some(literal),
            Self::Required | Self::Optional | Self::Otherwise(_) => None,
        }
    }

    /// Returns the meaning of an absent optional key in words, if the declaration has one.
    pub const fn absence(self) -> Option<&'static str> {
        match self {
            Self::Default(text) | Self::Otherwise(text) => Some(text),
            Self::Required | Self::Optional => None,
        }
    }
}

/// A word of a choice, and its meaning.
pub(crate) type Word = (&'static str, &'static str);

/// Type of a value.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ValueKind {
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
    /// One of a few words.
    Choice(&'static [Word]),
    /// One of the words of a choice, or a text that begins with `start`. `other` stands for such a text.
    ChoiceOr {
        choice: &'static ValueKind,
        start: &'static str,
        other: Word,
    },
    /// One of a few words that other tables list.
    OneOf(fn() -> Vec<Word>),
    List(&'static ValueKind),
    Table(&'static TableSchema),
    /// A table whose keys are names that the user chooses.
    Map {
        /// A noun for the keys.
        key: &'static str,
        of: &'static TableSchema,
    },
}

impl ValueKind {
    /// Returns the words of a choice, and none for other types.
    pub fn choices(&self) -> Vec<Word> {
        match self {
            Self::Choice(choices) => choices.to_vec(),
            Self::ChoiceOr { choice, other, .. } => choice.choices().into_iter().chain([*other]).collect(),
            Self::OneOf(choices) => choices(),
            Self::Text
            | Self::Boolean
            | Self::Integer(..)
            | Self::Address
            | Self::Size
            | Self::Duration
            | Self::List(_)
            | Self::Table(_)
            | Self::Map { .. } => Vec::new(),
        }
    }

    /// Returns the type in words, for messages and the reference.
    pub fn describe(&self) -> String {
        match self {
            Self::Text => "a string".to_owned(),
            Self::Boolean => "true or false".to_owned(),
            Self::Integer(low, high) => format!("an integer from {low} to {high}"),
            Self::Address => "an address (integer)".to_owned(),
            Self::Size => "a size such as \"64M\" (units K, M, G) or an integer of bytes".to_owned(),
            Self::Duration => "a duration such as \"10ms\" (units ns, us, ms, s)".to_owned(),
            Self::Choice(_) | Self::ChoiceOr { .. } | Self::OneOf(_) => {
                let choices = self.choices();
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
