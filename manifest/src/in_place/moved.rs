// SPDX-License-Identifier: Apache-2.0
//! Moves the ELF file of a position-independent program to another address.
//!
//! Nothing is translated, so two copies of one program need two places. A position-independent program finds
//! its own code and variables by their distance. Its remaining words with addresses, in its vector table for
//! example, have a relocation each (R_ARM_RELATIVE; Arm IHI 0044, section 4.6.1.12). The result is the file
//! that the linker would have written for the other address: all of it has moved by one distance, code and
//! RAM alike. So the readers of programs need not know of it.

use std::borrow::Cow;
use std::collections::BTreeSet;

use object::elf::{
    DF_1_PIE, DT_FLAGS_1, DT_JMPREL, DT_NEEDED, DT_PLTRELSZ, DT_REL, DT_RELA, DT_RELR, DT_RELSZ, Dyn32,
    DynamicTag, ET_DYN, ET_EXEC, PT_LOAD, R_ARM_NONE, R_ARM_RELATIVE, Rel32, SHF_ALLOC, SHN_ABS, SHN_UNDEF,
    SHT_SYMTAB,
};
use object::read::elf::{Dyn as _, FileHeader, ProgramHeader, SectionHeader, Sym};

use super::firmware::{ENDIAN, FirmwareError, Header, Segment, check_header, skip_headers};
use crate::payload::elf::damaged;

/// Offsets of addresses in the header of the file, in a program header, in a section header and in a symbol
/// (System V ABI, chapters 4 and 5).
const E_TYPE: usize = 16;
const E_ENTRY: usize = 24;
const P_VADDR: usize = 8;
const P_PADDR: usize = 12;
const SH_ADDR: usize = 12;
const ST_VALUE: usize = 4;
/// Bytes of a relocation without an addend.
const REL: usize = size_of::<Rel32<object::LittleEndian>>();

/// Returns the ELF file of a program whose contents begin at `address`, and the distance by which it has
/// moved. Without an address it stays where it is linked.
///
/// # Errors
/// [`FirmwareError::Fixed`] with the reason, or the file is damaged.
pub(crate) fn to(bytes: &[u8], address: Option<u64>) -> Result<(Cow<'_, [u8]>, u32), FirmwareError> {
    let header = check_header(bytes)?;
    let is_shared = header.e_type(ENDIAN) == ET_DYN;
    if address.is_none() && !is_shared {
        return Ok((Cow::Borrowed(bytes), 0));
    }
    let file = File::read(header, bytes)?;
    if !is_shared && file.dynamic(DT_FLAGS_1).map_or(0, u64::from) & DF_1_PIE.0 == 0 {
        return Err(fixed("it is linked to fixed addresses"));
    }
    let by = match address {
        Some(address) => file.distance(address)?,
        None => 0,
    };
    let mut moved = bytes.to_vec();
    file.relocate(by, &mut moved)?;
    file.move_headers(by, &mut moved)?;
    if let Some(kind) = moved.get_mut(E_TYPE..E_TYPE + 2) {
        kind.copy_from_slice(&ET_EXEC.0.to_le_bytes());
    }
    Ok((Cow::Owned(moved), by))
}

fn fixed(why: impl Into<String>) -> FirmwareError {
    FirmwareError::Fixed(why.into())
}

/// Adds a distance to the word at an offset.
fn add(bytes: &mut [u8], at: usize, by: u32) -> Result<(), FirmwareError> {
    let word = bytes.get_mut(at..).and_then(|rest| rest.first_chunk_mut::<4>());
    let word = word.ok_or_else(|| damaged("an address is not in the file"))?;
    *word = u32::from_le_bytes(*word).wrapping_add(by).to_le_bytes();
    Ok(())
}

/// The headers of a file.
struct File<'a> {
    header: &'a Header,
    bytes: &'a [u8],
    segments: &'a [Segment],
    dynamic: &'a [Dyn32<object::LittleEndian>],
}

impl<'a> File<'a> {
    fn read(header: &'a Header, bytes: &'a [u8]) -> Result<Self, FirmwareError> {
        let segments = header
            .program_headers(ENDIAN, bytes)
            .map_err(|_| damaged("its program headers are not in the file"))?;
        let dynamic = segments
            .iter()
            .find_map(|segment| segment.dynamic(ENDIAN, bytes).transpose())
            .transpose()
            .map_err(|_| damaged("its dynamic section is not in the file"))?;
        Ok(Self {
            header,
            bytes,
            segments,
            dynamic: dynamic.unwrap_or(&[]),
        })
    }

    /// Returns the value of an entry of the dynamic section.
    fn dynamic(&self, tag: DynamicTag) -> Option<u32> {
        let found = self.dynamic.iter().find(|entry| entry.d_tag(ENDIAN) == tag)?;
        Some(found.d_val(ENDIAN))
    }

