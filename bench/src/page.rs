// SPDX-License-Identifier: Apache-2.0
//! The pages with blessed figures: one for each class that is measured.

use super::rows::Row;
use super::waivers::Waiver;

/// The contents of a page.
#[derive(Debug, Clone, Copy)]
pub struct Page {
    /// The path of the page in the repository.
    pub file: &'static str,
    /// The board whose figures it has.
    pub board: &'static str,
    /// The logarithm of the nanoseconds that an instruction takes on this board while it is measured.
    pub(crate) pace: u32,
    /// The measured operations.
    pub(crate) rows: &'static [Row],
    /// Bars that do not hold yet.
    pub(crate) waivers: &'static [Waiver],
    /// Most bytes of text and read-only data of the class binary.
    pub(crate) size_bar: u64,
    /// Most bytes of RAM with four partitions, if there is a bar.
    pub(crate) ram_bar: Option<u64>,
    /// Crates that end up in the class binary, by their folders.
    pub(crate) crates: &'static [&'static str],
    /// Crates of device models, which are programs of partitions, by their folders.
    pub(crate) models: &'static [&'static str],
}
