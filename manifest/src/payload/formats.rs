// SPDX-License-Identifier: Apache-2.0
//! Files that are no machine code, by the bytes that their formats have at fixed places.

use super::text::encoding;

/// The least bytes of code, where an instruction has four.
const INSTRUCTION: usize = 4;

/// Formats: an offset, the bytes there, and the name of the format.
const FORMATS: [(usize, &[u8], &str); 46] = [
    (0, b"\x7fELF", "an ELF file"),
    (0, b"\x1f\x8b", "a gzip file"),
    (0, b"\xfd7zXZ\0", "an xz file"),
    (0, b"\x5d\0\0", "an lzma file"),
    (0, b"BZh", "a bzip2 file"),
    (0, b"\x28\xb5\x2f\xfd", "a zstd file"),
    (0, b"\x02\x21\x4c\x18", "an lz4 file"),
    (0, b"\x04\x22\x4d\x18", "an lz4 file"),
    (0, b"\x89LZO", "an lzop file"),
    (0, b"7z\xbc\xaf\x27\x1c", "a 7-Zip file"),
    (0, b"Rar!\x1a\x07", "a RAR file"),
    (0, b"PK\x03\x04", "a zip file"),
    (0, b"PK\x05\x06", "a zip file without contents"),
    (0, b"070701", "a cpio archive"),
    (0, b"070702", "a cpio archive"),
    (0, b"070707", "a cpio archive"),
    (0x101, b"ustar", "a tar archive"),
    (0, b"!<arch>\n", "an archive (a package or a library)"),
    (0, b"\xed\xab\xee\xdb", "an RPM package"),
    (0, b"\xd0\x0d\xfe\xed", "a flattened device tree or FIT image"),
    (0, b"\x27\x05\x19\x56", "a U-Boot legacy image"),
    (0, b"ANDROID!", "an Android boot image"),
    (0, b"UF2\n", "a UF2 file"),
    (0x202, b"HdrS", "a Linux bzImage for x86"),
    (0, b"hsqs", "a squashfs file system"),
    (0, b"\x45\x3d\xcd\x28", "a cramfs file system"),
    (0, b"UBI#", "a UBI image"),
    (0x8001, b"CD001", "an image of a CD (ISO 9660)"),
    (0x200, b"EFI PART", "an image of a disk with partitions (GPT)"),
    (0, b"QFI\xfb", "an image of a disk in the format qcow2"),
    (0, b"\xcf\xfa\xed\xfe", "a Mach-O file (macOS)"),
    (0, b"\xce\xfa\xed\xfe", "a Mach-O file (macOS)"),
    (0, b"\xca\xfe\xba\xbe", "a Java class or a universal Mach-O file"),
    (0, b"\0asm", "a WebAssembly module"),
    (0, b"BC\xc0\xde", "LLVM bitcode"),
    (0, b"\x89PNG\r\n\x1a\n", "a PNG image"),
    (0, b"\xff\xd8\xff", "a JPEG image"),
    (0, b"GIF8", "a GIF image"),
    (0, b"II*\0", "a TIFF image"),
    (0, b"MM\0*", "a TIFF image"),
    (0, b"RIFF", "a RIFF file (sound, film or picture)"),
    (0, b"OggS", "an Ogg file (sound or film)"),
    (0, b"%PDF-", "a PDF file"),
    (0, b"%!PS", "a PostScript file"),
    (0, b"SQLite format 3\0", "an SQLite database"),
    (0, b"#!", "a script"),
];

/// Returns the name of a file's format, if the file cannot be loaded as a program.
pub(crate) fn foreign(bytes: &[u8]) -> Option<&'static str> {
    let starts = |at: usize, magic: &[u8]| bytes.get(at..).is_some_and(|rest| rest.starts_with(magic));
    FORMATS
        .iter()
        .find(|(at, magic, _)| starts(*at, magic))
        .map(|(_, _, what)| *what)
        .or_else(|| is_windows_program(bytes).then_some("a program of Windows or EFI"))
        .or_else(|| encoding(bytes).map(|encoding| encoding.name()))
}

/// Returns what a file is, if it cannot be a raw binary of instructions with four bytes each.
pub(crate) fn not_code(bytes: &[u8]) -> Option<&'static str> {
    foreign(bytes).or_else(|| (bytes.len() < INSTRUCTION).then_some("shorter than one instruction"))
}

/// Tells whether a file is a portable executable: its first header names the place of the second.
fn is_windows_program(bytes: &[u8]) -> bool {
    let place = bytes.get(0x3c..).and_then(|rest| rest.first_chunk());
    let place = place.map(|place| u32::from_le_bytes(*place) as usize);
    let second = place.and_then(|place| bytes.get(place..));
    bytes.starts_with(b"MZ") && second.is_some_and(|second| second.starts_with(b"PE\0\0"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_format_is_named() {
        for (at, magic, what) in FORMATS {
            let mut bytes = vec![0; at];
            bytes.extend_from_slice(magic);
            bytes.extend_from_slice(&[0x91; 64]);
            assert_eq!(not_code(&bytes), Some(what));
        }
        let mut program = vec![0; 0x84];
        program[..2].copy_from_slice(b"MZ");
        program[0x3c] = 0x80;
        program[0x80..].copy_from_slice(b"PE\0\0");
        assert_eq!(foreign(&program), Some("a program of Windows or EFI"));
    }

    #[test]
    fn a_text_is_no_program_in_any_encoding() {
        let text = "A text, and no program.\n";
        let wide: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
        assert_eq!(foreign(&wide), Some("text in UTF-16"));
        assert_eq!(foreign(text.as_bytes()), Some("plain text"));
    }

    #[test]
    fn code_is_none_of_them_and_has_at_least_one_instruction() {
        // B ., and zeros: code, and nothing yet.
        assert_eq!(not_code(&[0, 0, 0, 0x14, 0, 0, 0, 0]), None);
        assert_eq!(not_code(&[0, 0, 0, 0x14]), None);
        assert_eq!(not_code(&[0; 64]), None);
        for short in [&[0x14][..], &[0, 0, 0x14]] {
            assert_eq!(not_code(short), Some("shorter than one instruction"));
        }
    }
}
