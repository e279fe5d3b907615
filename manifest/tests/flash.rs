// SPDX-License-Identifier: Apache-2.0
//! The flashable file: a class binary flattened, the system image after it.

mod support;

use bulkhead_manifest::{ClassBinary, FlashError, flashable, load};
use support::{Segment, elf};

const AARCH64: u16 = 183;
const DYNAMIC: u16 = 3;

/// Adds a symbol table with `__image_end` to an ELF file.
fn with_end(mut file: Vec<u8>, end: u64) -> Vec<u8> {
    let names = b"\0__image_end\0";
    let symbols_at = file.len().next_multiple_of(8);
    file.resize(symbols_at, 0);
    file.extend([0; 24]);
    file.extend(1_u32.to_le_bytes());
    file.extend([0x10, 0, 1, 0]);
    file.extend([end, 0].iter().flat_map(|word| word.to_le_bytes()));
    let names_at = file.len();
    file.extend(names);
    let headers_at = file.len().next_multiple_of(8);
    file.resize(headers_at, 0);
    let mut section = |kind: u32, at: usize, size: usize, link: u32, entry: u64| {
        file.extend([0_u32, kind].iter().flat_map(|word| word.to_le_bytes()));
        file.extend(
            [0, 0, at as u64, size as u64]
                .iter()
                .flat_map(|word| word.to_le_bytes()),
        );
        file.extend([link, 1].iter().flat_map(|word| word.to_le_bytes()));
        file.extend([1, entry].iter().flat_map(|word| word.to_le_bytes()));
    };
    section(0, 0, 0, 0, 0);
    section(2, symbols_at, 48, 2, 24);
    section(3, names_at, names.len(), 0, 0);
    file[40..48].copy_from_slice(&(headers_at as u64).to_le_bytes());
    file[58..64].copy_from_slice(&[64, 0, 3, 0, 2, 0]);
    file
}

fn class_binary(end: u64) -> Vec<u8> {
    let mut text = support::image(0)[..4096].to_vec();
    text[16..24].copy_from_slice(&[0; 8]);
    with_end(
        elf(
            AARCH64,
            DYNAMIC,
            0,
            &[Segment(0, 5, &text, 4096), Segment(0x1000, 6, b"data", 0x2000)],
        ),
        end,
    )
}

#[test]
fn the_image_follows_the_full_memory_size() {
    let binary = ClassBinary::from_elf(&class_binary(0x4000)).expect("a class binary");
    assert_eq!(binary.len(), 0x4000);
    let path = support::root().join("examples/aarch64-minimal/system.toml");
    let system = load(&path, &support::resolve).expect("a system");
    let file = flashable(&binary, b"BULKHEAD...", &system).expect("a file");
    assert_eq!(&file[0x1000..0x1004], b"data");
    assert_eq!(file[0x1004..0x4000].iter().filter(|byte| **byte != 0).count(), 0);
    assert_eq!(&file[0x4000..], b"BULKHEAD...");
    // The header tells the loader how much memory the file takes.
    assert_eq!(file[16..24], (file.len() as u64).to_le_bytes());
}

#[test]
fn what_is_no_class_binary_is_refused() {
    assert!(matches!(
        ClassBinary::from_elf(b"\x7fELF"),
        Err(FlashError::NotElf(_))
    ));
    assert_eq!(
        ClassBinary::from_elf(&class_binary(0x4001)),
        Err(FlashError::BadEnd(0x4001))
    );
    assert_eq!(
        ClassBinary::from_elf(&class_binary(0x2000)),
        Err(FlashError::SegmentOutside(0x1000))
    );
    assert_eq!(ClassBinary::from_elf(&support::vm_elf()), Err(FlashError::NoEnd));
    let no_header = with_end(elf(AARCH64, DYNAMIC, 0, &[Segment(0, 5, &[0; 64], 64)]), 0x1000);
    assert_eq!(ClassBinary::from_elf(&no_header), Err(FlashError::NoHeader));
}
