// SPDX-License-Identifier: Apache-2.0
//! The one file that goes onto the board: class binary, then system image.
//!
//! The class decides how the class binary is read, and how the two are joined ([`crate::class`]).

use std::fmt;

use crate::board::Window;
use crate::class::Class;
use crate::payload::Stretch;
use crate::plan::range;
use crate::system::System;

/// Symbol at the end of the class binary's memory.
pub(crate) const END_SYMBOL: &[u8] = b"__image_end";

/// Why a class binary cannot be flashed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FlashError {
    /// Not an ELF file for a class there is, or a damaged one.
    NotElf(String),
    /// There is no symbol `__image_end` (or `__log_area`, or `__ram_end`).
    NoEnd,
    /// `__image_end` is not a multiple of the page size, or too far away.
    BadEnd(u64),
    /// A segment is outside 0..`__image_end`.
    SegmentOutside(u64),
    /// The first bytes are not the header of an Image.
    NoHeader,
    /// The class binary is linked to another address than the board says.
    Elsewhere {
        /// Where it begins.
        linked: u64,
        /// Where the board has the hypervisor.
        board: u64,
    },
    /// The class binary is linked for other RAM than the board says.
    RamElsewhere {
        /// Its RAM.
        linked: Window,
        /// The hypervisor's on this board.
        board: Window,
    },
}

impl fmt::Display for FlashError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotElf(why) => write!(f, "the class binary is not a linked ELF file for Arm: {why}"),
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
    /// Its contents, at their addresses.
    pub(crate) stretches: Vec<Stretch>,
    /// First instruction, where the file says so.
    pub(crate) entry: u32,
    /// Where the system image goes.
    pub(crate) end: u64,
    /// Its RAM, where it is linked for some.
    pub(crate) ram: Window,
}

impl ClassBinary {
    /// Reads the ELF file `elf` as its class wants it.
    ///
    /// # Errors
    /// [`FlashError`].
    pub fn from_elf(elf: &[u8]) -> Result<Self, FlashError> {
        let class = Class::all().find(|class| class.host().is_binary(elf));
        // A file that no class knows is refused by the one that a board has if nothing else is said.
        class.unwrap_or_default().host().read_binary(elf)
    }

    /// Returns the first address of its contents.
    pub(crate) fn start(&self) -> u64 {
        let starts = self.stretches.iter().map(|stretch| stretch.address);
        starts.min().unwrap_or(0)
    }

    /// Bytes of memory it takes in front of the system image, for [`crate::CompileInput::class_binary_len`].
    #[expect(
        clippy::len_without_is_empty,
        reason = "it starts with a header, so it is never empty"
    )]
    #[must_use]
    pub fn len(&self) -> u64 {
        self.end.saturating_sub(self.start())
    }
}

/// Returns the flashable file: `binary` followed by `image`, and what lies elsewhere in code memory.
///
/// # Errors
/// [`FlashError::Elsewhere`], [`FlashError::RamElsewhere`].
pub fn flashable(binary: &ClassBinary, image: &[u8], system: &System) -> Result<Vec<u8>, FlashError> {
    binary.class.host().flash(binary, image, system)
}
