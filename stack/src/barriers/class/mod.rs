// SPDX-License-Identifier: Apache-2.0
//! The rules of each class: which instructions begin a fact, end it, or may not come while it is pending.

mod aarch64;
mod cortex_m;
mod ppc405;
mod x86_64;

use super::flow::{Facts, Node};
use crate::program::Program;

/// The list of classes.
static CLASSES: &[&dyn Rules] = &[
    &aarch64::Aarch64,
    &cortex_m::ARMV7M,
    &cortex_m::ARMV8M,
    &ppc405::Ppc405,
    &x86_64::X86,
];

/// A rule: a fact that has to end in time.
pub(super) struct Rule {
    /// The fact.
    pub fact: &'static str,
    /// The end that it needs.
    pub end: &'static str,
    /// The manual that says so, and its section.
    pub manual: &'static str,
}

/// The bytes of memory at an address, if they are in the binary.
pub(super) type Word<'a> = &'a dyn Fn(u32) -> Option<u32>;

/// The questions that the checker asks a class.
pub(super) trait Rules: Sync {
    /// Returns the name of the class.
    fn name(&self) -> &'static str;
    /// Returns the rules, in the order of the bits of [`Facts`].
    fn rules(&self) -> &'static [Rule];
    /// Returns the facts that are pending before the first instruction.
    fn at_start(&self) -> Facts {
        0
    }
    /// Reads all instructions.
    fn nodes(&self, program: &Program, word: Word<'_>) -> Vec<Node>;
    /// Returns the addresses of sequences that may not be there, with the reason.
    fn sequences(&self, _program: &Program) -> Vec<(u32, &'static str)> {
        Vec::new()
    }
}

/// Returns the rules of a class.
pub(super) fn of(name: &str) -> Option<&'static dyn Rules> {
    CLASSES.iter().find(|rules| rules.name() == name).copied()
}

/// Returns the bits of these facts.
const fn facts(list: &[usize]) -> Facts {
    let mut bits = 0;
    let mut index = 0;
    while index < list.len() {
        bits |= 1 << list[index];
        index += 1;
    }
    bits
}
