// SPDX-License-Identifier: Apache-2.0
//! ELF files: the contents to copy, and their addresses.
//!
//! Only program headers count. A segment goes to its physical address, as firmware would put it. The contents
//! of the loadable segments are packed into one blob without symbols and debug information, so that these do
//! not take space on the target.

use bulkhead_arch_api::ClassFacts;
use bulkhead_arch_api::class::{self, ProgramFacts, Word};
use object::Endianness;
use object::elf::{
    ELFCLASS32, ELFCLASS64, ELFDATA2LSB, ELFDATA2MSB, ET_DYN, ET_EXEC, FileHeader32, FileHeader64, PF_R,
    PF_W, PF_X, PT_LOAD,
};
use object::read::elf::{FileHeader, ProgramHeader};

use crate::model::Access;

/// Number of loadable segments that an ELF file can have here.
pub(crate) const MAX_SEGMENTS: usize = 32;
/// Bytes of a cache line, for the layout of a payload.
const SEGMENT_ALIGN: u64 = 64;

/// A loadable segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Segment {
    pub guest: u64,
    /// Bytes in memory.
    pub size: u64,
    /// The offset of the contents in the blob.
    pub offset: u64,
    /// Bytes of contents; the rest is zero.
    pub filled: u64,
    pub access: Access,
}

impl Segment {
    pub fn end(&self) -> u64 {
        self.guest.saturating_add(self.size)
    }
}

/// A program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Program {
    pub segments: Vec<Segment>,
    /// The contents of the segments, one after the other.
    pub blob: Vec<u8>,
    /// The first instruction, as a physical address.
    pub entry: u64,
    /// True if the program is for another state of the processor than the usual one.
    pub is_other_state: bool,
}

/// The reason why a file cannot be loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ElfError {
    /// The file is for something that this class does not run.
    Machine(String),
    Damaged(String),
}

pub(crate) fn is_elf(bytes: &[u8]) -> bool {
    bytes.starts_with(b"\x7fELF")
}

/// Returns the words for the usual programs of a class.
pub(crate) fn usual(class: &ClassFacts) -> String {
    let usual = class.programs.iter().find(|program| !program.is_other_state);
    let name = usual.map_or("its CPU", |program| machine_name(program.machine));
    let order = match class.endianness {
        class::Endianness::Little => "little",
        class::Endianness::Big => "big",
    };
    let bits = match usual.map(|program| program.word) {
        Some(Word::Bits32) => 32,
        _ => 64,
    };
    format!("{name}, {order}-endian, with addresses of {bits} bits")
}

/// Tells whether the addresses of an ELF file have another width than is usual for its machine, such as
/// addresses of ILP32 on a 64-bit Arm.
pub(crate) fn has_odd_width(bytes: &[u8]) -> bool {
    let width = bytes.get(4).map(|class| *class == ELFCLASS64.0);
    let usual = machine_of(bytes).and_then(usual_width);
    matches!(
        (width, usual),
        (Some(true), Some(Word::Bits32)) | (Some(false), Some(Word::Bits64))
    )
}

/// Returns the program that loads an ELF file with its libraries, if it needs one.
pub(crate) fn loader_of(bytes: &[u8]) -> Option<String> {
    fn of<H: FileHeader<Endian = Endianness>>(bytes: &[u8]) -> Option<String> {
        let header = H::parse(bytes).ok()?;
        let endian = header.endian().ok()?;
        let segments = header.program_headers(endian, bytes).ok()?;
        let mut loaders = segments
            .iter()
            .filter_map(|segment| segment.interpreter(endian, bytes).ok()?);
        String::from_utf8(loaders.next()?.to_vec()).ok()
    }
    by_width(
        bytes,
        of::<FileHeader32<Endianness>>,
        of::<FileHeader64<Endianness>>,
    )?
}

/// Reads a file with 32-bit or 64-bit headers, as it says. `None` if the file ends before that.
fn by_width<R>(bytes: &[u8], narrow: fn(&[u8]) -> R, wide: fn(&[u8]) -> R) -> Option<R> {
    let of = if *bytes.get(4)? == ELFCLASS64.0 {
        wide
    } else {
        narrow
    };
    Some(of(bytes))
}

