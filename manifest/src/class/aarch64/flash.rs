// SPDX-License-Identifier: Apache-2.0
//! The flashable file of class `aarch64`: flat.
//!
//! The class binary arrives as the linker's ELF file. It is flattened to its full memory size, bss and stacks
//! included, up to the symbol `__image_end`. The system image follows immediately, where the running binary
//! looks for it. The first 64 bytes of the file are the header of an arm64 Linux Image, so that QEMU's
//! `-kernel` and U-Boot's `booti` load the file like a kernel. The header's `image_size` is filled in here,
//! because only now the size is known.

use object::LittleEndian;
use object::elf::{EM_AARCH64, FileHeader64, PT_LOAD, SHT_SYMTAB};
use object::read::elf::{FileHeader, ProgramHeader, Sym};

use super::{CLASS, kernel};
use crate::board::Window;
use crate::flash::{ClassBinary, END_SYMBOL, FlashError};
use crate::payload::Stretch;
use crate::units::PAGE;

/// Largest size of a class binary. A larger file is surely not one.
const BINARY_MAX: u64 = 64 << 20;
/// Offset at which the header of an Image says how much memory the Image takes.
const IMAGE_SIZE_AT: usize = 16;

pub(super) fn is_for_us(elf: &[u8]) -> bool {
    FileHeader64::<LittleEndian>::parse(elf).is_ok_and(|header| header.e_machine(LittleEndian) == EM_AARCH64)
}

/// Reads the ELF file `elf`, and flattens it.
pub(super) fn read(elf: &[u8]) -> Result<ClassBinary, FlashError> {
    let not_elf = |error: object::read::Error| FlashError::NotElf(error.to_string());
    let header = FileHeader64::<LittleEndian>::parse(elf).map_err(not_elf)?;
    let endian = LittleEndian;
    if header.e_machine(endian) != EM_AARCH64 {
        return Err(FlashError::NotElf("it is for another machine".to_owned()));
    }
    let base = segment_base(header, elf)?;
    let end = image_end(header, elf)?
        .checked_sub(base)
        .ok_or(FlashError::NoEnd)?;
    if end == 0 || end % PAGE != 0 || end > BINARY_MAX {
        return Err(FlashError::BadEnd(end));
    }
    let mut bytes = vec![0; end as usize];
    for segment in header.program_headers(endian, elf).map_err(not_elf)? {
        if segment.p_type(endian) != PT_LOAD || segment.p_memsz(endian) == 0 {
            continue;
        }
        let address = segment.p_vaddr(endian);
        let start = address.wrapping_sub(base);
        let inside = start
            .checked_add(segment.p_memsz(endian))
            .is_some_and(|last| last <= end);
        let contents = segment
            .data(endian, elf)
            .map_err(|()| FlashError::NotElf("it is truncated".to_owned()))?;
        let room = inside.then(|| bytes.get_mut(start as usize..)).flatten();
        let room = room
            .and_then(|room| room.get_mut(..contents.len()))
            .ok_or(FlashError::SegmentOutside(address))?;
        room.copy_from_slice(contents);
    }
    if !kernel::is_image(&bytes) {
        return Err(FlashError::NoHeader);
    }
    Ok(ClassBinary {
        class: CLASS,
        stretches: vec![Stretch { address: 0, bytes }],
        entry: 0,
        end,
        ram: Window::default(),
    })
}

fn segment_base(header: &FileHeader64<LittleEndian>, elf: &[u8]) -> Result<u64, FlashError> {
    let headers = header
        .program_headers(LittleEndian, elf)
        .map_err(|error| FlashError::NotElf(error.to_string()))?;
    let loaded = headers
        .iter()
        .filter(|segment| segment.p_type(LittleEndian) == PT_LOAD && segment.p_memsz(LittleEndian) > 0);
    loaded
        .map(|segment| segment.p_vaddr(LittleEndian))
        .min()
        .ok_or_else(|| FlashError::NotElf("it has no loadable segment".to_owned()))
}

fn image_end(header: &FileHeader64<LittleEndian>, elf: &[u8]) -> Result<u64, FlashError> {
    let not_elf = |error: object::read::Error| FlashError::NotElf(error.to_string());
    let sections = header.sections(LittleEndian, elf).map_err(not_elf)?;
    let symbols = sections.symbols(LittleEndian, elf, SHT_SYMTAB).map_err(not_elf)?;
    let named = |symbol: &&object::elf::Sym64<LittleEndian>| {
        symbol.name(LittleEndian, symbols.strings()) == Ok(END_SYMBOL)
    };
    symbols
        .iter()
        .find(named)
        .map(|symbol| symbol.st_value(LittleEndian))
        .ok_or(FlashError::NoEnd)
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
