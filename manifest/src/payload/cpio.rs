// SPDX-License-Identifier: Apache-2.0
//! Reads an initial RAM disk as Linux unpacks it: cpio archives in the format `newc`, plain or compressed by
//! gzip (kernel documentation, `driver-api/early-userspace/buffer-format`).
//!
//! The reader takes nothing from bytes that it does not understand to the last one: then it is not known what
//! Linux finds.

use flate2::bufread::GzDecoder;
use std::collections::BTreeMap;
use std::io::Read;

/// Bytes of a header: a magic number and thirteen numbers of eight hex digits each.
const HEADER: usize = 110;
/// The most bytes of an unpacked archive that are looked at.
const MOST: u64 = 512 << 20;
/// The most symbolic links on the way to a file, as in Linux.
const MOST_LINKS: u32 = 40;

const TYPE: u32 = 0o170_000;
const DIRECTORY: u32 = 0o040_000;
const REGULAR: u32 = 0o100_000;
const LINK: u32 = 0o120_000;
/// The permissions to execute of owner, group and others.
const EXECUTE: u32 = 0o111;

/// A file, folder, link or device.
#[derive(Clone, Debug)]
pub(crate) struct Member {
    mode: u32,
    /// The contents; empty for a hard link whose contents are with another one.
    pub data: Vec<u8>,
    /// True if the contents may be with another member.
    pub shares: bool,
}

impl Member {
    /// Tells whether it is a plain file.
    pub const fn is_file(&self) -> bool {
        self.mode & TYPE == REGULAR
    }

    /// Tells whether anybody may execute it.
    pub const fn is_executable(&self) -> bool {
        self.mode & EXECUTE != 0
    }
}

/// The files of a RAM disk, by their paths without a slash at the beginning.
#[derive(Debug, Default)]
pub(crate) struct Disk {
    members: BTreeMap<String, Member>,
}

/// Unpacks a RAM disk. Returns `None` if any of its bytes is not understood.
pub(crate) fn read(bytes: &[u8]) -> Option<Disk> {
    read_all(&[bytes])
}

/// Unpacks a RAM disk that consists of several, of which a later one replaces files of those before it.
/// Returns `None` if any of their bytes is not understood.
pub(crate) fn read_all(disks: &[&[u8]]) -> Option<Disk> {
    let mut disk = Disk::default();
    for bytes in disks {
        if bytes.starts_with(b"\x1f\x8b") {
            let mut unpacked = Vec::new();
            let mut decoder = GzDecoder::new(*bytes);
            decoder.by_ref().take(MOST).read_to_end(&mut unpacked).ok()?;
            let is_all = decoder.into_inner().iter().all(|byte| *byte == 0);
            disk.add(&unpacked).filter(|()| is_all)?;
        } else {
            disk.add(bytes)?;
        }
    }
    Some(disk)
}

impl Disk {
    /// Adds the members of all archives in `bytes`, which follow each other with zeros between them.
    fn add(&mut self, bytes: &[u8]) -> Option<()> {
        let (mut at, mut ends) = (0, false);
        while let Some(rest) = bytes.get(at..).filter(|rest| !rest.is_empty()) {
            if rest.first() == Some(&0) {
                at += 1;
                continue;
            }
            let magic = rest.get(..6)?;
            if magic != b"070701" && magic != b"070702" {
                return None;
            }
            let number = |index: usize| {
                let digits = rest.get(6 + 8 * index..14 + 8 * index)?;
                u32::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
            };
            let (mode, links, size, name) = (number(1)?, number(4)?, number(6)?, number(11)?);
            let begin = at.checked_add(HEADER)?;
            let end = begin.checked_add(name as usize)?;
            let path = bytes.get(begin..end)?.strip_suffix(b"\0")?;
            let data = end.next_multiple_of(4);
            let behind = data.checked_add(size as usize)?;
            let contents = bytes.get(data..behind)?;
            at = behind.next_multiple_of(4);
            ends = path == b"TRAILER!!!";
            if !ends {
                let member = Member {
                    mode,
                    data: contents.to_vec(),
                    shares: links > 1 && size == 0,
                };
                self.members
                    .insert(plain(std::str::from_utf8(path).ok()?), member);
            }
        }
        ends.then_some(())
    }

    /// Adds a program at a path without folders, in place of what is there.
    pub fn put_program(&mut self, path: &str, contents: &[u8]) {
        let member = Member {
            mode: REGULAR | EXECUTE,
            data: contents.to_vec(),
            shares: false,
        };
        self.members.insert(plain(path), member);
    }

