// SPDX-License-Identifier: Apache-2.0
//! The flashable file of class `ppc405`: one ELF file, the most significant byte first, with the class binary
//! and the system image after the symbol `__image_end`. QEMU's `-kernel` loads it unchanged, and so does any
//! boot loader that takes ELF files.

use object::BigEndian;
use object::elf::{EM_PPC, ET_EXEC, FileHeader32};
use object::read::elf::FileHeader;

use super::CLASS;
use crate::board::Board;
use crate::class_binary::{ClassBinary, END_SYMBOL, FlashError, Marks, not_elf, stretches, symbol};
use crate::payload::Stretch;
use crate::units::PAGE;
use crate::window::Window;

/// Bytes of the header of an ELF file of 32 bits, and of a program header (System V ABI, chapter 4).
const HEADER_LEN: usize = 52;
const PROGRAM_HEADER_LEN: usize = 32;
/// Flags of a program header: everything is allowed.
const ALL: u32 = 7;
const ENDIAN: BigEndian = BigEndian;

type Header = FileHeader32<BigEndian>;

pub(super) fn is_for_us(elf: &[u8]) -> bool {
    Header::parse(elf).is_ok_and(|header| header.e_machine(ENDIAN) == EM_PPC)
}

/// Reads the ELF file `elf`.
pub(super) fn read(elf: &[u8]) -> Result<ClassBinary, FlashError> {
    let header = Header::parse(elf).map_err(not_elf)?;
    let end = symbol(header, ENDIAN, elf, END_SYMBOL)?;
    let stretches = stretches(header, ENDIAN, elf, end)?;
    if !end.is_multiple_of(PAGE) {
        return Err(FlashError::BadEnd(end));
    }
    Ok(ClassBinary {
        class: CLASS,
        stretches,
        entry: header.e_entry(ENDIAN),
        end,
        ram: Window::default(),
        marks: Marks::read(header, ENDIAN, elf),
    })
}

/// Returns the flashable file. The board must have the address that the class binary is linked for.
pub(super) fn flash(binary: &ClassBinary, image: &[u8], board: &Board) -> Result<Vec<u8>, FlashError> {
    let (linked, board) = (binary.start(), board.load_address);
    if linked != board {
        return Err(FlashError::Elsewhere { linked, board });
    }
    Ok(write(binary, image))
}

fn write(binary: &ClassBinary, image: &[u8]) -> Vec<u8> {
    let image = Stretch {
        address: binary.end,
        bytes: image.to_vec(),
    };
    let all: Vec<&Stretch> = binary.stretches.iter().chain([&image]).collect();
    let mut out = header(binary.entry, all.len());
    let mut at = HEADER_LEN + PROGRAM_HEADER_LEN * all.len();
    for stretch in &all {
        let (offset, size) = (at.next_multiple_of(4), stretch.bytes.len());
        let address = stretch.address as u32;
        let words = [
            1,
            offset as u32,
            address,
            address,
            size as u32,
            size as u32,
            ALL,
            4,
        ];
        out.extend(words.iter().flat_map(|word: &u32| word.to_be_bytes()));
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
    let mut out = b"\x7fELF\x01\x02\x01".to_vec();
    out.resize(16, 0);
    let halves =
        |out: &mut Vec<u8>, values: &[u16]| out.extend(values.iter().flat_map(|value| value.to_be_bytes()));
    let words =
        |out: &mut Vec<u8>, values: &[u32]| out.extend(values.iter().flat_map(|value| value.to_be_bytes()));
    halves(&mut out, &[ET_EXEC.0, EM_PPC.0]);
    words(&mut out, &[1, entry, HEADER_LEN as u32, 0, 0]);
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
