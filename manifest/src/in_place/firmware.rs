// SPDX-License-Identifier: Apache-2.0
//! ELF files of a class that executes code where it is linked.
//!
//! The contents of a segment lie at its physical address. In code memory they stay there, initial values of
//! variables included, which the program's own start-up copies, as on the bare board. In RAM the hypervisor
//! puts them there at every start. The addresses that a segment occupies at its virtual address are memory
//! that the program uses. Section headers say what is executable, and mapping symbols say what is an
//! instruction. Without both nothing can be rewritten, and a class that replaces instructions refuses the
//! file.
//!
//! The vector table (Arm DDI 0403E, section B1.5.3) is at the beginning of the contents in code memory,
//! unless the manifest says otherwise.

use std::collections::BTreeMap;

use object::LittleEndian;
use object::elf::{
    ELFCLASS64, EM_ARM, ET_DYN, ET_EXEC, FileHeader32, PF_X, PT_LOAD, ProgramHeader32, SHF_ALLOC,
    SHF_EXECINSTR, SHT_NOBITS, SHT_SYMTAB, STT_FUNC, STT_OBJECT, SectionHeader32, Sym32,
};
use object::read::elf::{FileHeader, ProgramHeader, SectionHeader, Sym};

use super::section::{Contents, Instructions, Refusals, Rewritten, Section};
use super::untold::{self, Names};
use crate::board::Board;
use crate::guest::DebuggerCall;
use crate::payload::Stretch;
use crate::payload::elf::{ElfError, damaged, machine_name};
use crate::payload::hex::HexError;
use crate::window::Window;

/// Number of loadable segments that an ELF file can have here.
const MAX_SEGMENTS: usize = 32;
/// Bytes that a vector table has at least: initial stack pointer and reset handler.
const LEAST_VECTORS: u64 = 8;

/// A program in place.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Firmware {
    /// Contents of code memory, rewritten, in ascending order.
    pub code: Vec<Stretch>,
    /// RAM that the program uses, by its own account.
    pub ram: Vec<Window>,
    /// Contents that are put into RAM at every start.
    pub data: Vec<Stretch>,
    pub rewritten: Rewritten,
    /// The distance by which the program was moved from the place for which it is linked.
    pub moved_by: u32,
    /// True if the file does not say which RAM the program uses.
    pub is_silent: bool,
}

/// The reason why a program cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum FirmwareError {
    Elf(ElfError),
    /// A record of a file of Intel HEX is wrong.
    Hex(HexError),
    /// Contents, or memory of a segment, are neither in code memory nor in RAM.
    Outside {
        what: String,
        address: u64,
        size: u64,
    },
    /// The program cannot be moved from the place for which it is linked.
    Fixed(String),
    /// Code and data cannot be told apart, or an instruction cannot be replaced.
    Refused(Refusals),
    /// An image without symbols may have instructions that would have to be replaced.
    Untold(Refusals),
    /// There is no vector table at this address.
    NoVectors {
        address: u64,
        why: String,
    },
}

impl From<ElfError> for FirmwareError {
    fn from(error: ElfError) -> Self {
        Self::Elf(error)
    }
}

pub(super) type Header = FileHeader32<LittleEndian>;
pub(super) type Segment = ProgramHeader32<LittleEndian>;
pub(super) const ENDIAN: LittleEndian = LittleEndian;

/// The first words of a vector table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Vectors {
    pub address: u64,
    /// Initial main stack pointer.
    pub stack: u64,
    /// Reset handler, with bit 0 set.
    pub reset: u64,
}

/// Tells whether one of the stretches holds a window.
fn inside(stretches: &[Window], window: Window) -> bool {
    stretches.iter().any(|other| other.contains(window))
}

impl Firmware {
    /// Adds contents of the board's code memory or RAM. Returns false if they are in neither.
    pub fn add(&mut self, stretch: Stretch, board: &Board) -> bool {
        let window = stretch.window();
        if inside(&board.code, window) {
            self.code.push(stretch);
        } else if inside(&board.ram, window) {
            self.data.push(stretch);
        } else {
            return false;
        }
        true
    }

