// SPDX-License-Identifier: Apache-2.0
//! ELF files: what to copy where.
//!
//! Only program headers count; a segment goes to its physical address, as firmware would put it. The
//! contents of the loadable segments are packed into one blob without symbols and debug information, so
//! that these do not take space on the target.

use object::LittleEndian;
use object::elf::{
    ELFCLASS32, ELFCLASS64, ELFDATA2LSB, EM_AARCH64, EM_ARM, ET_DYN, ET_EXEC, FileHeader32, FileHeader64,
    Machine, PF_R, PF_W, PF_X, PT_LOAD,
};
use object::read::elf::{FileHeader, ProgramHeader};

use crate::model::Access;

/// Loadable segments an ELF file can have here.
pub(crate) const MAX_SEGMENTS: usize = 32;
/// Bytes of a cache line, as far as the layout of a payload is concerned.
const SEGMENT_ALIGN: u64 = 64;

/// A loadable segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Segment {
    pub guest: u64,
    /// Bytes in memory.
    pub size: u64,
    /// Where its contents start in the blob.
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
    /// First instruction, as a physical address.
    pub entry: u64,
    /// For AArch32 state.
    pub aarch32: bool,
}

/// Why a file cannot be loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ElfError {
    /// For something that this class does not run.
    Machine(String),
    Damaged(String),
}

pub(crate) fn is_elf(bytes: &[u8]) -> bool {
    bytes.starts_with(b"\x7fELF")
}

pub(super) fn damaged(what: impl Into<String>) -> ElfError {
    ElfError::Damaged(what.into())
}

/// Takes an ELF file for Arm apart, 64-bit or 32-bit.
///
/// # Errors
/// [`ElfError`].
pub(crate) fn parse(bytes: &[u8]) -> Result<Program, ElfError> {
    let [class, data] = bytes
        .get(4..6)
        .and_then(|ident| ident.try_into().ok())
        .ok_or_else(|| damaged("it ends within its header"))?;
    if data != ELFDATA2LSB.0 {
        return Err(ElfError::Machine("it is a big-endian ELF file".to_owned()));
    }
    if class == ELFCLASS64.0 {
        parse_class::<FileHeader64<LittleEndian>>(bytes, EM_AARCH64)
    } else if class == ELFCLASS32.0 {
        parse_class::<FileHeader32<LittleEndian>>(bytes, EM_ARM)
    } else {
        Err(damaged("its class is neither 32 nor 64 bits"))
    }
}

fn parse_class<H: FileHeader<Endian = LittleEndian>>(
    bytes: &[u8],
    machine: Machine,
) -> Result<Program, ElfError> {
    let header = check_header::<H>(bytes, machine)?;
    let endian = LittleEndian;
    let headers = header
        .program_headers(endian, bytes)
        .map_err(|_| damaged("its program headers are not in the file"))?;
    let mut program = Program {
        segments: Vec::new(),
        blob: Vec::new(),
        entry: 0,
        aarch32: machine == EM_ARM,
    };
    let start: u64 = header.e_entry(endian).into();
    // Bit 0 of an AArch32 entry says T32; the instruction is at the even address.
    let thumb = if program.aarch32 { start & 1 } else { 0 };
    let start = start - thumb;
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
            entry = entry.or(Some((guest + within) | thumb));
        }
        // As far from a cache line's beginning as in memory, so that the loader copies lines, not bytes.
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

fn check_header<H: FileHeader<Endian = LittleEndian>>(
    bytes: &[u8],
    expected: Machine,
) -> Result<&H, ElfError> {
    let header =
        H::parse(bytes).map_err(|_| damaged("it ends within its header, or the header is not ELF's"))?;
    let machine = header.e_machine(LittleEndian);
    if machine != expected {
        return Err(ElfError::Machine(format!(
            "it is an ELF file for machine {} ({})",
            machine.0,
            machine_name(machine.0)
        )));
    }
    match header.e_type(LittleEndian) {
        ET_EXEC | ET_DYN => Ok(header),
        _ => Err(ElfError::Machine(
            "it is not a linked program (an object file or a core dump)".to_owned(),
        )),
    }
}

pub(super) fn machine_name(number: u16) -> &'static str {
    match number {
        3 => "x86",
        8 => "MIPS",
        20 => "PowerPC",
        40 => "32-bit Arm",
        62 => "x86-64",
        183 => "64-bit Arm",
        243 => "RISC-V",
        _ => "not Arm",
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
