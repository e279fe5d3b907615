// SPDX-License-Identifier: Apache-2.0
//! Programs that are executed where they are linked. The input is a small ELF file with any code, mapping
//! symbols and damaged headers. Either the file is refused with a report, or it compiles. Then the flashed
//! bytes are the file's contents but for replaced instructions.
//!
//! The verdict is this target's own. It finds segments, sections and symbols by the file offsets of the ELF
//! specification, and instructions by masks of the manual (Arm DDI 0403E). It takes nothing from the code
//! under test but its results.
#![no_main]

mod elf32;
#[path = "../../manifest/tests/support/firmware.rs"]
mod firmware;
mod support;

use bulkhead_arch_api::class::ARMV7M;
use bulkhead_image::{Image, Portable};
use bulkhead_manifest::{ClassBinary, CompileInput, System, compile, flashable, load_text};
use elf32::{Elf, word};
use libfuzzer_sys::fuzz_target;
use std::path::Path;

const CODE: u32 = 0x3_0000;
const RAM: u32 = 0x2001_0000;
/// The class binary and its RAM on this board.
const BINARY: u32 = 0x3d_6000;
const OWN_RAM: std::ops::Range<u32> = 0x60ff_9000..0x6100_0000;
/// Bytes of the small file's header and segments, and of its section headers at the end.
const HEADERS: usize = 52 + 2 * 32;
const SECTIONS: usize = 5 * 40;
/// Code memory of the board.
const FLASH: std::ops::Range<u32> = 0..0x40_0000;

/// Halfwords that mean something to the loader: each sensitive instruction, their halves, their replacements,
/// and words that look like them.
const HALFWORDS: [u16; 38] = [
    0xb672, 0xb662, 0xb671, 0xb660, 0xb67f, 0xbf30, 0xbf20, 0xbf00, 0xf3ef, 0x8010, 0x8000, 0x8114, 0xf380,
    0x8811, 0x8800, 0x8c00, 0xf3af, 0x8003, 0xf3bf, 0x8f6f, 0xde80, 0xdeb1, 0xdeff, 0xdea2, 0xf7f0, 0xa110,
    0xf7fa, 0xa311, 0xe7fe, 0xf000, 0x4770, 0, 0xbf40, 0x8002, 0xf851, 0x0e04, 0xf9f1, 0x0504,
];

/// Reads an input from its beginning; after its end it is zeros.
struct Input<'a>(&'a [u8]);

impl Input<'_> {
    fn byte(&mut self) -> u8 {
        let Some((first, rest)) = self.0.split_first() else {
            return 0;
        };
        self.0 = rest;
        *first
    }

    fn half(&mut self) -> u16 {
        u16::from_le_bytes([self.byte(), self.byte()])
    }
}

/// Builds the file that an input describes: code, its mapping symbols, and changes of words of the headers,
/// section headers and symbols.
fn file(input: &mut Input<'_>) -> Vec<u8> {
    let halves: Vec<u16> = (0..input.byte() % 48)
        .map(|_| match input.byte() {
            known @ 0..128 => HALFWORDS[usize::from(known) % HALFWORDS.len()],
            _ => input.half(),
        })
        .collect();
    let map: Vec<(u32, &str)> = (0..input.byte() % 6)
        .map(|_| {
            let offset = u32::from(input.byte() % 64) * 2;
            let name = ["$t", "$d", "$t.1", "$d.x", "$a", "$tt"][usize::from(input.byte() % 6)];
            (if offset > 100 { 0 } else { offset }, name)
        })
        .collect();
    let mut file = firmware::firmware(CODE, RAM, &halves, &map);
    let contents = HEADERS + 64 + (2 * halves.len()).next_multiple_of(4);
    // The places where words can be changed: the ELF file's header, segments, symbols with their names, and
    // sections.
    let tables = [
        0..52,
        52..HEADERS,
        contents..file.len() - SECTIONS,
        file.len() - SECTIONS..file.len(),
    ];
    while !input.0.is_empty() {
        let operation = input.byte();
        let table = &tables[usize::from(operation / 8 % 4)];
        let at = table.start + usize::from(input.byte()) * 4 % table.len();
        let value = u32::from(input.byte());
        let Some(old) = word(&file, at) else { continue };
        let new = match operation % 8 {
            0 => value,
            1 => old.wrapping_add(value % 9),
            2 => old.wrapping_sub(value % 9),
            3 => old ^ (1 << (value % 32)),
            4 => CODE + value,
            5 => RAM + value,
            6 => u32::MAX - value,
            _ => value << 16,
        };
        file[at..at + 4].copy_from_slice(&new.to_le_bytes());
    }
    file
}

