// SPDX-License-Identifier: Apache-2.0
//! A class binary, and its ELF file as the linker leaves it: symbols and segments.
//!
//! A class keeps its segments where they are ([`stretches`]), or makes one piece of memory of them, bss and
//! stacks included ([`flatten`]).

use std::fmt;

use object::elf::{PT_LOAD, SHT_SYMTAB};
use object::read::elf::{FileHeader, ProgramHeader, Sym};

use crate::board::Class;
use crate::payload::Stretch;
use crate::units::PAGE;
use crate::window::{Window, range};

/// Largest size of a flat class binary. A larger file is surely not one.
const FLAT_MAX: u64 = 64 << 20;

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