    /// Returns the vector table at `address`, or at the beginning of the contents of code memory.
    ///
    /// # Errors
    /// [`FirmwareError::NoVectors`].
    pub fn vectors(&self, address: Option<u64>) -> Result<Vectors, FirmwareError> {
        let mut contents = self.code.iter().chain(&self.data);
        let first = contents.next().map_or(0, |stretch| stretch.address);
        let address = address.unwrap_or(first);
        let none = |why: &str| FirmwareError::NoVectors {
            address,
            why: why.to_owned(),
        };
        let word = |at: u64| {
            let holder = self
                .code
                .iter()
                .find(|stretch| stretch.window().contains(Window { base: at, size: 4 }))?;
            let start = (at - holder.address) as usize;
            let bytes = holder.bytes.get(start..start + 4)?;
            Some(u64::from(u32::from_le_bytes(bytes.try_into().ok()?)))
        };
        if self.code.is_empty() {
            return Err(none("it has nothing in code memory, where programs are executed"));
        }
        // VTOR holds no lower bits (Arm DDI 0403E, section B3.2.5).
        if !address.is_multiple_of(128) {
            return Err(none("it is not at a multiple of 128"));
        }
        let (Some(stack), Some(reset)) = (word(address), word(address + 4)) else {
            return Err(none("the program has nothing there"));
        };
        if word(address + LEAST_VECTORS - 4).is_none() || reset & 1 == 0 {
            return Err(none("its second word is not the address of T32 code"));
        }
        let handler = Window {
            base: reset & !1,
            size: 2,
        };
        if !self.code.iter().any(|stretch| stretch.window().contains(handler)) {
            let why = format!("its second word, {reset:#x}, does not lead to code of the program");
            return Err(none(&why));
        }
        if !stack.is_multiple_of(4) || stack == 0 {
            return Err(none("its first word is no stack pointer"));
        }
        Ok(Vectors {
            address,
            stack,
            reset,
        })
    }
}

/// Takes the ELF file of an M-profile CPU apart, and rewrites its code if the class replaces instructions.
///
/// # Errors
/// [`FirmwareError`].
pub(crate) fn parse(
    bytes: &[u8],
    board: &Board,
    instructions: Option<&dyn Instructions>,
) -> Result<Firmware, FirmwareError> {
    let Taken {
        header,
        loaded,
        mut firmware,
    } = take_apart(bytes, board)?;
    if let Some(instructions) = instructions {
        replace(header, bytes, &loaded, instructions, &mut firmware)?;
    }
    Ok(firmware)
}

/// Takes the ELF file of a task apart. A task has no processor of its own that an instruction could be about,
/// so no instruction is replaced. Also returns the entry point as the file has it, bit 0 set for T32 code.
///
/// # Errors
/// [`FirmwareError`].
pub(crate) fn parse_task(bytes: &[u8], board: &Board) -> Result<(Firmware, u64), FirmwareError> {
    let taken = take_apart(bytes, board)?;
    Ok((taken.firmware, taken.header.e_entry(ENDIAN).into()))
}

/// An ELF file whose segments are in their places.
struct Taken<'a> {
    header: &'a Header,
    loaded: Vec<&'a Segment>,
    firmware: Firmware,
}

fn take_apart<'a>(bytes: &'a [u8], board: &Board) -> Result<Taken<'a>, FirmwareError> {
    let header = check_header(bytes)?;
    let segments = header
        .program_headers(ENDIAN, bytes)
        .map_err(|_| damaged("its program headers are not in the file"))?;
    let loaded: Vec<&Segment> = segments
        .iter()
        .filter(|segment| segment.p_type(ENDIAN) == PT_LOAD && segment.p_memsz(ENDIAN) > 0)
        .collect();
    if loaded.len() > MAX_SEGMENTS {
        return Err(damaged(format!("it has more than {MAX_SEGMENTS} loadable segments")).into());
    }
    let sections = header
        .section_headers(ENDIAN, bytes)
        .map_err(|_| damaged("its section headers are not in the file"))?;
    let mut firmware = Firmware::default();
    for (index, segment) in loaded.iter().enumerate() {
        place(index, segment, sections, bytes, board, &mut firmware)?;
    }
    for part in [&mut firmware.code, &mut firmware.data] {
        part.sort_by_key(|stretch| stretch.address);
        if let Some(pair) = part
            .windows(2)
            .find(|pair| pair[0].window().overlaps(pair[1].window()))
        {
            return Err(damaged(format!("its segments overlap at {:#x}", pair[1].address)).into());
        }
    }
    Ok(Taken {
        header,
        loaded,
        firmware,
    })
}

