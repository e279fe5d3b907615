// SPDX-License-Identifier: Apache-2.0
//! Payloads: finds them, recognises them, takes them apart.
//!
//! All parsing happens here, on the host, so that the hypervisor only copies bytes. A payload may be hostile
//! or damaged. So every number in a payload is checked before use, decompression stops at the size of the
//! memory that the payload is for, and only ordinary files are read (a device or a pipe could be endless).

pub(crate) mod cpio;
pub(crate) mod elf;
pub(crate) mod initramfs;

use std::collections::HashMap;
use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use crate::diagnostic::{Code, Diagnostic, Place, Report};
use crate::model::Placed;
use crate::units::format_size;
use crate::window::Window;

/// Files larger than this are not read, whatever their memory.
const FILE_MAX: u64 = 4 << 30;

/// Finds named payloads (`@...`).
pub trait PayloadResolver {
    /// Returns the file that `name` (with its `@`) stands for. The resolver makes the file if need be.
    ///
    /// # Errors
    /// The reason why there is none, in one line for the user.
    fn resolve(&self, name: &str) -> Result<PathBuf, String>;
}

/// A resolver that knows no named payloads.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoPayloads;

impl PayloadResolver for NoPayloads {
    fn resolve(&self, _name: &str) -> Result<PathBuf, String> {
        Err("no named payloads are available here".to_owned())
    }
}

impl<F: Fn(&str) -> Result<PathBuf, String>> PayloadResolver for F {
    fn resolve(&self, name: &str) -> Result<PathBuf, String> {
        self(name)
    }
}

/// Bytes at an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Stretch {
    pub address: u64,
    pub bytes: Vec<u8>,
}

impl Stretch {
    pub fn window(&self) -> Window {
        Window {
            base: self.address,
            size: self.bytes.len() as u64,
        }
    }
}

/// Bytes of a payload, shared between the partitions that use it.
pub(crate) type Bytes = Rc<Vec<u8>>;

/// Bytes to copy into a partition's memory when the partition starts.
#[derive(Clone, Debug)]
pub(crate) struct Piece {
    /// The name of the blob, for reports.
    pub name: String,
    pub blob: Bytes,
    pub offset: u64,
    pub size: u64,
    pub guest: u64,
}

impl Piece {
    /// Returns a piece with all of `blob`.
    pub fn whole(name: String, blob: Bytes, guest: u64) -> Self {
        Self {
            name,
            size: blob.len() as u64,
            blob,
            offset: 0,
            guest,
        }
    }

    pub fn end(&self) -> u64 {
        self.guest.saturating_add(self.size)
    }
}

/// Returns the words of an I/O error. The operating system's number is left out, because systems differ in
/// it.
pub(crate) fn reason(error: &io::Error) -> String {
    match error.kind() {
        ErrorKind::NotFound => "there is no such file".to_owned(),
        ErrorKind::PermissionDenied => "permission denied".to_owned(),
        ErrorKind::IsADirectory => "it is a directory".to_owned(),
        ErrorKind::InvalidData => "it is not UTF-8 text".to_owned(),
        ErrorKind::Unsupported => "it is no ordinary file".to_owned(),
        kind => kind.to_string(),
    }
}

/// A reader of payloads that reads each file once.
pub(crate) struct Loader<'a> {
    base: &'a Path,
    resolver: &'a dyn PayloadResolver,
    files: HashMap<PathBuf, Bytes>,
}

impl<'a> Loader<'a> {
    pub fn new(base: &'a Path, resolver: &'a dyn PayloadResolver) -> Self {
        Self {
            base,
            resolver,
            files: HashMap::new(),
        }
    }

    /// Returns the file that a manifest names. Reports the reason if there is none.
    pub fn path(&self, name: &Placed<String>, report: &mut Report) -> Option<PathBuf> {
        if !name.value.starts_with('@') {
            return Some(self.base.join(&name.value));
        }
        match self.resolver.resolve(&name.value) {
            Ok(path) => Some(path),
            Err(why) => {
                report.push(no_payload(name, &why));
                None
            }
        }
    }

