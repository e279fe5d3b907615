// SPDX-License-Identifier: Apache-2.0
//! A class binary, and its ELF file as the linker leaves it: symbols and segments.
//!
//! A class keeps its segments where they are ([`stretches`]), or makes one piece of memory of them, bss and
//! stacks included ([`flatten`]).

use std::fmt;

use bulkhead_image::layout::{TRUST_MAGIC, TrustRecord};
use bulkhead_image::{Portable, Sha256};
use object::elf::{PT_LOAD, SHT_SYMTAB};
use object::read::elf::{FileHeader, ProgramHeader, Sym};
use zerocopy::IntoBytes;

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
    /// There is no room for keys.
    NoTrust,
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
            Self::NoTrust => write!(
                f,
                "the class binary has no room for keys: it is built without the part `signature`"
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
    /// The stretches that a signed image is about.
    pub(crate) marks: Marks,
}

/// The stretches of a class binary that a signed image is about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Marks {
    /// The address of the record with the keys, if the class binary has the part `signature`.
    trust: Option<u64>,
    /// The instructions and constants that the running class binary finds as the host knows them.
    constants: Window,
    /// Bytes of the table RELR at the end of the constants, if the class binary moves itself.
    relocations: u64,
}

impl Marks {
    /// Reads the symbols of an ELF file.
    pub(crate) fn read<H: FileHeader>(header: &H, endian: H::Endian, elf: &[u8]) -> Self {
        let value = |name: &[u8]| symbol(header, endian, elf, name).ok();
        let start = value(b"__constants_start").unwrap_or(0);
        let end = value(b"__constants_end").unwrap_or(start);
        Self {
            trust: value(b"bulkhead_trust"),
            constants: Window {
                base: start,
                size: end.saturating_sub(start),
            },
            relocations: value(b"__relr_start").map_or(0, |table| end.saturating_sub(table)),
        }
    }
}

/// Changes the instructions and constants of a class binary as the class binary does when it runs `by` bytes
/// after the address for which it is linked. `record` says where the addresses in them are.
pub fn relocate(constants: &mut [u8], record: &TrustRecord, by: u64) {
    let length = usize::try_from(record.relocations_len.get()).unwrap_or(usize::MAX);
    let table = constants.len().saturating_sub(length);
    let (words, _) = constants.get(table..).unwrap_or(&[]).as_chunks::<8>();
    let words: Vec<u64> = words.iter().map(|word| u64::from_le_bytes(*word)).collect();
    let mut next = 0_u64;
    for word in words {
        // An even number is an address, and an odd one is a map of the 63 words after the last address.
        let places = if word & 1 == 0 {
            next = word;
            1
        } else {
            word >> 1
        };
        let stride = if word & 1 == 0 { 1 } else { 63 };
        for bit in (0..63_u64).filter(|bit| places >> bit & 1 != 0) {
            let address = next.wrapping_add(bit.wrapping_mul(8));
            let offset = address.wrapping_sub(record.constants_address.get());
            let place = usize::try_from(offset)
                .ok()
                .and_then(|offset| constants.get_mut(offset..));
            if let Some(place) = place.and_then(|rest| rest.first_chunk_mut::<8>()) {
                *place = u64::from_le_bytes(*place).wrapping_add(by).to_le_bytes();
            }
        }
        next = next.wrapping_add(stride * 8);
    }
}

impl ClassBinary {
    /// Returns the first address of the contents.
    pub(crate) fn start(&self) -> u64 {
        let starts = self.stretches.iter().map(|stretch| stretch.address);
        starts.min().unwrap_or(0)
    }

    /// Writes keys into the class binary, and returns the whole record. The class binary runs only images of
    /// the keys' owners then.
    ///
    /// # Errors
    /// [`FlashError::NoTrust`]: the class binary is built without the part `signature`.
    pub fn entrust(&mut self, record: &TrustRecord) -> Result<TrustRecord, FlashError> {
        let address = self.marks.trust.ok_or(FlashError::NoTrust)?;
        let Window { base, size } = self.marks.constants;
        let record = TrustRecord {
            constants_before: address.saturating_sub(base).into(),
            constants_len: size.into(),
            constants_address: base.into(),
            relocations_len: self.marks.relocations.into(),
            ..*record
        };
        let bytes = record.as_bytes();
        let place = self.stretches.iter_mut().find_map(|stretch| {
            let start = usize::try_from(address.checked_sub(stretch.address)?).ok()?;
            stretch.bytes.get_mut(start..)?.get_mut(..bytes.len())
        });
        let place = place.filter(|place| place.starts_with(&TRUST_MAGIC));
        place.ok_or(FlashError::NoTrust)?.copy_from_slice(bytes);
        Ok(record)
    }

    /// Returns SHA-256 of the instructions and constants that the class binary finds when it runs at a load
    /// address. A gap between stretches is zeros. `record` is its record.
    #[must_use]
    pub fn digest(&self, record: &TrustRecord, load_address: u64) -> [u8; 32] {
        let Window { base, size } = self.marks.constants;
        let mut bytes = vec![0; usize::try_from(size.min(FLAT_MAX)).unwrap_or(0)];
        for stretch in &self.stretches {
            for (address, byte) in (stretch.address..).zip(&stretch.bytes) {
                let offset = address
                    .checked_sub(base)
                    .and_then(|offset| usize::try_from(offset).ok());
                if let Some(place) = offset.and_then(|offset| bytes.get_mut(offset)) {
                    *place = *byte;
                }
            }
        }
        relocate(&mut bytes, record, load_address.wrapping_sub(self.start()));
        Portable.digest(&[&bytes])
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
