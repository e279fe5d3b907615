// SPDX-License-Identifier: Apache-2.0
//! Tables of objects that are made before the partition's normal mode, and found by name or identifier.

use crate::types::{Answer, Name, ReturnCode};

/// An object with a name.
pub(crate) trait Named {
    fn name(&self) -> &Name;
}

/// Up to `N` objects. The identifier of an object is its position plus one.
#[derive(Debug)]
pub(crate) struct Table<T, const N: usize> {
    entries: [Option<T>; N],
}

impl<T: Named, const N: usize> Table<T, N> {
    pub(crate) const fn new() -> Self {
        Self {
            entries: [const { None }; N],
        }
    }

    /// Adds an object if there is room, which comes first among the standard's checks, and if
    /// its name is new.
    pub(crate) fn check_new(&self, name: &Name) -> Answer {
        if self.entries.iter().all(Option::is_some) {
            return Err(ReturnCode::InvalidConfig);
        }
        if self.position(name).is_some() {
            return Err(ReturnCode::NoAction);
        }
        Ok(())
    }

    /// Adds an object and returns its identifier.
    pub(crate) fn add(&mut self, object: T) -> Answer<i64> {
        for (index, entry) in self.entries.iter_mut().enumerate() {
            if entry.is_none() {
                *entry = Some(object);
                return Ok(index as i64 + 1);
            }
        }
        Err(ReturnCode::InvalidConfig)
    }

    fn position(&self, name: &Name) -> Option<usize> {
        let is_it = |entry: &Option<T>| entry.as_ref().is_some_and(|object| object.name() == name);
        self.entries.iter().position(is_it)
    }

    /// Returns the identifier of the object with this name.
    pub(crate) fn find(&self, name: &Name) -> Answer<i64> {
        let index = self.position(name).ok_or(ReturnCode::InvalidConfig)?;
        Ok(index as i64 + 1)
    }

    /// Returns the position of the object with this identifier.
    pub(crate) fn index(&self, identifier: i64) -> Answer<usize> {
        let index = usize::try_from(identifier.saturating_sub(1)).map_err(|_| ReturnCode::InvalidParam)?;
        match self.entries.get(index) {
            Some(Some(_)) => Ok(index),
            _ => Err(ReturnCode::InvalidParam),
        }
    }

    pub(crate) fn at(&self, index: usize) -> Answer<&T> {
        let entry = self.entries.get(index).and_then(Option::as_ref);
        entry.ok_or(ReturnCode::InvalidParam)
    }

    pub(crate) fn at_mut(&mut self, index: usize) -> Answer<&mut T> {
        let entry = self.entries.get_mut(index).and_then(Option::as_mut);
        entry.ok_or(ReturnCode::InvalidParam)
    }

    pub(crate) fn get(&self, identifier: i64) -> Answer<&T> {
        self.at(self.index(identifier)?)
    }

    /// Returns the positions in use.
    pub(crate) fn positions(&self) -> impl Iterator<Item = usize> + use<T, N> {
        let count = self.entries.iter().take_while(|entry| entry.is_some()).count();
        0..count
    }
}