    /// Returns the contents of a payload.
    pub fn load(&mut self, name: &Placed<String>, report: &mut Report) -> Option<Bytes> {
        let path = self.path(name, report)?;
        if let Some(bytes) = self.files.get(&path) {
            return Some(Rc::clone(bytes));
        }
        match ordinary_file(&path, FILE_MAX) {
            Ok(bytes) if bytes.is_empty() => {
                let message = format!("the payload `{}` is empty", name.value);
                report.push(
                    Diagnostic::at(Code::PayloadEmpty, name.place, message)
                        .help("build it again; the file has no bytes, or is not one of a disk"),
                );
                None
            }
            Ok(bytes) => {
                let bytes = Rc::new(bytes);
                self.files.insert(path, Rc::clone(&bytes));
                Some(bytes)
            }
            Err(error) => {
                report.push(unreadable(name, &error));
                None
            }
        }
    }
}

/// Reports the payloads whose files do not exist. Nothing is read, and nobody is asked for named payloads.
pub(crate) fn are_there<'a>(
    base: &Path,
    names: impl Iterator<Item = &'a Placed<String>>,
    report: &mut Report,
) {
    for name in names.filter(|name| !name.value.starts_with('@')) {
        if let Err(error) = std::fs::metadata(base.join(&name.value)) {
            report.push(unreadable(name, &error));
        }
    }
}

/// Returns the finding that there is no payload of a name.
pub(crate) fn no_payload(name: &Placed<String>, why: &str) -> Diagnostic {
    let message = format!("the payload `{}` cannot be provided: {why}", name.value);
    Diagnostic::at(Code::PayloadName, name.place, message)
        .help("names with `@` are payloads of the host tool: @guests/NAME, @debian/NAME")
}

fn unreadable(name: &Placed<String>, error: &io::Error) -> Diagnostic {
    let (code, help) = if error.kind() == ErrorKind::NotFound {
        (
            Code::PayloadMissing,
            "a path is relative to the folder of the manifest; build the payload first",
        )
    } else {
        (Code::PayloadUnreadable, "give the path of an ordinary file")
    };
    Diagnostic::at(
        code,
        name.place,
        format!("the payload `{}` cannot be read: {}", name.value, reason(error)),
    )
    .help(help)
}

/// Reads an ordinary file of at most `most` bytes.
pub(crate) fn ordinary_file(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let metadata = std::fs::metadata(path)?;
    if metadata.is_dir() {
        return Err(ErrorKind::IsADirectory.into());
    }
    if !metadata.is_file() {
        return Err(io::Error::new(ErrorKind::Unsupported, "not an ordinary file"));
    }
    if metadata.len() > most {
        return Err(ErrorKind::FileTooLarge.into());
    }
    bounded_read(path, most)
}

/// Reads a file up to `most` bytes, and a regular file only up to its length. The kernel's files of messages
/// are regular, have the length 0 and make their readers wait: nothing is read of those.
pub(crate) fn bounded_read(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let metadata = std::fs::metadata(path)?;
    let length = if metadata.is_file() { metadata.len() } else { most };
    let mut bytes = Vec::new();
    if length != 0 {
        let file = std::fs::File::open(path)?;
        file.take(length.min(most)).read_to_end(&mut bytes)?;
    }
    Ok(bytes)
}

/// Returns the name of a blob in reports: `PARTITION:WHAT`, cut to the length that a record holds.
pub(crate) fn blob_name(partition: &str, what: &str) -> String {
    let mut name = format!("{partition}:{what}");
    name.truncate(bulkhead_image::layout::NAME_LEN - 1);
    name
}

/// Reports a payload that is larger than its memory.
pub(crate) fn too_large(name: &str, place: Place, size: u64, room: u64) -> Diagnostic {
    let message = format!(
        "the payload `{name}` has {}, more than the {} there are for it",
        bytes(size),
        bytes(room)
    );
    Diagnostic::at(Code::PayloadTooLarge, place, message).help("give it more memory")
}

/// Writes a number of bytes for messages.
pub(crate) fn bytes(size: u64) -> String {
    if size >= 1024 && size.is_multiple_of(1024) {
        format_size(size)
    } else {
        format!("{size} bytes")
    }
}