/// The flashed bytes by address, and the places that look like a replaced instruction and are not.
struct Flashed {
    file: Vec<u8>,
    lookalikes: Vec<u32>,
}

impl Flashed {
    fn of(system: &System) -> Self {
        let input = CompileInput {
            class_binary_len: 0x8000,
            stop_after_ms: None,
            trace_records: None,
        };
        let bytes = compile(system, &input).unwrap_or_else(|error| panic!("accepted, but {error}"));
        let image = Image::check(&bytes, &ARMV7M, &Portable).expect("what is compiled is right");
        let lookalikes = image
            .lookalikes()
            .iter()
            .map(|lookalike| lookalike.address.get())
            .collect();
        let binary = ClassBinary::from_elf(&firmware::class_binary(BINARY, OWN_RAM)).expect("a class binary");
        let file = flashable(&binary, &bytes, system).expect("what is accepted can be flashed");
        Self { file, lookalikes }
    }

    fn byte(&self, address: u32) -> Option<u8> {
        Elf(&self.file).segments().find_map(|segment| {
            let at = address.checked_sub(segment.paddr)?;
            (at < segment.size).then(|| self.file[(segment.offset + at) as usize])
        })
    }

    fn half(&self, address: u32) -> Option<u16> {
        Some(u16::from_le_bytes([self.byte(address)?, self.byte(address + 1)?]))
    }
}

/// Tells whether this is a load or store with the rights of unprivileged code (Arm DDI 0403E: STRBT, LDRBT,
/// STRHT, LDRHT, STRT, LDRT, LDRSBT, LDRSHT).
fn is_unprivileged(first: u16, second: u16) -> bool {
    let kinds = [0xf800, 0xf810, 0xf820, 0xf830, 0xf840, 0xf850, 0xf910, 0xf930];
    kinds.contains(&(first & 0xfff0)) && first & 0xf != 0xf && second & 0x0f00 == 0x0e00
}

/// Returns the load or store whose replacement would have these halfwords.
fn unprivileged(first: u16, second: u16) -> (u16, u16) {
    let kind = (second & 0x0800) >> 3 | (second & 0x0700) >> 4;
    (0xf800 | kind | first & 0xf, second & 0xf0ff | 0x0e00)
}

/// Returns the instruction that a replacement stands for, by the operands that it carries.
fn original(first: u16, second: Option<u16>) -> (u16, Option<u16>) {
    let Some(second) = second else {
        return (
            match first {
                0xdea2..=0xdea4 => 0xbf00 | (first & 0xf) << 4,
                _ => 0xb660 | first & 0x1f,
            },
            None,
        );
    };
    if first & 0xfff0 == 0xf9f0 {
        let (first, second) = unprivileged(first, second);
        return (first, Some(second));
    }
    let immediate = (first & 0xf) << 12 | second & 0xfff;
    match immediate {
        0x4002..=0x4004 => (0xf3af, Some(0x8000 | immediate & 0xf)),
        _ if immediate & 0x8000 != 0 => (
            0xf380 | immediate >> 8 & 0xf,
            Some(0x8000 | (immediate >> 12 & 3) << 10 | immediate & 0xff),
        ),
        _ => (0xf3ef, Some(0x8000 | immediate & 0xfff)),
    }
}

/// Tells whether an instruction does something else without privileges than with them, and does not trap.
/// `other` has the bits that the manual says should be zero or one.
fn is_sensitive(first: u16, second: Option<u16>) -> bool {
    match second {
        None => matches!(first, 0xbf20 | 0xbf30 | 0xbf40) || first & 0xffe0 == 0xb660,
        Some(second) if is_unprivileged(first, second) => true,
        Some(second) if second & 0xd000 != 0x8000 => false,
        Some(second) => {
            first & 0xffe0 == 0xf3e0 && second & 0xff != 0
                || first & 0xffe0 == 0xf380 && second & 0xff > 3
                || first == 0xf3af && (0x8002..=0x8004).contains(&second)
        }
    }
}

/// Tells whether the target takes the instruction for one that stands for another. An instruction that is cut
/// off counts if it may be one.
fn stands_for_another(first: u16, second: Option<u16>) -> bool {
    match (first, second) {
        (0xde80..=0xde9f | 0xdea2..=0xdea4, _) => true,
        (0xf7f0..=0xf7ff, Some(second)) if second & 0xf000 == 0xa000 => {
            let immediate = (first & 0xf) << 12 | second & 0xfff;
            matches!(immediate, 0x4002..=0x4004 | 0..=0xfff) || immediate & 0xc000 == 0x8000
        }
        (0xf9f0..=0xf9ff, Some(second)) => {
            let (first, second) = unprivileged(first, second);
            is_unprivileged(first, second)
        }
        (0xf7f0..=0xf7ff | 0xf9f0..=0xf9ff, None) => true,
        _ => false,
    }
}

