// SPDX-License-Identifier: Apache-2.0
//! The one file that goes onto the board: class binary, then system image.
//!
//! The class decides how the class binary is read, and how class binary and image are joined
//! ([`crate::class`]).

use std::fmt;

use crate::board::Class;
use crate::class;
use crate::payload::Stretch;
use crate::system::System;
use crate::window::{Window, range};

/// Symbol at the end of the class binary's memory.
pub(crate) const END_SYMBOL: &[u8] = b"__image_end";

/// The reason why a class binary cannot be flashed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FlashError {
    /// The file is no ELF file for any class, or is damaged.
    NotElf(String),
    /// There is no symbol `__image_end` (or `__log_area`, or `__ram_end`).
    NoEnd,
    /// `__image_end` is not a multiple of the page size, or too far away.
    BadEnd(u64),
    /// A segment is outside 0..`__image_end`.
    SegmentOutside(u64),
    /// The first bytes are not the header of an Image.
    NoHeader,
    /// The class binary is linked to another address than the one in the board file.
    Elsewhere {
        /// The address at which the class binary begins.
        linked: u64,
        /// The address that the board has for the hypervisor.
        board: u64,
    },
    /// The class binary is linked for other RAM than the RAM in the board file.
    RamElsewhere {
        /// The RAM of the class binary.
        linked: Window,
        /// The RAM of the hypervisor on this board.
        board: Window,
    },
}

impl fmt::Display for FlashError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotElf(why) => write!(f, "the class binary is not a linked ELF file of any class: {why}"),
            Self::NoEnd => write!(
                f,
                "the class binary has no symbol `__image_end`, `__log_area` or `__ram_end`"
            ),
            Self::Elsewhere { linked, board } => write!(
                f,
                "the class binary is linked to {linked:#x}, but the board has the hypervisor at {board:#x} (`hypervisor.code`)"
            ),
            Self::RamElsewhere { linked, board } => write!(
                f,
                "the class binary is linked for RAM at {}, but the board has the hypervisor's at {} (`hypervisor.ram`)",
                range(*linked),
                range(*board)
            ),
            Self::BadEnd(end) => write!(
                f,
                "`__image_end` of the class binary is {end:#x}: not a page, or too far away"
            ),
            Self::SegmentOutside(at) => write!(
                f,
                "a segment of the class binary at {at:#x} is outside 0..`__image_end`"
            ),
            Self::NoHeader => write!(
                f,
                "the class binary does not start with the header of an arm64 Image"
            ),
        }
    }
}

impl std::error::Error for FlashError {}

/// A class binary, ready to be joined with a system image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClassBinary {
    pub(crate) class: Class,
    /// The contents, at their addresses.
    pub(crate) stretches: Vec<Stretch>,
    /// The first instruction, if the file gives one.
    pub(crate) entry: u32,
    /// The address where the system image goes.
    pub(crate) end: u64,
    /// The RAM that the class binary is linked for, if it is linked for some.
    pub(crate) ram: Window,
}

impl ClassBinary {
    /// Reads the ELF file `elf` in the way of its class.
    ///
    /// # Errors
    /// [`FlashError`].
    pub fn from_elf(elf: &[u8]) -> Result<Self, FlashError> {
        let class = Class::all().find(|class| class::host(*class).is_binary(elf));
        // A file that no class knows is refused by the class of a board about which nothing is known.
        class::host(class.unwrap_or_default()).read_binary(elf)
    }

    /// Returns the first address of the contents.
    pub(crate) fn start(&self) -> u64 {
        let starts = self.stretches.iter().map(|stretch| stretch.address);
        starts.min().unwrap_or(0)
    }

    /// Returns the bytes of memory in front of the system image, for
    /// [`crate::CompileInput::class_binary_len`].
    #[expect(
        clippy::len_without_is_empty,
        reason = "it starts with a header, so it is never empty"
    )]
    #[must_use]
    pub fn len(&self) -> u64 {
        self.end.saturating_sub(self.start())
    }
}

/// Returns the flashable file: `binary` followed by `image`, and the contents elsewhere in code memory.
///
/// # Errors
/// [`FlashError::Elsewhere`], [`FlashError::RamElsewhere`].
pub fn flashable(binary: &ClassBinary, image: &[u8], system: &System) -> Result<Vec<u8>, FlashError> {
    class::host(binary.class).flash(binary, image, system)
}
