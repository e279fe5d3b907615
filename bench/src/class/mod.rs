// SPDX-License-Identifier: Apache-2.0
//! The parts of the bench that differ for each class of hardware: the page of figures, and the measurement.
//!
//! A class is a folder or a file here, behind one trait, [`Bench`]. Nothing outside names a class.

mod aarch64;
mod armv7m;
mod ppc405;

use crate::page::Page;
use crate::runs::Results;
use bulkhead::problem::Problem;
use bulkhead::ui::progress::Progress;
use bulkhead_arch_api::ClassFacts;
use bulkhead_manifest::board::Emulator;
use bulkhead_manifest::{Board, Class};

/// The list of classes.
static CLASSES: &[&dyn Bench] = &[&aarch64::Aarch64, &armv7m::Armv7m, &ppc405::Ppc405];

/// The questions that the bench asks a class.
pub(crate) trait Bench: Sync {
    /// Returns the facts of the class.
    fn facts(&self) -> &'static ClassFacts;
    /// Returns the page with its blessed figures.
    fn page(&self) -> Page;
    /// Measures the figures of that page on the emulator of a board.
    fn measure(&self, board: &Board, emulator: &Emulator, progress: &Progress) -> Result<Results, Problem>;
}

/// Returns all classes.
pub(crate) fn all() -> impl Iterator<Item = &'static dyn Bench> {
    CLASSES.iter().copied()
}

/// Returns the class of a board.
pub(crate) fn of(board: &Board) -> &'static dyn Bench {
    named(board.class)
}

/// Returns the class that holds where nothing names another class.
pub(crate) fn default() -> &'static dyn Bench {
    named(Class::default())
}

fn named(class: Class) -> &'static dyn Bench {
    let found = all().find(|bench| bench.facts() == class.facts());
    found.unwrap_or_else(|| unreachable!("a test sees to it that each class is here"))
}

#[cfg(test)]
mod tests {
    use super::{Bench, all};
    use bulkhead_manifest::Class;

    #[test]
    fn every_class_is_here() {
        assert!(all().map(Bench::facts).eq(Class::all().map(Class::facts)));
    }
}