    /// Returns the segments with contents.
    fn filled(&self) -> impl Iterator<Item = &'a Segment> {
        let loaded = |segment: &&Segment| segment.p_type(ENDIAN) == PT_LOAD && segment.p_filesz(ENDIAN) > 0;
        self.segments.iter().filter(loaded)
    }

    fn sections(&self) -> Result<&'a [object::elf::SectionHeader32<object::LittleEndian>], FirmwareError> {
        let sections = self.header.section_headers(ENDIAN, self.bytes);
        Ok(sections.map_err(|_| damaged("its section headers are not in the file"))?)
    }

    /// Returns the distance to `address` from the place for which the program is linked.
    fn distance(&self, address: u64) -> Result<u32, FirmwareError> {
        let sections = self.sections()?;
        let first = self
            .filled()
            .map(|segment| u64::from(segment.p_paddr(ENDIAN)) + skip_headers(segment, sections))
            .min()
            .ok_or_else(|| damaged("it has no contents"))?;
        let address = u32::try_from(address).map_err(|_| fixed("its new address is beyond 4G"))?;
        let by = address.wrapping_sub(first as u32);
        let loaded = sections
            .iter()
            .filter(|section| section.sh_flags(ENDIAN).contains(SHF_ALLOC));
        let unit = loaded
            .map(|section| section.sh_addralign(ENDIAN))
            .max()
            .unwrap_or(1)
            .max(1);
        if !by.is_multiple_of(unit) {
            return Err(fixed(format!(
                "it is linked to {first:#x}, and can be moved by a multiple of {unit} bytes"
            )));
        }
        Ok(by)
    }

    /// Returns the offset in the file of the word at an address.
    fn offset(&self, address: u32) -> Result<usize, FirmwareError> {
        let within = |segment: &Segment| {
            let at = address.checked_sub(segment.p_vaddr(ENDIAN))?;
            let has = at
                .checked_add(4)
                .is_some_and(|end| end <= segment.p_filesz(ENDIAN));
            has.then_some(segment.p_offset(ENDIAN) as usize + at as usize)
        };
        let offset = self.filled().find_map(within);
        Ok(offset.ok_or_else(|| damaged(format!("it has no contents to relocate at {address:#x}")))?)
    }

    /// Adds the distance to each word that has a relocation.
    fn relocate(&self, by: u32, moved: &mut [u8]) -> Result<(), FirmwareError> {
        let others = [
            (DT_NEEDED, "it needs a library that is loaded with it"),
            (DT_RELA, "its relocations have addends of their own (RELA)"),
            (DT_RELR, "its relocations are packed (RELR)"),
        ];
        if let Some((_, why)) = others.iter().find(|(tag, _)| self.dynamic(*tag).is_some()) {
            return Err(fixed(*why));
        }
        let mut relocated = BTreeSet::new();
        for (table, size) in [(DT_REL, DT_RELSZ), (DT_JMPREL, DT_PLTRELSZ)] {
            let (Some(table), Some(size)) = (self.dynamic(table), self.dynamic(size)) else {
                continue;
            };
            for at in (0..size as usize).step_by(REL).filter(|_| size > 0) {
                let entry = table.saturating_add(at as u32);
                let (address, kind) = self.relocation(self.offset(entry)?)?;
                if !relocated.insert(address) {
                    return Err(damaged(format!("its word at {address:#x} has two relocations")).into());
                }
                self.relocate_one(address, kind, by, moved)?;
            }
        }
        Ok(())
    }

    /// Returns the address and the type of the relocation at an offset in the file.
    fn relocation(&self, at: usize) -> Result<(u32, u32), FirmwareError> {
        let entry = self.bytes.get(at..).and_then(|rest| rest.first_chunk::<REL>());
        let [o0, o1, o2, o3, kind, ..] = *entry.ok_or_else(|| damaged("a relocation is not in the file"))?;
        Ok((u32::from_le_bytes([o0, o1, o2, o3]), kind.into()))
    }

    /// Carries out a relocation.
    fn relocate_one(&self, address: u32, kind: u32, by: u32, moved: &mut [u8]) -> Result<(), FirmwareError> {
        match kind {
            kind if kind == R_ARM_NONE.0 => Ok(()),
            kind if kind == R_ARM_RELATIVE.0 => add(moved, self.offset(address)?, by),
            kind => Err(fixed(format!(
                "its word at {address:#x} has a relocation of type {kind}, and only R_ARM_RELATIVE is known"
            ))),
        }
    }

    /// Moves what the headers and the symbols say. The other tables of the dynamic section stay: no part of
    /// the tool reads them any more.
    fn move_headers(&self, by: u32, moved: &mut [u8]) -> Result<(), FirmwareError> {
        add(moved, E_ENTRY, by)?;
        let step = usize::from(self.header.e_phentsize(ENDIAN));
        for index in 0..self.segments.len() {
            let at = self.header.e_phoff(ENDIAN) as usize + step * index;
            add(moved, at + P_VADDR, by)?;
            add(moved, at + P_PADDR, by)?;
        }
        let step = usize::from(self.header.e_shentsize(ENDIAN));
        for (index, section) in self.sections()?.iter().enumerate() {
            if section.sh_flags(ENDIAN).contains(SHF_ALLOC) {
                add(
                    moved,
                    self.header.e_shoff(ENDIAN) as usize + step * index + SH_ADDR,
                    by,
                )?;
            }
        }
        self.move_symbols(by, moved)
    }

    fn move_symbols(&self, by: u32, moved: &mut [u8]) -> Result<(), FirmwareError> {
        for section in self.sections()? {
            if section.sh_type(ENDIAN) != SHT_SYMTAB {
                continue;
            }
            let symbols: &[object::elf::Sym32<object::LittleEndian>] = section
                .data_as_array(ENDIAN, self.bytes)
                .map_err(|_| damaged("its symbol table is not in the file"))?;
            for (index, symbol) in symbols.iter().enumerate() {
                if ![SHN_UNDEF, SHN_ABS].contains(&symbol.st_shndx(ENDIAN)) {
                    let at = section.sh_offset(ENDIAN) as usize + size_of_val(symbol) * index;
                    add(moved, at + ST_VALUE, by)?;
                }
            }
        }
        Ok(())
    }
}
