// SPDX-License-Identifier: Apache-2.0
//! Unpacks a tar archive, as `tar x` does. The archive and its files are in a file system in memory.
//!
//! The format is `ustar` (POSIX.1, pax, "ustar Interchange Format"). The archive is read in records of 20
//! blocks, as usual.

use super::{Bytes, Text, expect, timed};
use crate::linux::File;
use crate::linux::files::{make_folder, remove};

const ARCHIVE: &core::ffi::CStr = c"/tmp/archive.tar";
const BLOCK: usize = 512;
const RECORD: usize = 20 * BLOCK;
const FOLDERS: u32 = 8;
/// Files of each folder.
const FILES: u32 = 12;
/// The longest file.
const LONGEST: usize = 32 << 10;
/// The kinds of an entry.
const FILE: u8 = b'0';
const FOLDER: u8 = b'5';

/// The place of a field in a header, and its length.
const NAME: [usize; 2] = [0, 100];
const SIZE: [usize; 2] = [124, 12];
const SUM: [usize; 2] = [148, 8];
const KIND: [usize; 2] = [156, 1];
const MAGIC: [usize; 2] = [257, 8];

type Header = [u8; BLOCK];
type Path = Text<64>;

fn field(header: &Header, [from, length]: [usize; 2]) -> &[u8] {
    header.get(from..from + length).unwrap_or(&[])
}

fn put(header: &mut Header, [from, length]: [usize; 2], text: &[u8]) {
    let place = header.get_mut(from..from + length);
    if let Some(place) = place.and_then(|place| place.get_mut(..text.len())) {
        place.copy_from_slice(text);
    }
}

/// Returns the sum of a header's bytes, with blanks in the place of the sum.
fn sum(header: &Header) -> u32 {
    let all: u32 = header.iter().copied().map(u32::from).sum();
    let own: u32 = field(header, SUM).iter().copied().map(u32::from).sum();
    all - own + SUM[1] as u32 * u32::from(b' ')
}

fn octal(digits: &[u8]) -> usize {
    let digits = digits.iter().filter(|digit| (b'0'..b'8').contains(digit));
    digits.fold(0, |value, digit| value * 8 + usize::from(digit - b'0'))
}

fn length_of(folder: u32, file: u32) -> usize {
    Bytes::new(folder * FILES + file).next() as usize % LONGEST
}

fn folder_path(folder: u32) -> Path {
    Text::new(format_args!("/tmp/folder-{folder}"))
}

fn file_path(folder: u32, file: u32) -> Path {
    Text::new(format_args!("/tmp/folder-{folder}/file-{file}"))
}

fn content(folder: u32, file: u32, into: &mut [u8; LONGEST]) -> &[u8] {
    let length = length_of(folder, file);
    let content = into.get_mut(..length).unwrap_or_default();
    Bytes::new(folder * FILES + file).fill(content);
    content
}

/// Writes the header of an entry, and its content up to the end of a block.
fn pack(archive: File, path: &Path, kind: u8, content: &[u8]) {
    let mut header = [0; BLOCK];
    put(&mut header, NAME, path.bytes());
    put(
        &mut header,
        SIZE,
        Text::<16>::new(format_args!("{:011o}", content.len())).bytes(),
    );
    put(&mut header, KIND, &[kind]);
    put(&mut header, MAGIC, b"ustar\x0000");
    let sum = sum(&header);
    put(
        &mut header,
        SUM,
        Text::<16>::new(format_args!("{sum:06o}\0 ")).bytes(),
    );
    archive.write_all(&header);
    archive.write_all(content);
    archive.write_all(
        [0; BLOCK]
            .get(..content.len().next_multiple_of(BLOCK) - content.len())
            .unwrap_or(&[]),
    );
}

fn make() {
    let archive = File::create(ARCHIVE);
    let mut room = [0; LONGEST];
    for folder in 0..FOLDERS {
        pack(archive, &folder_path(folder), FOLDER, &[]);
        for file in 0..FILES {
            pack(
                archive,
                &file_path(folder, file),
                FILE,
                content(folder, file, &mut room),
            );
        }
    }
    archive.write_all(&[0; 2 * BLOCK]);
    archive.close();
}

/// An archive that is read.
struct Reader {
    file: File,
    record: [u8; RECORD],
    full: usize,
    next: usize,
}

impl Reader {
    fn block(&mut self) -> Option<&Header> {
        if self.next == self.full {
            self.full = self.file.read_full(&mut self.record);
            self.next = 0;
        }
        let from = self.next;
        self.next += BLOCK;
        self.record.get(from..from + BLOCK)?.try_into().ok()
    }
}

/// Unpacks the archive.
fn unpack() {
    let mut reader = Reader {
        file: File::open(ARCHIVE),
        record: [0; RECORD],
        full: 0,
        next: 0,
    };
    while let Some(header) = reader.block().filter(|header| header[0] != 0).copied() {
        expect(
            field(&header, MAGIC).starts_with(b"ustar"),
            "no header of an archive",
        );
        expect(
            octal(field(&header, SUM)) == sum(&header) as usize,
            "the sum of a header",
        );
        let path = core::ffi::CStr::from_bytes_until_nul(field(&header, NAME)).unwrap_or(c"");
        if field(&header, KIND) == [FOLDER] {
            make_folder(path);
            continue;
        }
        let file = File::create(path);
        let mut rest = octal(field(&header, SIZE));
        while rest > 0 {
            let block = reader.block().map_or(&[][..], |block| block);
            let part = block.get(..rest.min(BLOCK)).unwrap_or(&[]);
            expect(!part.is_empty(), "the archive ends early");
            file.write_all(part);
            rest -= part.len();
        }
        file.close();
    }
    reader.file.close();
}

/// Checks and removes all that was unpacked.
fn check() {
    let (mut room, mut found) = ([0; LONGEST], [0; LONGEST]);
    for folder in 0..FOLDERS {
        for file in 0..FILES {
            let path = file_path(folder, file);
            let handle = File::open(path.path());
            let length = handle.read_full(&mut found);
            handle.close();
            let right = found.get(..length) == Some(content(folder, file, &mut room));
            expect(right, "a file is not as it was packed");
            remove(path.path(), false);
        }
        remove(folder_path(folder).path(), true);
    }
    remove(ARCHIVE, false);
}

pub fn measure() {
    make();
    timed("untar", unpack);
    check();
}
