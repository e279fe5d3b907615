// SPDX-License-Identifier: Apache-2.0
//! A section of a program, and what becomes of its instructions.

use crate::payload::Stretch;

/// The kind of the contents from an address on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Contents {
    /// T32 instructions.
    Thumb,
    /// Data.
    Data,
    /// Code or data: no symbol says which.
    Untold,
    /// Instructions of another set, which no CPU of the class has.
    Foreign,
}

/// An executable section, or all contents of an image that has no sections.
#[derive(Clone, Debug)]
pub(crate) struct Section<'a> {
    /// The words for it in a message.
    pub name: String,
    /// The address of the section.
    pub address: u32,
    pub bytes: &'a [u8],
    /// Addresses, each with the contents that start there, in ascending order. They come from mapping
    /// symbols, and from other symbols where mapping symbols are silent.
    pub map: Vec<(u32, Contents)>,
}

/// The instructions that were replaced, and others of interest.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Rewritten {
    /// Addresses of the replaced instructions, ascending.
    pub sites: Vec<u32>,
    /// Addresses of undefined instructions that the program has of its own.
    pub undefined: Vec<u32>,
    /// Addresses of instructions that call a debugger.
    pub semihosting: Vec<u32>,
}

/// The reasons why a program cannot be rewritten: one line per place.
pub(crate) type Refusals = Vec<String>;

/// The instructions of a class that executes code where it is linked.
pub(crate) trait Instructions: Sync {
    /// Replaces the instructions of a section that neither do their work without privilege nor trap. `bytes`
    /// is a copy of the contents of the section.
    fn replace(
        &self,
        section: &Section<'_>,
        bytes: &mut [u8],
        rewritten: &mut Rewritten,
        refusals: &mut Refusals,
    );

    /// Returns the addresses in `bytes`, which begin at `address`, at which a jump would meet a replaced
    /// instruction or something that looks like one. Data count, too.
    fn lookalikes(&self, address: u32, bytes: &[u8]) -> Vec<u32>;

    /// Puts branches in the place of replaced instructions that read or write masks, and the code that they
    /// lead to after the program. `words` is the address of the mask words.
    ///
    /// # Errors
    /// The finished code does not read as it should.
    fn use_mask_words(
        &self,
        words: u32,
        code: &mut Vec<Stretch>,
        rewritten: &mut Rewritten,
    ) -> Result<(), String>;

    /// Returns the first address in `bytes`, which begin at `address`, at which a jump would meet a call of a
    /// debugger. Data and the rest of a longer instruction count, too.
    fn debugger_call(&self, address: u32, bytes: &[u8]) -> Option<u32>;
}