/// Returns the reason why an ELF file is no program that Linux can start (Linux, fs/binfmt_elf.c,
/// `load_elf_binary`): its type, or program headers that are not in the file.
pub(crate) fn no_program(bytes: &[u8]) -> Option<&'static str> {
    fn of<H: FileHeader<Endian = Endianness>>(bytes: &[u8]) -> Option<&'static str> {
        let Ok(header) = H::parse(bytes) else {
            return Some("it is an ELF file that ends within its header, or has a header of no known kind");
        };
        let Ok(endian) = header.endian() else {
            return Some("it is an ELF file without a known byte order");
        };
        let kind = header.e_type(endian);
        if kind != ET_EXEC && kind != ET_DYN {
            return Some(
                "it is an ELF file, but no program: an object file, or the memory of one that crashed",
            );
        }
        let headers = header.program_headers(endian, bytes).ok();
        let is_loaded =
            |headers: &[H::ProgramHeader]| headers.iter().any(|segment| segment.p_type(endian) == PT_LOAD);
        match headers {
            Some(headers) if is_loaded(headers) => None,
            Some(_) => Some("it is an ELF file of which nothing is loaded"),
            None => Some("it is an ELF file whose program headers are not in the file"),
        }
    }
    by_width(
        bytes,
        of::<FileHeader32<Endianness>>,
        of::<FileHeader64<Endianness>>,
    )
    .unwrap_or(Some("it is an ELF file that ends within its header"))
}

/// Returns the number of the machine that an ELF file is for.
pub(crate) fn machine_of(bytes: &[u8]) -> Option<u16> {
    let [order, ..] = *bytes.get(5..)? else {
        return None;
    };
    let number: [u8; 2] = bytes.get(18..20)?.try_into().ok()?;
    Some(if order == ELFDATA2MSB.0 {
        u16::from_be_bytes(number)
    } else {
        u16::from_le_bytes(number)
    })
}

pub(crate) fn damaged(what: impl Into<String>) -> ElfError {
    ElfError::Damaged(what.into())
}

/// Takes an ELF file for a class apart.
///
/// # Errors
/// [`ElfError`].
pub(crate) fn parse(bytes: &[u8], class: &ClassFacts) -> Result<Program, ElfError> {
    let [width, data] = bytes
        .get(4..6)
        .and_then(|ident| ident.try_into().ok())
        .ok_or_else(|| damaged("it ends within its header"))?;
    let (own, other) = match class.endianness {
        class::Endianness::Little => (ELFDATA2LSB, "big"),
        class::Endianness::Big => (ELFDATA2MSB, "little"),
    };
    if data != own.0 {
        return Err(ElfError::Machine(format!("it is a {other}-endian ELF file")));
    }
    let programs = |word| class.programs.iter().filter(move |program| program.word == word);
    if width == ELFCLASS64.0 {
        parse_class::<FileHeader64<Endianness>>(bytes, programs(Word::Bits64))
    } else if width == ELFCLASS32.0 {
        parse_class::<FileHeader32<Endianness>>(bytes, programs(Word::Bits32))
    } else {
        Err(damaged("its class is neither 32 nor 64 bits"))
    }
}

