// SPDX-License-Identifier: Apache-2.0
//! The types of values: how each type is written, and how a value is read.
//!
//! Reading never fails. The shape check reports a value of the wrong type or out of its range. The reader
//! treats such a value as absent. So one mistake gives one finding, and no rule goes on with a value that was
//! refused.

use std::fmt;
use std::ops::Deref;

use super::{TableSchema, ValueKind};
use crate::diagnostic::Place;
use crate::units::{self, Address, Duration, Size};
use crate::value::{self, Entry, Table, Value};

/// A type of values.
pub(crate) trait Form: Sized {
    /// The type for the check of shapes, the JSON Schema and the reference.
    const KIND: ValueKind;

    /// Returns the value, if it is of this type.
    fn read(value: &Value) -> Option<Self>;
}

/// A type of a field: a value, or its stand-in while the key is absent.
pub(crate) trait Field: Sized {
    /// The type of the value.
    const KIND: ValueKind;

    /// Returns the value of the key, or the value of the literal that stands in for the key.
    fn read(entry: Option<&Entry>, literal: Option<&str>) -> Self;
}

/// A type whose values are words.
pub(crate) trait Words: Copy + 'static {
    /// Each word with its value.
    const WORDS: &'static [(&'static str, Self)];
}

/// Returns the word for a value.
pub(crate) fn word<T: Words + PartialEq>(value: T) -> &'static str {
    let mut words = T::WORDS.iter();
    words
        .find(|(_, other)| *other == value)
        .map_or("", |(word, _)| word)
}

/// A table that is declared.
pub(crate) trait Declared: Default {
    /// The declaration as data.
    const SCHEMA: &'static TableSchema;
    /// A noun for the keys of a table of such tables.
    const NAMED_BY: &'static str;

    /// Reads the table. The key of the table, if it has one, is its name.
    fn read(head: &Head<'_>) -> Self;

    /// Reads the keys of this declaration from a table that has other keys, too.
    fn of(table: &Table) -> Self {
        Self::read(&Head {
            table,
            place: Place::default(),
            key: None,
        })
    }
}

/// A table that is to be read, and its surroundings.
pub(crate) struct Head<'a> {
    pub table: &'a Table,
    pub place: Place,
    pub key: Option<&'a Entry>,
}

impl Head<'_> {
    /// Returns the key of the table as its name.
    pub fn name(&self) -> Placed<String> {
        let entry = self.key;
        Placed {
            value: entry.map_or_else(String::new, |entry| entry.key.clone()),
            place: entry.map_or(self.place, |entry| entry.key_place),
        }
    }

    /// Returns the place of the table.
    pub fn place(&self) -> Place {
        self.place
    }

    /// Returns the place of the first key.
    pub fn start(&self) -> Place {
        let first = self.table.entries.first();
        first.map_or(self.place, |entry| entry.key_place)
    }

    /// Returns the keys that are in the table, for rules about keys that should not be there.
    pub fn keys(&self) -> Vec<Placed<String>> {
        let placed = |entry: &Entry| Placed {
            value: entry.key.clone(),
            place: entry.key_place,
        };
        self.table.entries.iter().map(placed).collect()
    }
}

/// A value and its place in the file.
#[derive(Clone, Debug)]
pub(crate) struct Placed<T> {
    pub value: T,
    pub place: Place,
}

/// A value that is never absent: the value of the key, or a default.
#[derive(Clone, Debug, Default)]
pub(crate) struct Given<T> {
    pub value: T,
    /// The place of the value, if the key is there.
    pub place: Option<Place>,
    /// The place of the key, if the key is there.
    pub key: Option<Place>,
}

impl<T: Copy> Given<T> {
    /// Returns the value with its place, if the key is there.
    pub fn given(&self) -> Option<Placed<T>> {
        self.place.map(|place| Placed {
            value: self.value,
            place,
        })
    }
}

impl<T> Deref for Given<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

/// The tables of a table whose keys are names, in the order of the file.
#[derive(Clone, Debug)]
pub struct Map<T>(Vec<T>);

impl<T> Default for Map<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T> Deref for Map<T> {
    type Target = Vec<T>;

    fn deref(&self) -> &Vec<T> {
        &self.0
    }
}

impl<T> std::ops::DerefMut for Map<T> {
    fn deref_mut(&mut self) -> &mut Vec<T> {
        &mut self.0
    }
}

impl<'a, T> IntoIterator for &'a Map<T> {
    type Item = &'a T;
    type IntoIter = std::slice::Iter<'a, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.iter()
    }
}

impl<'a, T> IntoIterator for &'a mut Map<T> {
    type Item = &'a mut T;
    type IntoIter = std::slice::IterMut<'a, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.iter_mut()
    }
}

impl<'a, T> IntoIterator for &'a Given<Vec<T>> {
    type Item = &'a T;
    type IntoIter = std::slice::Iter<'a, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.value.iter()
    }
}

