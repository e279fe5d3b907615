// SPDX-License-Identifier: Apache-2.0
//! ELF files: what to copy where.
//!
//! Only program headers count; a segment goes to its physical address, as firmware would put it. The
//! contents of the loadable segments are packed into one blob without symbols and debug information, so
//! that these do not take space on the target.

use object::LittleEndian;
use object::elf::{
    ELFCLASS64, ELFDATA2LSB, EM_AARCH64, ET_DYN, ET_EXEC, FileHeader64, PF_R, PF_W, PF_X, PT_LOAD,
};
use object::read::elf::{FileHeader, ProgramHeader};

use crate::model::Access;

/// Loadable segments an ELF file can have here.
pub(crate) const MAX_SEGMENTS: usize = 32;

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

fn damaged(what: impl Into<String>) -> ElfError {
    ElfError::Damaged(what.into())
}

/// Takes an ELF file for 64-bit Arm apart.
///
/// # Errors
/// [`ElfError`].
pub(crate) fn parse(bytes: &[u8]) -> Result<Program, ElfError> {
    let header = check_header(bytes)?;
    let endian = LittleEndian;
    let headers = header
        .program_headers(endian, bytes)
        .map_err(|_| damaged("its program headers are not in the file"))?;
    let mut program = Program {
        segments: Vec::new(),
        blob: Vec::new(),
        entry: 0,
    };
    let start = header.e_entry(endian);
    let mut entry = None;
    for segment in headers
        .iter()
        .filter(|segment| segment.p_type(endian) == PT_LOAD && segment.p_memsz(endian) > 0)
    {
        if program.segments.len() == MAX_SEGMENTS {
            return Err(damaged(format!(
                "it has more than {MAX_SEGMENTS} loadable segments"
            )));
        }
        let index = program.segments.len();
        let (guest, size, filled) = (
            segment.p_paddr(endian),
            segment.p_memsz(endian),
            segment.p_filesz(endian),
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
        let within = start.wrapping_sub(segment.p_vaddr(endian));
        if within < size {
            entry = entry.or(Some(guest + within));
        }
        program.segments.push(Segment {
            guest,
            size,
            offset: program.blob.len() as u64,
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

fn check_header(bytes: &[u8]) -> Result<&FileHeader64<LittleEndian>, ElfError> {
    let [class, data] = bytes
        .get(4..6)
        .and_then(|ident| ident.try_into().ok())
        .ok_or_else(|| damaged("it ends within its header"))?;
    if class != ELFCLASS64.0 {
        return Err(ElfError::Machine("it is a 32-bit ELF file".to_owned()));
    }
    if data != ELFDATA2LSB.0 {
        return Err(ElfError::Machine("it is a big-endian ELF file".to_owned()));
    }
    let header = FileHeader64::<LittleEndian>::parse(bytes)
        .map_err(|_| damaged("it ends within its header, or the header is not ELF's"))?;
    let machine = header.e_machine(LittleEndian);
    if machine != EM_AARCH64 {
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

fn machine_name(number: u16) -> &'static str {
    match number {
        3 => "x86",
        8 => "MIPS",
        20 => "PowerPC",
        40 => "32-bit Arm",
        62 => "x86-64",
        243 => "RISC-V",
        _ => "not 64-bit Arm",
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
