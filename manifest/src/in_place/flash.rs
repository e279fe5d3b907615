// SPDX-License-Identifier: Apache-2.0
//! The flashable file of a class that executes code in place: one ELF file with everything at its address.
//!
//! The file has no section headers and one segment per stretch: the stretches of the class binary, the system
//! image after the symbol `__image_end`, the programs of the partitions, and the part of the [reset
//! vectors](RESET_VECTORS) that is in none of these. So any tool that takes ELF files can flash the file, and
//! QEMU's `-kernel` loads it unchanged.

use object::LittleEndian;
use object::elf::{EM_ARM, ET_EXEC, FileHeader32};
use object::read::elf::FileHeader;

use bulkhead_arch_api::ClassFacts;

use super::memory::RESET_VECTORS;
use crate::board::{Board, Class};
use crate::class_binary::{ClassBinary, END_SYMBOL, FlashError, Marks, not_elf, stretches, symbol};
use crate::guest::Guest;
use crate::payload::Stretch;
use crate::window::Window;

/// Symbols at the beginning of the class binary's RAM, where its log is, and at the end of this RAM.
const RAM_SYMBOLS: [&[u8]; 2] = [b"__log_area", b"__ram_end"];
/// Bytes of the header of an ELF file of 32 bits, and of a program header (System V ABI, chapter 4).
const HEADER_LEN: usize = 52;
const PROGRAM_HEADER_LEN: usize = 32;
/// `e_flags`: EABI version 5 (Arm IHI 0044, section 5.2).
const EABI_5: u32 = 0x0500_0000;
const ENDIAN: LittleEndian = LittleEndian;

type Header = FileHeader32<LittleEndian>;

pub(crate) fn is_for_us(elf: &[u8]) -> bool {
    Header::parse(elf).is_ok_and(|header| header.e_machine(ENDIAN) == EM_ARM)
}

/// Reads the ELF file `elf` of a class. The system image starts at a multiple of the class's granule.
pub(crate) fn read(elf: &[u8], facts: &'static ClassFacts) -> Result<ClassBinary, FlashError> {
    let header = Header::parse(elf).map_err(not_elf)?;
    let end = symbol(header, ENDIAN, elf, END_SYMBOL)?;
    let stretches = joined(stretches(header, ENDIAN, elf, end)?);
    if !end.is_multiple_of(facts.granule) {
        return Err(FlashError::BadEnd(end));
    }
    let [base, ram_end] = RAM_SYMBOLS.map(|name| symbol(header, ENDIAN, elf, name));
    let base = base?;
    Ok(ClassBinary {
        class: Class::of(facts),
        stretches,
        entry: header.e_entry(ENDIAN),
        end,
        ram: Window {
            base,
            size: ram_end?.saturating_sub(base),
        },
        marks: Marks::read(header, ENDIAN, elf),
    })
}

/// Returns one stretch with all others and zeros between them. The digest of a signed image is about the
/// bytes between them, too, and a flash that was erased has others there.
fn joined(mut stretches: Vec<Stretch>) -> Vec<Stretch> {
    stretches.sort_by_key(|stretch| stretch.address);
    let mut all: Option<Stretch> = None;
    for stretch in stretches {
        match &mut all {
            Some(all) => {
                let length = usize::try_from(stretch.address.saturating_sub(all.address)).unwrap_or(0);
                all.bytes.resize(length.max(all.bytes.len()), 0);
                all.bytes.extend_from_slice(&stretch.bytes);
            }
            None => all = Some(stretch),
        }
    }
    all.into_iter().collect()
}

/// Returns the words that the CPU reads after a reset (Arm DDI 0403E, sections B1.5.3 and B3.2.5), as far as
/// none of `others` has them: a stack pointer, which the hypervisor does not use, and the address of the
/// first instruction.
fn reset_vectors(binary: &ClassBinary, others: &[&Stretch]) -> Vec<Stretch> {
    let vectors = [[0; 4], binary.entry.to_le_bytes()].concat();
    let mut missing: Vec<Stretch> = Vec::new();
    for (address, byte) in (RESET_VECTORS.base..).zip(vectors) {
        let here = Window {
            base: address,
            size: 1,
        };
        if others.iter().any(|other| other.window().contains(here)) {
            continue;
        }
        match missing.last_mut() {
            Some(last) if last.window().end() == address => last.bytes.push(byte),
            _ => missing.push(Stretch {
                address,
                bytes: vec![byte],
            }),
        }
    }
    missing
}

