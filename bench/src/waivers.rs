// SPDX-License-Identifier: Apache-2.0
//! Bars that do not hold yet.
//!
//! A figure beyond its bar is a finding, with any compiler, unless there is a waiver for the figure. A
//! figure beyond its waiver is a finding as well, so that no failing bar gets worse. A waiver that is clearly
//! not needed any more is the third kind of finding: a bar that was reached once is not to be lost.
//!
//! A waiver is at the blessed figure of its page, to the instruction and the byte: a test compares the two.
//! So a change that lets such a figure rise has to raise the waiver of its class, and says why. Figures
//! repeat exactly with the compiler that the page names. Another compiler makes other code, and may need a
//! twentieth more.

/// Name of the size of the class binary, which stands in the place of a row's key.
pub(crate) const SIZE: &str = "size";

/// Name of the size of the class binary's RAM.
pub(crate) const RAM: &str = "ram";

/// Name of the first use of a row, before the key of the row.
pub(crate) const COLD: &str = "cold:";

/// A bar that does not hold yet.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Waiver {
    /// Key of the row, after [`COLD`] for the first use.
    pub key: &'static str,
    /// The figure gets no larger than this.
    pub most: u64,
    /// The reason why the figure is beyond the bar.
    pub why: &'static str,
}

impl Waiver {
    /// Returns the most that the waiver allows, with the compiler of the page or with another one.
    pub(crate) const fn limit(&self, is_pages_compiler: bool) -> u64 {
        if is_pages_compiler {
            self.most
        } else {
            self.most + self.most / 20
        }
    }
}

/// Returns a waiver.
pub(crate) const fn waiver(key: &'static str, most: u64, why: &'static str) -> Waiver {
    Waiver { key, most, why }
}