/// Reads all of the file against what is flashed.
fn judge(elf: &Elf<'_>, flashed: &Flashed, is_task: bool) {
    let mut replaced = Vec::new();
    let mut alike = Vec::new();
    for segment in elf.segments().filter(|segment| FLASH.contains(&segment.paddr)) {
        // The ELF file's own headers are not contents.
        let first = elf.first_contents(&segment);
        let mut at = first;
        while at < segment.size {
            let (offset, address) = (segment.offset + at, segment.paddr + at);
            // The place where the CPU looks after a reset belongs to the hypervisor.
            if (4..8).contains(&address) {
                at += 1;
                continue;
            }
            let code = !is_task && elf.is_code(offset);
            if !code || address % 2 != 0 {
                assert_eq!(
                    flashed.byte(address),
                    Some(elf.0[offset as usize]),
                    "{address:#x} has changed"
                );
                assert!(
                    !code || address % 2 == 0 || at > first,
                    "{address:#x}: code at an odd address"
                );
                at += 1;
                continue;
            }
            at += instruction(elf, offset, address, flashed, &mut replaced);
        }
        for address in segment.paddr + first..segment.paddr + segment.size {
            let second = (address + 3 < segment.paddr + segment.size).then(|| flashed.half(address + 2));
            let half = flashed.half(address).filter(|_| address % 2 == 0);
            if half.is_some_and(|half| stands_for_another(half, second.flatten())) {
                alike.push(address);
            }
        }
    }
    alike.retain(|address| !is_task && !replaced.contains(address));
    alike.sort_unstable();
    assert_eq!(alike, flashed.lookalikes);
}

/// Looks at the instruction at `offset`; its length.
fn instruction(elf: &Elf<'_>, offset: u32, address: u32, flashed: &Flashed, replaced: &mut Vec<u32>) -> u32 {
    let old = elf
        .half(offset)
        .unwrap_or_else(|| panic!("{address:#x}: half an instruction"));
    let new = flashed.half(address);
    let is_wide = matches!(old & 0xf800, 0xe800 | 0xf000 | 0xf800);
    // The file or the segment may end in the middle of an instruction.
    let both = elf
        .half(offset + 2)
        .zip(flashed.half(address + 2))
        .filter(|_| is_wide);
    let (old_second, new_second) = both.unzip();
    if !is_sensitive(old, old_second) {
        assert_eq!(
            (new, new_second),
            (Some(old), old_second),
            "{address:#x} has changed"
        );
    } else {
        assert!(
            new.is_some_and(|new| stands_for_another(new, new_second)),
            "{address:#x} is not replaced"
        );
        replaced.push(address);
        let (first, second) = original(new.expect("it is flashed"), new_second);
        if old_second.is_some_and(|second| is_unprivileged(old, second)) {
            assert_eq!((first, second), (old, old_second), "{address:#x}");
            return 4;
        }
        // Register of MRS: all ones; of MSR: bit 20 of the first halfword is zero (should be, in both).
        assert_eq!(
            first & !0x1f | first & 0xf,
            old & !0x1f | if old & 0xffe0 == 0xf3e0 { 0xf } else { old & 0xf },
            "{address:#x}"
        );
        assert!(is_wide || first == old, "{address:#x}");
        let operands = if old & 0xffe0 == 0xf380 { 0x0cff } else { 0x0fff };
        assert_eq!(
            second.map(|half| half & operands),
            old_second.map(|half| half & operands),
            "{address:#x}"
        );
    }
    if is_wide { 4 } else { 2 }
}

fuzz_target!(|data: &[u8]| {
    let mut input = Input(data);
    let kind = ["vm", "task"][usize::from(input.byte() % 8 == 7)];
    let bytes = file(&mut input);
    let path = support::file("in-place.elf");
    std::fs::write(&path, &bytes).expect("the temporary folder can be written");
    let text = format!(
        "board = \"mps2-an500\"\n[partition.a]\nkind = \"{kind}\"\nimage = \"@file\"\nmemory = \"16K\"\nvcpus = [{{ pcpu = 0 }}]\n"
    );
    let resolve = |_: &str| Ok(path.clone());
    match load_text(Path::new("/nonexistent/system.toml"), &text, &resolve) {
        Ok(system) => judge(&Elf(&bytes), &Flashed::of(&system), kind == "task"),
        Err(report) => assert!(report.has_errors() && !report.render(false).is_empty()),
    }
});