    /// Returns what is at a path, after all symbolic links are followed. A path that begins without a slash
    /// begins in the first folder, as a path of Linux's first program does.
    pub fn find(&self, path: &str) -> Option<&Member> {
        let mut left: Vec<String> = parts(path).rev().map(str::to_owned).collect();
        let mut here: Vec<String> = Vec::new();
        let mut links = 0;
        let mut is_folder = names_folder(path);
        while let Some(part) = left.pop() {
            if part == ".." {
                here.pop();
                continue;
            }
            here.push(part);
            let member = self.members.get(&here.join("/"))?;
            match member.mode & TYPE {
                LINK => {
                    links += 1;
                    if links > MOST_LINKS {
                        return None;
                    }
                    let target = std::str::from_utf8(&member.data).ok()?;
                    here.pop();
                    if target.starts_with('/') {
                        here.clear();
                    }
                    is_folder |= left.is_empty() && names_folder(target);
                    left.extend(parts(target).rev().map(str::to_owned));
                }
                DIRECTORY => {}
                _ if left.is_empty() && !is_folder => return Some(member),
                _ => return None,
            }
        }
        self.members.get(&here.join("/"))
    }
}

/// Tells whether a path can only be a folder's.
fn names_folder(path: &str) -> bool {
    path.ends_with('/') || path.ends_with("/.")
}

/// Returns the parts of a path that lead somewhere.
fn parts(path: &str) -> impl DoubleEndedIterator<Item = &str> {
    path.split('/').filter(|part| !part.is_empty() && *part != ".")
}

fn plain(path: &str) -> String {
    parts(path).collect::<Vec<_>>().join("/")
}

#[cfg(test)]
mod tests {
    use super::{Disk, read};
    use crate::payload::initramfs::with_init;
    use std::io::Write;

    fn archive(members: &[(&str, u32, u32, &[u8])]) -> Vec<u8> {
        let mut out = Vec::new();
        for (path, mode, links, contents) in members.iter().chain(&[("TRAILER!!!", 0, 1, &b""[..])]) {
            let fields = [
                1,
                *mode,
                0,
                0,
                *links,
                0,
                contents.len() as u32,
                0,
                0,
                0,
                0,
                path.len() as u32 + 1,
                0,
            ];
            let digits = fields.map(|field| format!("{field:08x}")).concat();
            out.extend(format!("070701{digits}{path}\0").into_bytes());
            out.resize(out.len().next_multiple_of(4), 0);
            out.extend(*contents);
            out.resize(out.len().next_multiple_of(4), 0);
        }
        out
    }

    fn data<'d>(disk: &'d Disk, path: &str) -> Option<&'d [u8]> {
        disk.find(path).map(|member| member.data.as_slice())
    }

    #[test]
    fn links_lead_to_files() {
        let bytes = archive(&[
            (".", 0o040_755, 2, b""),
            ("./usr", 0o040_755, 2, b""),
            ("./usr/bin", 0o040_755, 2, b""),
            ("./usr/bin/busybox", 0o100_755, 1, b"box"),
            ("./usr/bin/sh", 0o120_777, 1, b"busybox"),
            ("./bin", 0o120_777, 1, b"usr/bin"),
            ("./init", 0o120_777, 1, b"/bin/../bin/sh"),
            ("./round", 0o120_777, 1, b"round"),
            ("./away", 0o120_777, 1, b"../../nothing"),
            ("./slash", 0o120_777, 1, b"usr/bin/busybox/"),
        ]);
        let disk = read(&bytes).unwrap();
        assert_eq!(data(&disk, "/init"), Some(&b"box"[..]));
        assert_eq!(data(&disk, "bin/sh"), Some(&b"box"[..]));
        for path in [
            "/round", "/away", "/init/x", "/bin/no", "/init/", "bin/sh/.", "/slash",
        ] {
            assert_eq!(data(&disk, path), None, "{path}");
        }
        assert!(!disk.find("/bin").unwrap().is_file());
    }

    #[test]
    fn archives_follow_each_other_and_a_later_file_counts() {
        let first = archive(&[("init", 0o100_644, 1, b"old")]);
        let disk = read(&with_init(&first, b"new")).unwrap();
        assert_eq!(data(&disk, "/init"), Some(&b"new"[..]));
        assert!(disk.find("/init").unwrap().is_executable());
    }

    #[test]
    fn what_is_not_understood_is_not_read() {
        let whole = archive(&[("init", 0o100_755, 2, b"")]);
        assert!(read(&whole).unwrap().find("init").unwrap().shares);
        assert!(read(&[&whole[..], &[0; 512]].concat()).is_some());
        for end in [0, 6, 109, 110, whole.len() - 4] {
            assert!(read(&whole[..end]).is_none(), "{end}");
        }
        assert!(read(&[&whole[..], b"\x1f\x8b"].concat()).is_none());
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(&whole).unwrap();
        let packed = encoder.finish().unwrap();
        assert!(read(&packed).is_some());
        assert!(read(&[&packed[..], &[0; 3]].concat()).is_some());
        assert!(read(&packed.repeat(2)).is_none());
        assert!(read(&packed[..packed.len() - 9]).is_none());
        let mut far = whole;
        far[6 + 48..14 + 48].copy_from_slice(b"ffffffff");
        assert!(read(&far).is_none());
    }
}
