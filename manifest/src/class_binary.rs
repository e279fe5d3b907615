// SPDX-License-Identifier: Apache-2.0
//! The ELF file of a class binary, as the linker leaves it: its symbols and its segments.
//!
//! A class keeps its segments where they are ([`stretches`]), or makes one piece of memory of them, bss and
//! stacks included ([`flatten`]).

use object::elf::{PT_LOAD, SHT_SYMTAB};
use object::read::elf::{FileHeader, ProgramHeader, Sym};

use crate::flash::{END_SYMBOL, FlashError};
use crate::payload::Stretch;
use crate::units::PAGE;

/// Largest size of a flat class binary. A larger file is surely not one.
const FLAT_MAX: u64 = 64 << 20;

/// Describes what is wrong with an ELF file.
pub(crate) fn not_elf(error: object::read::Error) -> FlashError {
    FlashError::NotElf(error.to_string())
}

/// Returns the value of a symbol.
pub(crate) fn symbol<H: FileHeader>(
    header: &H,
    endian: H::Endian,
    elf: &[u8],
    name: &[u8],
) -> Result<u64, FlashError> {
    let sections = header.sections(endian, elf).map_err(not_elf)?;
    let symbols = sections.symbols(endian, elf, SHT_SYMTAB).map_err(not_elf)?;
    let found = symbols
        .iter()
        .find(|symbol| symbol.name(endian, symbols.strings()) == Ok(name));
    found
        .map(|symbol| symbol.st_value(endian).into())
        .ok_or(FlashError::NoEnd)
}

/// Returns the segments with contents, each at its physical address. None reaches beyond `end`.
pub(crate) fn stretches<H: FileHeader>(
    header: &H,
    endian: H::Endian,
    elf: &[u8],
    end: u64,
) -> Result<Vec<Stretch>, FlashError> {
    let mut stretches = Vec::new();
    for segment in header.program_headers(endian, elf).map_err(not_elf)? {
        if segment.p_type(endian) != PT_LOAD || segment.p_filesz(endian).into() == 0 {
            continue;
        }
        let address: u64 = segment.p_paddr(endian).into();
        let bytes = contents(segment, endian, elf)?;
        if address.saturating_add(bytes.len() as u64) > end {
            return Err(FlashError::SegmentOutside(address));
        }
        stretches.push(Stretch {
            address,
            bytes: bytes.to_vec(),
        });
    }
    if stretches.is_empty() {
        return Err(no_segment());
    }
    Ok(stretches)
}

/// Returns the memory from the first segment to the symbol [`END_SYMBOL`].
pub(crate) fn flatten<H: FileHeader>(
    header: &H,
    endian: H::Endian,
    elf: &[u8],
) -> Result<Stretch, FlashError> {
    let segments = header.program_headers(endian, elf).map_err(not_elf)?;
    let loaded: Vec<_> = segments
        .iter()
        .filter(|segment| segment.p_type(endian) == PT_LOAD && segment.p_memsz(endian).into() > 0)
        .collect();
    let base: Option<u64> = loaded.iter().map(|segment| segment.p_paddr(endian).into()).min();
    let base = base.ok_or_else(no_segment)?;
    let end = symbol(header, endian, elf, END_SYMBOL)?;
    let size = end.checked_sub(base).ok_or(FlashError::NoEnd)?;
    if size == 0 || !size.is_multiple_of(PAGE) || size > FLAT_MAX {
        return Err(FlashError::BadEnd(end));
    }
    let mut bytes = vec![0; size as usize];
    for segment in loaded {
        let address: u64 = segment.p_paddr(endian).into();
        let start = address.wrapping_sub(base);
        let inside = start
            .checked_add(segment.p_memsz(endian).into())
            .is_some_and(|last| last <= size);
        let contents = contents(segment, endian, elf)?;
        let room = inside.then(|| bytes.get_mut(start as usize..)).flatten();
        let room = room
            .and_then(|room| room.get_mut(..contents.len()))
            .ok_or(FlashError::SegmentOutside(address))?;
        room.copy_from_slice(contents);
    }
    Ok(Stretch { address: base, bytes })
}

fn contents<'e, P: ProgramHeader>(
    segment: &P,
    endian: P::Endian,
    elf: &'e [u8],
) -> Result<&'e [u8], FlashError> {
    segment
        .data(endian, elf)
        .map_err(|()| FlashError::NotElf("it is truncated".to_owned()))
}

fn no_segment() -> FlashError {
    FlashError::NotElf("it has no loadable segment".to_owned())
}
