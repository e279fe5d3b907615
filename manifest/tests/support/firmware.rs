// SPDX-License-Identifier: Apache-2.0
//! Programs for a microcontroller, made to measure. `fuzz/` starts from them too, so they need no other file.

const ARM: u16 = 40;
const EXECUTABLE: u16 = 2;
const RW: u32 = 6;
const RX: u32 = 5;

/// Makes a program for a microcontroller: vector table and code from `base` on, variables at `ram`, and the
/// mapping symbols `map` (offset within the code, `$t` or `$d`).
pub fn firmware(base: u32, ram: u32, code: &[u16], map: &[(u32, &str)]) -> Vec<u8> {
    const HEADERS: u32 = 52 + 2 * 32;
    const VECTORS: u32 = 64;
    let words = |values: &[u32]| {
        values
            .iter()
            .flat_map(|value| value.to_le_bytes())
            .collect::<Vec<u8>>()
    };
    let text: Vec<u8> = code.iter().flat_map(|half| half.to_le_bytes()).collect();
    let (start, size) = (base + VECTORS, text.len() as u32);
    let mut contents = words(&[ram + 0x1000, start | 1]);
    contents.resize(VECTORS as usize, 0);
    contents.extend(&text);
    contents.resize(contents.len().next_multiple_of(4), 0);
    let mut names = b"\0.text\0".to_vec();
    let mut symbols = vec![0; 16];
    for (offset, name) in map {
        symbols.extend(words(&[names.len() as u32, start + offset, 0]));
        symbols.extend([0, 0, 1, 0]);
        names.extend(name.bytes().chain([0]));
    }
    let symbols_at = HEADERS + contents.len() as u32;
    let names_at = symbols_at + symbols.len() as u32;
    let sections_at = (names_at + names.len() as u32).next_multiple_of(4);
    let mut out = b"\x7fELF\x01\x01\x01\0\0\0\0\0\0\0\0\0".to_vec();
    out.extend([EXECUTABLE, ARM].iter().flat_map(|half| half.to_le_bytes()));
    out.extend(words(&[1, start | 1, 52, sections_at, 0x0500_0000]));
    out.extend(
        [52, 32, 2, 40, 5, 3]
            .iter()
            .flat_map(|half: &u16| half.to_le_bytes()),
    );
    let length = contents.len() as u32;
    out.extend(words(&[1, HEADERS, base, base, length, length, RX, 4]));
    out.extend(words(&[1, 0, ram, ram, 0, 64, RW, 4]));
    out.extend(contents.iter().chain(&symbols).chain(&names));
    out.resize(sections_at as usize, 0);
    out.extend([0; 40]);
    // Contents, allocated and executable.
    out.extend(words(&[1, 1, 6, start, HEADERS + VECTORS, size, 0, 0, 2, 0]));
    out.extend(words(&[
        0,
        2,
        0,
        0,
        symbols_at,
        symbols.len() as u32,
        3,
        1,
        4,
        16,
    ]));
    out.extend(words(&[0, 3, 0, 0, names_at, names.len() as u32, 0, 0, 1, 0]));
    // The vector table: contents, allocated.
    out.extend(words(&[0, 1, 2, base, HEADERS, VECTORS, 0, 0, 4, 0]));
    out
}

/// Makes a class binary with a few bytes at 0, its end at 0x8000 and its RAM at `ram`.
pub fn class_binary(base: u32, ram: core::ops::Range<u32>) -> Vec<u8> {
    let words = |values: &[u32]| {
        values
            .iter()
            .flat_map(|value| value.to_le_bytes())
            .collect::<Vec<u8>>()
    };
    let names = b"\0__image_end\0__log_area\0__ram_end\0";
    let mut out = b"\x7fELF\x01\x01\x01\0\0\0\0\0\0\0\0\0\x02\0\x28\0".to_vec();
    let (symbols_at, names_at, sections_at) = (92, 92 + 64, 192);
    out.extend(words(&[1, base | 1, 52, sections_at, 0x0500_0000]));
    out.extend(
        [52_u16, 32, 1, 40, 3, 2]
            .iter()
            .flat_map(|half| half.to_le_bytes()),
    );
    out.extend(words(&[1, 84, base, base, 8, 8, 5, 4]));
    out.extend(b"program.");
    out.extend([0; 16]);
    out.extend(words(&[
        1,
        base + 0x8000,
        0,
        0xfff1_0010,
        13,
        ram.start,
        0,
        0xfff1_0010,
        24,
        ram.end,
        0,
        0xfff1_0010,
    ]));
    out.extend(names);
    out.resize(sections_at as usize, 0);
    out.extend([0; 40]);
    out.extend(words(&[0, 2, 0, 0, symbols_at, 64, 2, 1, 4, 16]));
    out.extend(words(&[0, 3, 0, 0, names_at, names.len() as u32, 0, 0, 1, 0]));
    out
}
