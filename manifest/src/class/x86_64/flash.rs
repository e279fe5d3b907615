// SPDX-License-Identifier: Apache-2.0
//! The flashable file of class `x86_64`: an ELF file with three program headers.
//!
//! The class binary arrives as the linker's ELF file. It is flattened to its full memory size, bss and stacks
//! included, up to the symbol `__image_end`. One segment has it, and the next one has the system image, right
//! after the class binary in memory. A note (Xen `docs/misc/pvh.pandoc`) names the 32-bit entry point, so
//! that `qemu -kernel` and every other PVH loader can start the file. A header says that GRUB and every other
//! loader of the Multiboot2 Specification (2.0, section 3.1.1) can start the file too: they enter in the same
//! mode.

use object::LittleEndian;
use object::elf::{EM_X86_64, FileHeader64};
use object::read::elf::FileHeader;

use super::CLASS;
use crate::class_binary::{ClassBinary, FlashError, Marks, flatten, not_elf};
use crate::units::PAGE;
use crate::window::Window;

/// Sizes of the headers of an ELF file (System V ABI, 64 bits).
const HEADER: usize = 64;
const PROGRAM_HEADER: usize = 56;
/// Types of segments and their rights.
const LOAD: u32 = 1;
const NOTE: u32 = 4;
const ALL_RIGHTS: u32 = 7;
const READ: u32 = 4;
/// XEN_ELFNOTE_PHYS32_ENTRY.
const ENTRY_NOTE: u32 = 18;
/// Where the note is in the file.
const NOTE_AT: usize = HEADER + 3 * PROGRAM_HEADER;
/// Bytes of the note: three words, a name of four bytes, the entry point.
const NOTE_SIZE: usize = 24;
/// Multiboot2 Specification 2.0, 3.1.1: magic number, architecture (32-bit protected mode of i386), length
/// of the header, checksum, and the tag that ends the header. The header is in the first 32 KiB, at a
/// multiple of 8 bytes.
const MULTIBOOT2: [u32; 6] = {
    let (magic, architecture, length) = (0xE852_50D6_u32, 0, 24);
    let sum = magic.wrapping_add(architecture).wrapping_add(length);
    [magic, architecture, length, sum.wrapping_neg(), 0, 8]
};
const MULTIBOOT2_AT: usize = (NOTE_AT + NOTE_SIZE).next_multiple_of(8);

pub(super) fn is_for_us(elf: &[u8]) -> bool {
    FileHeader64::<LittleEndian>::parse(elf).is_ok_and(|header| header.e_machine(LittleEndian) == EM_X86_64)
}

/// Reads the ELF file `elf`, and flattens it.
pub(super) fn read(elf: &[u8]) -> Result<ClassBinary, FlashError> {
    let header = FileHeader64::<LittleEndian>::parse(elf).map_err(not_elf)?;
    let flat = flatten(header, LittleEndian, elf)?;
    let entry = header.e_entry(LittleEndian);
    Ok(ClassBinary {
        class: CLASS,
        end: flat.window().end(),
        stretches: vec![flat],
        entry: u32::try_from(entry).map_err(|_| FlashError::SegmentOutside(entry))?,
        ram: Window::default(),
        marks: Marks::read(header, LittleEndian, elf),
    })
}

/// A program header, without the virtual address, which is the physical one.
struct Segment {
    kind: u32,
    rights: u32,
    offset: usize,
    address: u64,
    size: usize,
    align: u64,
}

impl Segment {
    fn bytes(&self) -> Vec<u8> {
        let mut out = Vec::new();
        out.extend(self.kind.to_le_bytes());
        out.extend(self.rights.to_le_bytes());
        let size = self.size as u64;
        for word in [
            self.offset as u64,
            self.address,
            self.address,
            size,
            size,
            self.align,
        ] {
            out.extend(word.to_le_bytes());
        }
        out
    }
}

/// Returns the header of an ELF file with three segments: x86-64, linked, little-endian.
fn header(entry: u32) -> Vec<u8> {
    let mut out = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0".to_vec();
    out.extend(2_u16.to_le_bytes());
    out.extend(EM_X86_64.0.to_le_bytes());
    out.extend(1_u32.to_le_bytes());
    for word in [u64::from(entry), HEADER as u64, 0] {
        out.extend(word.to_le_bytes());
    }
    out.extend(0_u32.to_le_bytes());
    for half in [HEADER as u16, PROGRAM_HEADER as u16, 3, 64, 0, 0] {
        out.extend(half.to_le_bytes());
    }
    out
}

/// Returns the class binary followed by `image`.
pub(super) fn join(binary: &ClassBinary, image: &[u8]) -> Vec<u8> {
    let page = PAGE as usize;
    let contents: &[u8] = binary.stretches.first().map_or(&[], |stretch| &stretch.bytes);
    let image_at = page + contents.len();
    let segment = |offset, address, size| Segment {
        kind: LOAD,
        rights: ALL_RIGHTS,
        offset,
        address,
        size,
        align: PAGE,
    };
    let mut out = header(binary.entry);
    out.extend(segment(page, binary.start(), contents.len()).bytes());
    out.extend(segment(image_at, binary.end, image.len()).bytes());
    let note = Segment {
        kind: NOTE,
        rights: READ,
        align: 4,
        ..segment(NOTE_AT, 0, NOTE_SIZE)
    };
    out.extend(note.bytes());
    for word in [4, 8, ENTRY_NOTE] {
        out.extend(word.to_le_bytes());
    }
    out.extend(b"Xen\0");
    out.extend(u64::from(binary.entry).to_le_bytes());
    out.resize(MULTIBOOT2_AT, 0);
    out.extend(MULTIBOOT2.iter().flat_map(|word| word.to_le_bytes()));
    out.resize(page, 0);
    out.extend_from_slice(contents);
    out.extend_from_slice(image);
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::payload::Stretch;
    use object::read::elf::ProgramHeader;

    #[test]
    fn the_file_is_an_elf_file_with_a_note_that_a_loader_finds() {
        let binary = ClassBinary {
            class: CLASS,
            stretches: vec![Stretch {
                address: 0x20_0000,
                bytes: vec![7; PAGE as usize],
            }],
            entry: 0x20_0010,
            end: 0x20_1000,
            ram: Window::default(),
            marks: Marks::default(),
        };
        let file = join(&binary, b"image");
        let header = FileHeader64::<LittleEndian>::parse(&*file).unwrap();
        let segments = header.program_headers(LittleEndian, &*file).unwrap();
        assert_eq!(header.e_entry(LittleEndian), 0x20_0010);
        assert_eq!(segments[1].data(LittleEndian, &*file).unwrap(), b"image");
        assert_eq!(segments[1].p_paddr(LittleEndian), 0x20_1000);
        let note = segments[2].data(LittleEndian, &*file).unwrap();
        assert_eq!(note.len(), NOTE_SIZE);
        assert_eq!((&note[8..12], &note[12..16]), (&[18, 0, 0, 0][..], &b"Xen\0"[..]));
        assert_eq!(note[16..20], 0x20_0010_u32.to_le_bytes());
        let words: Vec<u32> = file[MULTIBOOT2_AT..][..16]
            .chunks(4)
            .map(|word| u32::from_le_bytes(word.try_into().unwrap()))
            .collect();
        assert_eq!((words[0], MULTIBOOT2_AT % 8), (0xE852_50D6, 0));
        assert_eq!(words.iter().fold(0, |sum: u32, word| sum.wrapping_add(*word)), 0);
    }
}