fn parse_class<'p, H: FileHeader<Endian = Endianness>>(
    bytes: &[u8],
    programs: impl Iterator<Item = &'p ProgramFacts>,
) -> Result<Program, ElfError> {
    let (header, facts) = check_header::<H>(bytes, programs)?;
    let endian = header.endian().map_err(|_| damaged("its byte order is none"))?;
    let headers = header
        .program_headers(endian, bytes)
        .map_err(|_| damaged("its program headers are not in the file"))?;
    let mut program = Program {
        segments: Vec::new(),
        blob: Vec::new(),
        entry: 0,
        is_other_state: facts.is_other_state,
    };
    let start: u64 = header.e_entry(endian).into();
    let bits = start & facts.entry_bits;
    let start = start - bits;
    let mut entry = None;
    for segment in headers
        .iter()
        .filter(|segment| segment.p_type(endian) == PT_LOAD && segment.p_memsz(endian).into() > 0)
    {
        if program.segments.len() == MAX_SEGMENTS {
            return Err(damaged(format!(
                "it has more than {MAX_SEGMENTS} loadable segments"
            )));
        }
        let index = program.segments.len();
        let (guest, size, filled): (u64, u64, u64) = (
            segment.p_paddr(endian).into(),
            segment.p_memsz(endian).into(),
            segment.p_filesz(endian).into(),
        );
        let contents = segment
            .data(endian, bytes)
            .map_err(|()| damaged(format!("the contents of its segment {index} are not in the file")))?;
        if filled > size || guest.checked_add(size).is_none() {
            return Err(damaged(format!("its segment {index} has impossible sizes")));
        }
        let flags = segment.p_flags(endian);
        let has = |flag| flags.contains(flag);
        let access = Access {
            read: has(PF_R),
            write: has(PF_W),
            execute: has(PF_X),
        };
        let within = start.wrapping_sub(segment.p_vaddr(endian).into());
        if within < size {
            entry = entry.or(Some((guest + within) | bits));
        }
        // The distance from a cache line's beginning is the same as in memory, so that the loader copies
        // lines, not bytes.
        let offset = program.blob.len() as u64;
        let offset = offset + (guest.wrapping_sub(offset) % SEGMENT_ALIGN);
        program.blob.resize(offset as usize, 0);
        program.segments.push(Segment {
            guest,
            size,
            offset,
            filled,
            access,
        });
        program.blob.extend_from_slice(contents);
    }
    program.entry =
        entry.ok_or_else(|| damaged(format!("its entry point {start:#x} is in no loadable segment")))?;
    segments_are_apart(&program.segments)?;
    Ok(program)
}

fn check_header<'p, 'b, H: FileHeader<Endian = Endianness>>(
    bytes: &'b [u8],
    mut programs: impl Iterator<Item = &'p ProgramFacts>,
) -> Result<(&'b H, &'p ProgramFacts), ElfError> {
    let ends = || damaged("it ends within its header, or the header is not ELF's");
    let header = H::parse(bytes).map_err(|_| ends())?;
    let endian = header.endian().map_err(|_| ends())?;
    let machine = header.e_machine(endian);
    let Some(facts) = programs.find(|program| program.machine == machine.0) else {
        // Such as ILP32 of a 64-bit Arm, and x32.
        let width = match (has_odd_width(bytes), header.is_type_64()) {
            (false, _) => "",
            (true, true) => ", with addresses of 64 bits",
            (true, false) => ", with addresses of 32 bits (ILP32)",
        };
        return Err(ElfError::Machine(format!(
            "it is an ELF file for machine {} ({}){width}",
            machine.0,
            machine_name(machine.0)
        )));
    };
    match header.e_type(endian) {
        ET_EXEC | ET_DYN => Ok((header, facts)),
        _ => Err(ElfError::Machine(
            "it is not a linked program (an object file or a core dump)".to_owned(),
        )),
    }
}

pub(crate) fn machine_name(number: u16) -> &'static str {
    match number {
        3 => "x86",
        8 => "MIPS",
        20 => "PowerPC",
        40 => "32-bit Arm",
        62 => "x86-64",
        183 => "64-bit Arm",
        243 => "RISC-V",
        _ => "another one",
    }
}

/// Returns the width of addresses in usual files for a machine.
const fn usual_width(machine: u16) -> Option<Word> {
    match machine {
        3 | 20 | 40 => Some(Word::Bits32),
        62 | 183 => Some(Word::Bits64),
        _ => None,
    }
}

fn segments_are_apart(segments: &[Segment]) -> Result<(), ElfError> {
    for (index, segment) in segments.iter().enumerate() {
        for (other, before) in segments[..index].iter().enumerate() {
            if segment.guest < before.end() && before.guest < segment.end() {
                return Err(damaged(format!(
                    "its segments {other} and {index} overlap at {:#x}",
                    segment.guest.max(before.guest)
                )));
            }
        }
    }
    Ok(())
}
