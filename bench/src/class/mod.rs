// SPDX-License-Identifier: Apache-2.0
//! The parts of the bench that differ for each class of hardware: the page of figures, and the measurement.
//!
//! A class is a folder or a file here, with one trait, [`Bench`]. Nothing outside names a class.

mod aarch64;
mod armv7m;
mod armv8m;
mod ppc405;
mod x86_64;

use crate::page::Page;
use crate::runs::{Results, emulator_of};
use bulkhead::problem::Problem;
use bulkhead::ui::progress::Progress;
use bulkhead_arch_api::ClassFacts;
use bulkhead_manifest::board::Emulator;
use bulkhead_manifest::{Board, Class};

/// The list of classes.
static CLASSES: &[&dyn Bench] = &[
    &aarch64::Aarch64,
    &armv7m::Armv7m,
    &armv8m::Armv8m,
    &ppc405::Ppc405,
    &x86_64::X86,
];

/// The questions that the bench asks a class.
pub(crate) trait Bench: Sync {
    /// Returns the facts of the class.
    fn facts(&self) -> &'static ClassFacts;
    /// Returns the page with its blessed figures.
    fn page(&self) -> Page;
    /// Returns the guest that measures a machine, if the class has one yet.
    fn meter(&self) -> Option<&'static str> {
        None
    }
    /// Measures the figures of that page on the emulator of a board.
    fn measure(&self, board: &Board, emulator: &Emulator, progress: &Progress) -> Result<Results, Problem>;
}

/// Returns all classes.
pub(crate) fn all() -> impl Iterator<Item = &'static dyn Bench> {
    CLASSES.iter().copied()
}

/// Returns the pages of all classes that are measured.
pub fn pages() -> impl Iterator<Item = Page> {
    all().map(Bench::page)
}

impl Default for Page {
    fn default() -> Self {
        default().page()
    }
}

/// Measures on the emulator of a board.
///
/// # Errors
/// The board cannot be measured on, or a run fails.
pub fn measure(board: &Board, progress: &Progress) -> Result<Results, Problem> {
    of(board)?.measure(board, emulator_of(board)?, progress)
}

/// Returns the class of a board.
///
/// # Errors
/// The class is not measured yet.
pub(crate) fn of(board: &Board) -> Result<&'static dyn Bench, Problem> {
    find(board.class).ok_or_else(|| {
        Problem::new(format!(
            "nothing is measured on boards of class `{}` yet",
            board.class.name()
        ))
        .remedy("choose a board of another class: `bulkhead boards` lists them")
    })
}

/// Returns the class that holds where nothing names another class.
pub(crate) fn default() -> &'static dyn Bench {
    let found = find(Class::default());
    found.unwrap_or_else(|| unreachable!("a test sees to it that the first class is measured"))
}

fn find(class: Class) -> Option<&'static dyn Bench> {
    all().find(|bench| bench.facts() == class.facts())
}

#[cfg(test)]
mod tests {
    use super::{Bench, all};
    use bulkhead_manifest::Class;

    #[test]
    fn those_measured_are_classes_in_their_order_and_the_first_one_is() {
        let mut classes = Class::all().map(Class::facts);
        assert!(
            all()
                .map(Bench::facts)
                .all(|own| classes.any(|facts| facts == own))
        );
        assert_eq!(all().next().map(Bench::facts), Some(Class::default().facts()));
    }
}