/// Formats that are not machine code: an offset, the bytes there, and the name of the format.
const FOREIGN: [(usize, &[u8], &str); 12] = [
    (0, b"\xfd7zXZ\0", "an xz file"),
    (0, b"BZh", "a bzip2 file"),
    (0, b"\x28\xb5\x2f\xfd", "a zstd file"),
    (0, b"\x02\x21\x4c\x18", "an lz4 file"),
    (0, b"\x04\x22\x4d\x18", "an lz4 file"),
    (0, b"\xd0\x0d\xfe\xed", "a flattened device tree or FIT image"),
    (0, b"\x27\x05\x19\x56", "a U-Boot legacy image"),
    (0x202, b"HdrS", "a Linux bzImage for x86"),
    (0, b"!<arch>\n", "an archive (a package or a library)"),
    (0, b"070701", "a cpio archive"),
    (0, b"#!", "a script"),
    (0, b"PK\x03\x04", "a zip file"),
];

/// Returns the name of a file's format, if the file cannot be loaded as a program.
pub(crate) fn foreign(bytes: &[u8]) -> Option<&'static str> {
    let starts = |at: usize, magic: &[u8]| bytes.get(at..).is_some_and(|rest| rest.starts_with(magic));
    FOREIGN
        .iter()
        .find(|(at, magic, _)| starts(*at, magic))
        .map(|(_, _, what)| *what)
        .or_else(|| is_text(bytes).then_some("plain text"))
        .or_else(|| is_wide_text(bytes).then_some("text in UTF-16"))
}

/// Bytes of a file that are looked at to tell text from code.
const TEXT_LOOKED_AT: usize = 512;

/// Tells whether a file is text. Code of so many bytes without any that text does not have is nowhere.
fn is_text(bytes: &[u8]) -> bool {
    let start = bytes.get(..TEXT_LOOKED_AT).unwrap_or(bytes);
    start.iter().all(is_letter)
}

fn is_letter(byte: &u8) -> bool {
    matches!(byte, b'\t' | b'\n' | b'\r' | b' '..=b'~')
}

/// Tells whether a file is text in UTF-16 of either byte order, as editors of Windows save it: a mark of the
/// order or none, and then zeros between letters.
fn is_wide_text(bytes: &[u8]) -> bool {
    const MARKS: [&[u8]; 2] = [b"\xff\xfe", b"\xfe\xff"];
    let start = bytes.get(..TEXT_LOOKED_AT).unwrap_or(bytes);
    let marked = MARKS.iter().find_map(|mark| start.strip_prefix(*mark));
    let (pairs, _) = marked.unwrap_or(start).as_chunks::<2>();
    let little = pairs.iter().all(|[low, high]| is_letter(low) && *high == 0);
    let big = pairs.iter().all(|[high, low]| is_letter(low) && *high == 0);
    !pairs.is_empty() && (little || big)
}

/// Tells whether Linux takes a file as initial RAM disk.
pub(crate) fn is_ramdisk(bytes: &[u8]) -> bool {
    const KNOWN: [&[u8]; 8] = [
        b"070701",
        b"070702",
        b"\x1f\x8b",
        b"\xfd7zXZ\0",
        b"BZh",
        b"\x28\xb5\x2f\xfd",
        b"\x02\x21\x4c\x18",
        b"\x5d\0\0",
    ];
    KNOWN.iter().any(|magic| bytes.starts_with(magic))
}

#[cfg(test)]
mod tests {
    use super::foreign;

    #[test]
    fn a_text_is_no_program_in_any_encoding() {
        let text = "A text, and no program.\n";
        let wide = |order: fn(u16) -> [u8; 2]| text.encode_utf16().flat_map(order).collect::<Vec<u8>>();
        let (little, big) = (wide(u16::to_le_bytes), wide(u16::to_be_bytes));
        let marked = [&b"\xff\xfe"[..], &little].concat();
        for bytes in [little, big, marked] {
            assert_eq!(foreign(&bytes), Some("text in UTF-16"));
        }
        assert_eq!(foreign(text.as_bytes()), Some("plain text"));
        // B ., and zeros: code, and nothing yet.
        assert_eq!(foreign(&[0, 0, 0, 0x14, 0, 0, 0, 0]), None);
        assert_eq!(foreign(&[0; 64]), None);
    }
}
