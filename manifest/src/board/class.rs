// SPDX-License-Identifier: Apache-2.0
//! The class of a board.

use std::fmt;

use bulkhead_arch_api::ClassFacts;
use bulkhead_arch_api::class::CLASSES;

use super::Board;
use crate::schema::ValueKind;
use crate::schema::form::Form;
use crate::value::Value;

/// The class of a board, which determines the hypervisor that runs on it.
#[derive(Clone, Copy)]
pub struct Class(&'static ClassFacts);

impl Class {
    /// Returns the class with these facts.
    pub(crate) const fn of(facts: &'static ClassFacts) -> Self {
        Self(facts)
    }

    /// Returns the class of a board. A board that is not known has the usual class.
    pub(crate) fn of_board(board: Option<&Board>) -> Self {
        board.map_or_else(Self::default, |board| board.class)
    }

    /// Returns all classes.
    pub fn all() -> impl Iterator<Item = Self> {
        CLASSES.iter().copied().map(Self)
    }

    /// Returns the class of that name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::all().find(|class| class.name() == name)
    }

    /// Returns the facts of the class.
    #[must_use]
    pub const fn facts(self) -> &'static ClassFacts {
        self.0
    }

    /// Returns the name of the class, in board files and of its class binary.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.facts().name
    }
}

impl Form for Class {
    const KIND: ValueKind = ValueKind::OneOf(|| {
        let facts = Self::all().map(Self::facts);
        facts.map(|facts| (facts.name, facts.description)).collect()
    });

    fn read(value: &Value) -> Option<Self> {
        Self::named(value.text()?)
    }
}

impl PartialEq for Class {
    fn eq(&self, other: &Self) -> bool {
        self.facts().number == other.facts().number
    }
}

impl Eq for Class {}

impl fmt::Debug for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Default for Class {
    /// Returns the class of a board about which nothing is known: the first one.
    fn default() -> Self {
        let [first, ..] = CLASSES else {
            unreachable!("there is a class")
        };
        Self(first)
    }
}
