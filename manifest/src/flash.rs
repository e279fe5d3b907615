// SPDX-License-Identifier: Apache-2.0
//! The one file that goes onto the board: class binary, then system image.
//!
//! The class decides how the class binary is read, and how class binary and image are joined
//! ([`crate::class`]).

use crate::board::Class;
use crate::class;
use crate::class_binary::{ClassBinary, FlashError};
use crate::system::System;

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
}

/// Returns the flashable file: `binary` followed by `image`, and the contents elsewhere in code memory.
///
/// # Errors
/// [`FlashError::Elsewhere`], [`FlashError::RamElsewhere`].
pub fn flashable(binary: &ClassBinary, image: &[u8], system: &System) -> Result<Vec<u8>, FlashError> {
    class::host(system.board.class).flash(binary, image, &system.board, &system.guests)
}