pub(super) fn check_header(bytes: &[u8]) -> Result<&Header, ElfError> {
    if bytes.get(4) == Some(&ELFCLASS64.0) {
        return Err(ElfError::Machine("it is an ELF file for a 64-bit CPU".to_owned()));
    }
    let header = Header::parse(bytes).map_err(|_| damaged("its header is not that of a 32-bit ELF file"))?;
    let machine = header.e_machine(ENDIAN);
    if header.endian().is_err() || machine != EM_ARM {
        return Err(ElfError::Machine(format!(
            "it is an ELF file for machine {} ({})",
            machine.0,
            machine_name(machine.0)
        )));
    }
    if ![ET_EXEC, ET_DYN].contains(&header.e_type(ENDIAN)) {
        return Err(ElfError::Machine("it is not linked".to_owned()));
    }
    Ok(header)
}

/// Returns the length of the file's own headers at the start of a segment, which are not contents.
pub(super) fn skip_headers(segment: &Segment, sections: &[SectionHeader32<LittleEndian>]) -> u64 {
    let start = segment.p_offset(ENDIAN);
    if start != 0 {
        return 0;
    }
    let end = start.saturating_add(segment.p_filesz(ENDIAN));
    let inside = sections
        .iter()
        .filter(|section| {
            section.sh_flags(ENDIAN).contains(SHF_ALLOC) && section.sh_type(ENDIAN) != SHT_NOBITS
        })
        .map(|section| section.sh_offset(ENDIAN))
        .filter(|offset| (start..end).contains(offset));
    inside.min().map_or(0, |first| u64::from(first - start))
}

fn place(
    index: usize,
    segment: &Segment,
    sections: &[SectionHeader32<LittleEndian>],
    bytes: &[u8],
    board: &Board,
    firmware: &mut Firmware,
) -> Result<(), FirmwareError> {
    let skipped = skip_headers(segment, sections);
    let contents = segment
        .data(ENDIAN, bytes)
        .map_err(|()| damaged(format!("the contents of its segment {index} are not in the file")))?;
    let contents = contents.get(skipped as usize..).unwrap_or(&[]);
    let window = |base: u32, size: u64| Window {
        base: u64::from(base) + skipped,
        size,
    };
    let filled = window(segment.p_paddr(ENDIAN), contents.len() as u64);
    let occupied = window(
        segment.p_vaddr(ENDIAN),
        u64::from(segment.p_memsz(ENDIAN)).saturating_sub(skipped),
    );
    for window in [filled, occupied].into_iter().filter(|window| window.size > 0) {
        if !inside(&board.code, window) && !inside(&board.ram, window) {
            return Err(FirmwareError::Outside {
                what: format!("segment {index}"),
                address: window.base,
                size: window.size,
            });
        }
    }
    if !contents.is_empty() {
        firmware.add(
            Stretch {
                address: filled.base,
                bytes: contents.to_vec(),
            },
            board,
        );
    }
    if occupied.size > 0 && inside(&board.ram, occupied) {
        firmware.ram.push(occupied);
    }
    Ok(())
}

/// Rewrites the executable sections that are in code memory.
fn replace(
    header: &Header,
    bytes: &[u8],
    loaded: &[&Segment],
    instructions: &dyn Instructions,
    firmware: &mut Firmware,
) -> Result<(), FirmwareError> {
    let mut refusals = Refusals::new();
    for section in executable(header, bytes, loaded)? {
        let window = Window {
            base: u64::from(section.address),
            size: section.bytes.len() as u64,
        };
        let Some(stretch) = firmware
            .code
            .iter_mut()
            .find(|stretch| stretch.window().contains(window))
        else {
            // Nothing in RAM is executed, not even a section of code.
            continue;
        };
        let start = (window.base - stretch.address) as usize;
        let target = &mut stretch.bytes[start..start + section.bytes.len()];
        instructions.replace(&section, target, &mut firmware.rewritten, &mut refusals);
    }
    for (index, segment) in loaded.iter().enumerate() {
        unspoken_for(index, segment, header, bytes, &mut refusals)?;
    }
    firmware.rewritten.sites.sort_unstable();
    firmware.rewritten.undefined.sort_unstable();
    firmware.rewritten.semihosting.sort_unstable();
    if refusals.is_empty() {
        Ok(())
    } else {
        Err(FirmwareError::Refused(refusals))
    }
}

