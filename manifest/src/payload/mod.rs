// SPDX-License-Identifier: Apache-2.0
//! Payloads: finds them, recognises them, takes them apart.
//!
//! All parsing happens here, on the host, so that the hypervisor only copies bytes. A payload may be hostile
//! or damaged. So every number in a payload is checked before use, decompression stops at the size of the
//! memory that the payload is for, and only ordinary files are read (a device or a pipe could be endless).

pub(crate) mod cpio;
pub(crate) mod elf;
pub(crate) mod formats;
pub(crate) mod hex;
pub(crate) mod initramfs;
pub(crate) mod rootfs;
pub(crate) mod text;

use std::collections::HashMap;
use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use crate::diagnostic::{Code, Diagnostic, Place, Report};
use crate::model::Placed;
use crate::units::format_size;
use crate::window::Window;

/// Files larger than this are not read, even if their memory is larger.
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
#[must_use]
pub fn reason(error: &io::Error) -> String {
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

/// Reports the payloads whose files do not exist. Nothing is read, and no resolver is asked for named
/// payloads.
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
    if std::fs::metadata(path)?.len() > most {
        return Err(ErrorKind::FileTooLarge.into());
    }
    read_file(path, most)
}

/// Reads an ordinary file, up to `most` bytes of it. A pipe could wait for ever and a device have no end, so
/// they are refused. The kernel's files of messages are ordinary ones, have the length 0 and make their
/// readers wait: nothing is read of those.
///
/// # Errors
/// The file is no ordinary file, or cannot be read.
pub fn read_file(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let metadata = std::fs::metadata(path)?;
    if metadata.is_dir() {
        return Err(ErrorKind::IsADirectory.into());
    }
    if !metadata.is_file() {
        return Err(io::Error::new(ErrorKind::Unsupported, "not an ordinary file"));
    }
    let mut bytes = Vec::new();
    if metadata.len() != 0 {
        let file = std::fs::File::open(path)?;
        file.take(metadata.len().min(most)).read_to_end(&mut bytes)?;
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
