// SPDX-License-Identifier: Apache-2.0
//! The one file that goes onto the board: class binary, then system image.
//!
//! Class `aarch64`: the class binary arrives as the linker's ELF file and is flattened to its full memory size, bss and
//! stacks included, up to the symbol `__image_end`; the system image follows immediately, where the
//! running binary looks for it. Its first 64 bytes are the header of an arm64 Linux Image, so that QEMU's
//! `-kernel` and U-Boot's `booti` load the file like a kernel; the header's `image_size` is filled in
//! here, because only now the size is known. Classes that execute code in place: see [`in_place`].

mod in_place;

use std::fmt;

use object::LittleEndian;
use object::elf::{EM_AARCH64, FileHeader64, PT_LOAD, SHT_SYMTAB};
use object::read::elf::{FileHeader, ProgramHeader, Sym};

use crate::board::Window;
use crate::payload::kernel;
use crate::plan::range;
use crate::system::System;

/// Symbol at the end of the class binary's memory.
const END_SYMBOL: &[u8] = b"__image_end";
/// A class binary larger than this is surely not one.
const BINARY_MAX: u64 = 64 << 20;
/// Where the header of an Image says how much memory it takes.
const IMAGE_SIZE_AT: usize = 16;
const PAGE: u64 = crate::units::PAGE;

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
    contents: Contents,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Contents {
    /// Flattened to its memory.
    Flat(Vec<u8>),
    /// Pieces at their addresses.
    Placed(in_place::Placed),
}

impl ClassBinary {
    /// Reads the ELF file `elf`, flattened if its class wants that.
    ///
    /// # Errors
    /// [`FlashError`].
    pub fn from_elf(elf: &[u8]) -> Result<Self, FlashError> {
        let contents = if in_place::is_for_us(elf) {
            Contents::Placed(in_place::read(elf)?)
        } else {
            Contents::Flat(Self::flatten(elf)?)
        };
        Ok(Self { contents })
    }

    fn flatten(elf: &[u8]) -> Result<Vec<u8>, FlashError> {
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
        Ok(bytes)
    }

    /// Bytes of memory it takes in front of the system image, for [`crate::CompileInput::class_binary_len`].
    #[expect(
        clippy::len_without_is_empty,
        reason = "it starts with a header, so it is never empty"
    )]
    #[must_use]
    pub fn len(&self) -> u64 {
        match &self.contents {
            Contents::Flat(bytes) => bytes.len() as u64,
            Contents::Placed(placed) => placed.end - placed.start(),
        }
    }
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

/// The flashable file: `binary` followed by `image`, and what lies elsewhere in code memory.
///
/// # Errors
/// [`FlashError::Elsewhere`], [`FlashError::RamElsewhere`].
pub fn flashable(binary: &ClassBinary, image: &[u8], system: &System) -> Result<Vec<u8>, FlashError> {
    match &binary.contents {
        Contents::Flat(bytes) => Ok(join(bytes, image)),
        Contents::Placed(placed) => {
            let (linked, board) = (placed.start(), system.board.load_address);
            if linked != board {
                return Err(FlashError::Elsewhere { linked, board });
            }
            let (linked, board) = (placed.ram, system.board.own_ram);
            if linked != board {
                return Err(FlashError::RamElsewhere { linked, board });
            }
            let residents: Vec<_> = system.guests.iter().flat_map(|guest| &guest.residents).collect();
            Ok(in_place::write(placed, image, &residents))
        }
    }
}

fn join(binary: &[u8], image: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(binary.len() + image.len());
    out.extend_from_slice(binary);
    out.extend_from_slice(image);
    let size = (out.len() as u64).to_le_bytes();
    out[IMAGE_SIZE_AT..IMAGE_SIZE_AT + size.len()].copy_from_slice(&size);
    out
}
