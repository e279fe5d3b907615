// SPDX-License-Identifier: Apache-2.0
//! Reads an initial RAM disk as Linux unpacks it: cpio archives in the format `newc`, plain or compressed by
//! gzip (kernel documentation, `driver-api/early-userspace/buffer-format`).
//!
//! The reader takes nothing from bytes that it does not understand to the last one: then it is not known what
//! Linux finds.

use flate2::bufread::GzDecoder;
use std::io::Read;

use super::rootfs::{Disk, Identity};

/// Bytes of a header: a magic number and thirteen numbers of eight hex digits each.
const HEADER: usize = 110;
/// The most bytes of an unpacked archive that are looked at.
const MOST: u64 = 512 << 20;
/// The bytes with which an xz file begins; then comes the number of the check (the .xz file format, 2.1.1).
const XZ: &[u8] = b"\xfd7zXZ\0\0";
/// The only check of an xz file that Linux knows, beside files without a check (kernel documentation,
/// `staging/xz`).
const XZ_CRC32: u8 = 1;

/// Tells whether an archive is an xz file with a check that Linux does not know.
pub(crate) fn has_foreign_check(bytes: &[u8]) -> bool {
    let check = bytes.strip_prefix(XZ).and_then(<[u8]>::first);
    check.is_some_and(|check| *check > XZ_CRC32)
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
            add(&mut disk, &unpacked).filter(|()| is_all)?;
        } else {
            add(&mut disk, bytes)?;
        }
    }
    Some(disk)
}

/// Adds the members of all archives in `bytes`, which follow each other with zeros between them.
fn add(disk: &mut Disk, bytes: &[u8]) -> Option<()> {
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
        let identity = Identity {
            device: [number(7)?, number(8)?],
            number: number(0)?,
        };
        let begin = at.checked_add(HEADER)?;
        let end = begin.checked_add(name as usize)?;
        let path = bytes.get(begin..end)?.strip_suffix(b"\0")?;
        let data = end.next_multiple_of(4);
        let behind = data.checked_add(size as usize)?;
        let contents = bytes.get(data..behind)?;
        at = behind.next_multiple_of(4);
        ends = path == b"TRAILER!!!";
        if ends {
            disk.forget_identities();
        } else {
            let shared = (links > 1).then_some(identity);
            disk.put(std::str::from_utf8(path).ok()?, mode, shared, contents);
        }
    }
    ends.then_some(())
}

#[cfg(test)]
mod tests {
    use super::{Disk, has_foreign_check, read};
    use crate::payload::initramfs::with_init;
    use std::io::Write;

    /// Makes an archive of members: path, mode, links, number of the file, contents.
    fn archive(members: &[(&str, u32, u32, u32, &[u8])]) -> Vec<u8> {
        let mut out = Vec::new();
        for (path, mode, links, file, contents) in members.iter().chain(&[("TRAILER!!!", 0, 1, 0, &b""[..])])
        {
            let (size, name) = (contents.len() as u32, path.len() as u32 + 1);
            let fields = [*file, *mode, 0, 0, *links, 0, size, 0, 0, 0, 0, name, 0];
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
            (".", 0o040_755, 2, 0, b""),
            ("./usr", 0o040_755, 2, 0, b""),
            ("./usr/bin", 0o040_755, 2, 0, b""),
            ("./usr/bin/busybox", 0o100_755, 1, 0, b"box"),
            ("./usr/bin/sh", 0o120_777, 1, 0, b"busybox"),
            ("./bin", 0o120_777, 1, 0, b"usr/bin"),
            ("./init", 0o120_777, 1, 0, b"/bin/../bin/sh"),
            ("./round", 0o120_777, 1, 0, b"round"),
            ("./away", 0o120_777, 1, 0, b"../../nothing"),
            ("./slash", 0o120_777, 1, 0, b"usr/bin/busybox/"),
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
        let first = archive(&[("init", 0o100_644, 1, 0, b"old")]);
        let disk = read(&with_init(&first, b"new")).unwrap();
        assert_eq!(data(&disk, "/init"), Some(&b"new"[..]));
        assert!(disk.find("/init").unwrap().is_executable());
    }

    #[test]
    fn a_member_before_its_folder_is_lost() {
        let bytes = archive(&[
            ("sbin/init", 0o100_755, 1, 0, b"early"),
            ("sbin", 0o040_755, 2, 0, b""),
            ("sbin/late", 0o100_755, 1, 0, b"late"),
            ("root/own", 0o100_755, 1, 0, b"own"),
        ]);
        let disk = read(&bytes).unwrap();
        assert_eq!(data(&disk, "/sbin/init"), None);
        assert_eq!(data(&disk, "/sbin/late"), Some(&b"late"[..]));
        assert_eq!(data(&disk, "/root/own"), Some(&b"own"[..]));
    }

    #[test]
    fn a_member_is_put_where_a_link_leads() {
        let bytes = archive(&[
            ("usr", 0o040_755, 2, 0, b""),
            ("usr/sbin", 0o040_755, 2, 0, b""),
            ("sbin", 0o120_777, 1, 0, b"usr/sbin"),
            ("sbin/init", 0o100_755, 1, 0, b"program"),
        ]);
        let disk = read(&bytes).unwrap();
        for path in ["/sbin/init", "/usr/sbin/init"] {
            assert_eq!(data(&disk, path), Some(&b"program"[..]), "{path}");
        }
    }

    #[test]
    fn hard_links_are_one_file_within_one_archive() {
        let first = archive(&[
            ("one", 0o100_755, 2, 7, b""),
            ("two", 0o100_755, 2, 7, b"program"),
            ("other", 0o100_755, 2, 8, b""),
        ]);
        let second = archive(&[("three", 0o100_755, 2, 8, b"program")]);
        let disk = read(&[first, second].concat()).unwrap();
        for (path, contents) in [
            ("/one", &b"program"[..]),
            ("/two", b"program"),
            ("/other", b""),
            ("/three", b"program"),
        ] {
            assert_eq!(data(&disk, path), Some(contents), "{path}");
        }
    }

    #[test]
    fn a_member_of_another_type_takes_the_place_of_a_file_and_not_of_a_full_folder() {
        let bytes = archive(&[
            ("full", 0o040_755, 2, 0, b""),
            ("full/file", 0o100_755, 1, 0, b"kept"),
            ("full", 0o100_755, 1, 0, b"lost"),
            ("link", 0o120_777, 1, 0, b"full/file"),
            ("link", 0o100_755, 1, 0, b"new"),
        ]);
        let disk = read(&bytes).unwrap();
        assert_eq!(data(&disk, "/full/file"), Some(&b"kept"[..]));
        assert_eq!(data(&disk, "/link"), Some(&b"new"[..]));
    }

    #[test]
    fn checks_of_xz_that_linux_knows_are_none_and_crc32() {
        let file = |check: u8| [b"\xfd7zXZ\0\0", &[check][..]].concat();
        assert_eq!(
            [0, 1, 4, 10].map(|check| has_foreign_check(&file(check))),
            [false, false, true, true]
        );
    }

    #[test]
    fn what_is_not_understood_is_not_read() {
        let whole = archive(&[("init", 0o100_755, 2, 0, b"")]);
        assert_eq!(data(&read(&whole).unwrap(), "init"), Some(&b""[..]));
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