impl<'a, T> IntoIterator for &'a Given<Map<T>> {
    type Item = &'a T;
    type IntoIter = std::slice::Iter<'a, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.value.iter()
    }
}

impl<T: Form + Default> Field for T {
    const KIND: ValueKind = T::KIND;

    fn read(entry: Option<&Entry>, literal: Option<&str>) -> Self {
        let given = entry.and_then(|entry| T::read(&entry.value));
        let default = || T::read(&value::literal(literal?)?);
        given.or_else(default).unwrap_or_default()
    }
}

impl<T: Form> Field for Option<T> {
    const KIND: ValueKind = T::KIND;

    fn read(entry: Option<&Entry>, _: Option<&str>) -> Self {
        T::read(&entry?.value)
    }
}

impl<T: Form + Default> Field for Given<T> {
    const KIND: ValueKind = T::KIND;

    fn read(entry: Option<&Entry>, literal: Option<&str>) -> Self {
        Self {
            value: <T as Field>::read(entry, literal),
            place: entry.map(|entry| entry.value.place),
            key: entry.map(|entry| entry.key_place),
        }
    }
}

impl<T: Form> Form for Placed<T> {
    const KIND: ValueKind = T::KIND;

    fn read(value: &Value) -> Option<Self> {
        Some(Self {
            value: T::read(value)?,
            place: value.place,
        })
    }
}

impl<T: Form> Form for Vec<T> {
    const KIND: ValueKind = ValueKind::List(&T::KIND);

    fn read(value: &Value) -> Option<Self> {
        Some(value.list()?.iter().filter_map(T::read).collect())
    }
}

impl<T: Declared> Form for Map<T> {
    const KIND: ValueKind = ValueKind::Map {
        key: T::NAMED_BY,
        of: T::SCHEMA,
    };

    fn read(value: &Value) -> Option<Self> {
        let one = |entry: &Entry| {
            Some(T::read(&Head {
                table: entry.value.table()?,
                place: entry.value.place,
                key: Some(entry),
            }))
        };
        Some(Self(value.table()?.entries.iter().filter_map(one).collect()))
    }
}

impl Form for String {
    const KIND: ValueKind = ValueKind::Text;

    fn read(value: &Value) -> Option<Self> {
        value.text().map(str::to_owned)
    }
}

impl Form for bool {
    const KIND: ValueKind = ValueKind::Boolean;

    fn read(value: &Value) -> Option<Self> {
        value.boolean()
    }
}

impl Form for u64 {
    const KIND: ValueKind = ValueKind::Integer(0, Self::MAX);

    fn read(value: &Value) -> Option<Self> {
        Self::try_from(value.integer()?).ok()
    }
}

impl Form for u32 {
    const KIND: ValueKind = ValueKind::Integer(0, Self::MAX as u64);

    fn read(value: &Value) -> Option<Self> {
        Self::try_from(value.integer()?).ok()
    }
}

/// An integer from `LOW` to `HIGH`. The default of the type stands for an absent key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Whole<const LOW: u32, const HIGH: u32>(u32);

impl<const LOW: u32, const HIGH: u32> Default for Whole<LOW, HIGH> {
    fn default() -> Self {
        Self(LOW)
    }
}

impl<const LOW: u32, const HIGH: u32> Whole<LOW, HIGH> {
    /// Returns the number, if it is within the bounds.
    pub(crate) fn new(number: u64) -> Option<Self> {
        let number = u32::try_from(number).ok()?;
        (LOW..=HIGH).contains(&number).then_some(Self(number))
    }

    /// Returns the number.
    #[must_use]
    pub const fn get(self) -> u32 {
        self.0
    }
}

impl<const LOW: u32, const HIGH: u32> fmt::Display for Whole<LOW, HIGH> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl<const LOW: u32, const HIGH: u32> Form for Whole<LOW, HIGH> {
    const KIND: ValueKind = ValueKind::Integer(LOW as u64, HIGH as u64);

    fn read(value: &Value) -> Option<Self> {
        Self::new(u64::try_from(value.integer()?).ok()?)
    }
}

impl Form for Address {
    const KIND: ValueKind = ValueKind::Address;

    fn read(value: &Value) -> Option<Self> {
        <u64 as Form>::read(value).map(Self::new)
    }
}

impl Form for Size {
    const KIND: ValueKind = ValueKind::Size;

    fn read(value: &Value) -> Option<Self> {
        let bytes = match value.text() {
            Some(text) => units::parse_size(text),
            None => <u64 as Form>::read(value),
        };
        bytes.map(Self::new)
    }
}

impl Form for Duration {
    const KIND: ValueKind = ValueKind::Duration;

    fn read(value: &Value) -> Option<Self> {
        units::parse_duration(value.text()?).map(Self::new)
    }
}