/// Returns the addresses, ascending, at which the finished contents of code memory look like a replaced
/// instruction, without the replaced ones themselves (`sites`, ascending). The target takes all others for
/// replaced.
pub(crate) fn lookalikes(code: &[Stretch], sites: &[u32], instructions: &dyn Instructions) -> Vec<u32> {
    let mut found: Vec<u32> = code
        .iter()
        .flat_map(|stretch| instructions.lookalikes(stretch.address as u32, &stretch.bytes))
        .filter(|address| sites.binary_search(address).is_err())
        .collect();
    found.sort_unstable();
    found
}

/// Returns the first call of a debugger that the finished contents of code memory have: an instruction, or
/// else bits that are a call if the program jumps to them.
pub(crate) fn debugger_call(firmware: &Firmware, instructions: &dyn Instructions) -> Option<DebuggerCall> {
    if let Some(address) = firmware.rewritten.semihosting.first() {
        return Some(DebuggerCall::Instruction(*address));
    }
    let mut code = firmware.code.iter();
    let hidden = code.find_map(|stretch| instructions.debugger_call(stretch.address as u32, &stretch.bytes));
    hidden.map(DebuggerCall::Hidden)
}

/// Refuses contents of an executable segment that belong to no section, except for the filling of gaps.
fn unspoken_for(
    index: usize,
    segment: &Segment,
    header: &Header,
    bytes: &[u8],
    refusals: &mut Refusals,
) -> Result<(), FirmwareError> {
    if !segment.p_flags(ENDIAN).contains(PF_X) {
        return Ok(());
    }
    let sections = header
        .section_headers(ENDIAN, bytes)
        .map_err(|_| damaged("its section headers are not in the file"))?;
    let start = u64::from(segment.p_offset(ENDIAN)) + skip_headers(segment, sections);
    let end = u64::from(segment.p_offset(ENDIAN)) + u64::from(segment.p_filesz(ENDIAN));
    let mut spoken: Vec<(u64, u64)> = sections
        .iter()
        .filter(|section| {
            section.sh_flags(ENDIAN).contains(SHF_ALLOC) && section.sh_type(ENDIAN) != SHT_NOBITS
        })
        .map(|section| {
            let first = u64::from(section.sh_offset(ENDIAN));
            (first, first + u64::from(section.sh_size(ENDIAN)))
        })
        .collect();
    spoken.sort_unstable();
    // One pass through both lists: the gap before each section, and the gap after the last one.
    let mut at = start;
    let mut gaps = Vec::new();
    for (first, last) in spoken.into_iter().chain([(end, end)]) {
        if first > at {
            gaps.push(at..first.min(end));
        }
        at = at.max(last);
    }
    let nonzero = |at: &u64| bytes.get(*at as usize).is_some_and(|byte| *byte != 0);
    if let Some(at) = gaps.into_iter().flatten().find(nonzero) {
        refusals.push(format!(
            "{:#010x} in segment {index}: no section header says whether this is code or data",
            u64::from(segment.p_paddr(ENDIAN)) + (at - u64::from(segment.p_offset(ENDIAN)))
        ));
    }
    Ok(())
}