/// Returns the first bytes that the stretches have at the reset vectors, for another name of this memory.
fn aliased(alias: u64, stretches: &[&Stretch]) -> Stretch {
    let byte = |address| {
        let from = |stretch: &&Stretch| {
            let at = usize::try_from(u64::checked_sub(address, stretch.address)?).ok()?;
            stretch.bytes.get(at).copied()
        };
        stretches.iter().find_map(from).unwrap_or(0)
    };
    let vectors = RESET_VECTORS.base..RESET_VECTORS.end();
    Stretch {
        address: alias,
        bytes: vectors.map(byte).collect(),
    }
}

/// Returns the flashable file: one ELF file of all parts. The board must have the addresses that the class
/// binary is linked for. With `alias`, the CPU reads the reset vectors by another name.
pub(crate) fn flash(
    binary: &ClassBinary,
    image: &[u8],
    board: &Board,
    guests: &[Guest],
    alias: Option<u64>,
) -> Result<Vec<u8>, FlashError> {
    let linked = binary.start();
    if linked != board.load_address {
        let board = board.load_address;
        return Err(FlashError::Elsewhere { linked, board });
    }
    let linked = binary.ram;
    if linked != board.own_ram {
        let board = board.own_ram;
        return Err(FlashError::RamElsewhere { linked, board });
    }
    // The reader of the class binary could not know for which of the classes with such files it is.
    if !binary.end.is_multiple_of(board.class.facts().granule) {
        return Err(FlashError::BadEnd(binary.end));
    }
    let residents: Vec<_> = guests.iter().flat_map(|guest| &guest.residents).collect();
    Ok(write(binary, image, &residents, alias))
}

fn write(binary: &ClassBinary, image: &[u8], residents: &[&Stretch], alias: Option<u64>) -> Vec<u8> {
    let image = Stretch {
        address: binary.end,
        bytes: image.to_vec(),
    };
    let mut all: Vec<&Stretch> = binary
        .stretches
        .iter()
        .chain([&image])
        .chain(residents.iter().copied())
        .collect();
    let vectors = reset_vectors(binary, &all);
    all.extend(&vectors);
    let alias = alias.map(|alias| aliased(alias, &all));
    all.extend(&alias);
    all.sort_by_key(|stretch| stretch.address);
    let mut out = header(binary.entry, all.len());
    let mut at = HEADER_LEN + PROGRAM_HEADER_LEN * all.len();
    for stretch in &all {
        let (offset, size) = (at.next_multiple_of(4), stretch.bytes.len());
        let words = [
            1,
            offset as u32,
            stretch.address as u32,
            stretch.address as u32,
            size as u32,
            size as u32,
            5,
            4,
        ];
        out.extend(words.iter().flat_map(|word| word.to_le_bytes()));
        at = offset + size;
    }
    for stretch in all {
        out.resize(out.len().next_multiple_of(4), 0);
        out.extend_from_slice(&stretch.bytes);
    }
    out
}

/// Returns the header of an executable file with `count` program headers after it and no sections.
fn header(entry: u32, count: usize) -> Vec<u8> {
    let mut out = b"\x7fELF\x01\x01\x01".to_vec();
    out.resize(16, 0);
    let halves =
        |out: &mut Vec<u8>, values: &[u16]| out.extend(values.iter().flat_map(|value| value.to_le_bytes()));
    let words =
        |out: &mut Vec<u8>, values: &[u32]| out.extend(values.iter().flat_map(|value| value.to_le_bytes()));
    halves(&mut out, &[ET_EXEC.0, EM_ARM.0]);
    words(&mut out, &[1, entry, HEADER_LEN as u32, 0, EABI_5]);
    halves(
        &mut out,
        &[
            HEADER_LEN as u16,
            PROGRAM_HEADER_LEN as u16,
            count as u16,
            0,
            0,
            0,
        ],
    );
    out
}
