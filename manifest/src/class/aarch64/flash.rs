// SPDX-License-Identifier: Apache-2.0
//! The flashable file of class `aarch64`: flat.
//!
//! The class binary arrives as the linker's ELF file. It is flattened to its full memory size, bss and stacks
//! included, up to the symbol `__image_end`. The system image follows immediately, where the running binary
//! looks for it. The first 64 bytes of the file are the header of an arm64 Linux Image, so that QEMU's
//! `-kernel` and U-Boot's `booti` load the file like a kernel. The header's `image_size` is filled in here,
//! because only now the size is known.

use object::LittleEndian;
use object::elf::{EM_AARCH64, FileHeader64};
use object::read::elf::FileHeader;

use super::{CLASS, kernel};
use crate::class_binary::{ClassBinary, FlashError, Marks, flatten, not_elf};
use crate::payload::Stretch;
use crate::window::Window;

/// Offset at which the header of an Image says how much memory the Image takes.
const IMAGE_SIZE_AT: usize = 16;

pub(super) fn is_for_us(elf: &[u8]) -> bool {
    FileHeader64::<LittleEndian>::parse(elf).is_ok_and(|header| header.e_machine(LittleEndian) == EM_AARCH64)
}

/// Reads the ELF file `elf`, and flattens it.
pub(super) fn read(elf: &[u8]) -> Result<ClassBinary, FlashError> {
    let header = FileHeader64::<LittleEndian>::parse(elf).map_err(not_elf)?;
    let Stretch { bytes, .. } = flatten(header, LittleEndian, elf)?;
    if !kernel::is_image(&bytes) {
        return Err(FlashError::NoHeader);
    }
    Ok(ClassBinary {
        class: CLASS,
        entry: 0,
        end: bytes.len() as u64,
        stretches: vec![Stretch { address: 0, bytes }],
        ram: Window::default(),
        marks: Marks::read(header, LittleEndian, elf),
    })
}

/// Returns the class binary followed by `image`.
pub(super) fn join(binary: &ClassBinary, image: &[u8]) -> Vec<u8> {
    let mut out: Vec<u8> = binary
        .stretches
        .iter()
        .flat_map(|stretch| stretch.bytes.iter().copied())
        .collect();
    out.extend_from_slice(image);
    let size = (out.len() as u64).to_le_bytes();
    out[IMAGE_SIZE_AT..IMAGE_SIZE_AT + size.len()].copy_from_slice(&size);
    out
}