/// Returns the sections with code, at their physical addresses, with their mapping symbols. These are the
/// executable sections, and those data sections in which a symbol says that there is code.
fn executable<'a>(
    header: &Header,
    bytes: &'a [u8],
    loaded: &[&Segment],
) -> Result<Vec<Section<'a>>, FirmwareError> {
    let sections = header
        .sections(ENDIAN, bytes)
        .map_err(|_| damaged("its section headers are not in the file"))?;
    let symbols = sections
        .symbols(ENDIAN, bytes, SHT_SYMTAB)
        .map_err(|_| damaged("its symbol table is not in the file"))?;
    // By section, so that the work is not the number of sections times the number of symbols.
    let mut maps: BTreeMap<usize, (Vec<(u32, Contents)>, Names)> = BTreeMap::new();
    for symbol in symbols.iter() {
        let (map, names) = maps.entry(usize::from(symbol.st_shndx(ENDIAN).0)).or_default();
        let (value, size) = (symbol.st_value(ENDIAN), symbol.st_size(ENDIAN));
        if let Some(mapping) = mapping(symbol, symbols.strings())? {
            map.push(mapping);
        } else if symbol.st_type() == STT_FUNC {
            // Bit 0 stands for T32.
            names.functions.push((value & !1, size));
        } else if symbol.st_type() == STT_OBJECT {
            names.variables.push((value, size));
        }
    }
    let mut found = Vec::new();
    for (index, section) in sections.enumerate() {
        let flags = section.sh_flags(ENDIAN);
        let (mut map, names) = maps.remove(&index.0).unwrap_or_default();
        let is_executable = flags.contains(SHF_EXECINSTR);
        let has_code = is_executable || map.iter().any(|(_, contents)| *contents != Contents::Data);
        let is_empty = section.sh_type(ENDIAN) == SHT_NOBITS || section.sh_size(ENDIAN) == 0;
        if !flags.contains(SHF_ALLOC) || !has_code || is_empty {
            continue;
        }
        let contents = section
            .data(ENDIAN, bytes)
            .map_err(|_| damaged("the contents of a section are not in the file"))?;
        let name = section_name(&sections, section);
        let Some(holder) = holder(section, &name, loaded)? else {
            continue;
        };
        let address = holder
            .p_paddr(ENDIAN)
            .wrapping_add(section.sh_offset(ENDIAN) - holder.p_offset(ENDIAN));
        let moved = address.wrapping_sub(section.sh_addr(ENDIAN));
        for (address, _) in &mut map {
            *address = address.wrapping_add(moved);
        }
        // Everything in a data section is data unless a symbol says that it is code.
        if !is_executable {
            map.insert(0, (address, Contents::Data));
        }
        map.sort_by_key(|(address, _)| *address);
        let end = address.saturating_add(contents.len() as u32);
        let map = untold::tell(&map, names.moved(moved), address..end);
        found.push(Section {
            name,
            address,
            bytes: contents,
            map,
        });
    }
    // Two overlapping sections would be two programs in one place.
    found.sort_by_key(|section| section.address);
    let end = |section: &Section<'_>| u64::from(section.address) + section.bytes.len() as u64;
    if let Some(pair) = found
        .windows(2)
        .find(|pair| end(&pair[0]) > u64::from(pair[1].address))
    {
        let (one, other) = (&pair[0].name, &pair[1].name);
        return Err(damaged(format!("its {one} and its {other} overlap")).into());
    }
    Ok(found)
}

/// Returns the segment that holds a section with contents, if there is one. The segment must hold all of the
/// section: a part outside would stay as it is and be executed.
fn holder<'a>(
    section: &SectionHeader32<LittleEndian>,
    name: &str,
    loaded: &[&'a Segment],
) -> Result<Option<&'a Segment>, ElfError> {
    let within = file_range(section.sh_offset(ENDIAN), section.sh_size(ENDIAN));
    let in_file = |segment: &Segment| file_range(segment.p_offset(ENDIAN), segment.p_filesz(ENDIAN));
    let mut holders = loaded.iter().filter(|segment| {
        let all = in_file(segment);
        all.start < within.end && within.start < all.end
    });
    let Some(holder) = holders.next() else {
        return Ok(None);
    };
    if holders.next().is_some() {
        return Err(damaged(format!("its {name} is in several segments")));
    }
    let all = in_file(holder);
    if within.start < all.start || within.end > all.end {
        return Err(damaged(format!("its {name} is larger than the segment it is in")));
    }
    Ok(Some(holder))
}

fn file_range(offset: u32, size: u32) -> std::ops::Range<u64> {
    u64::from(offset)..u64::from(offset) + u64::from(size)
}

fn section_name(
    sections: &object::read::elf::SectionTable<'_, Header>,
    section: &SectionHeader32<LittleEndian>,
) -> String {
    let name = sections.section_name(ENDIAN, section).unwrap_or_default();
    format!("section `{}`", String::from_utf8_lossy(name))
}

/// Returns the address and the contents of a mapping symbol: `$t`, `$d`, `$a`, perhaps with a suffix after a
/// full stop. A symbol whose name cannot be read might say that constants are no code: the file is refused.
fn mapping(
    symbol: &Sym32<LittleEndian>,
    strings: object::StringTable<'_>,
) -> Result<Option<(u32, Contents)>, FirmwareError> {
    let name = symbol
        .name(ENDIAN, strings)
        .map_err(|_| damaged("the name of a symbol has no end in the table of names"))?;
    let contents = match name {
        [b'$', b't'] | [b'$', b't', b'.', ..] => Contents::Thumb,
        [b'$', b'd'] | [b'$', b'd', b'.', ..] => Contents::Data,
        [b'$', b'a'] | [b'$', b'a', b'.', ..] => Contents::Foreign,
        _ => return Ok(None),
    };
    Ok(Some((symbol.st_value(ENDIAN), contents)))
}
