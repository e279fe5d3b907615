// SPDX-License-Identifier: Apache-2.0
//! Puts modules and a script into an initial RAM disk.
//!
//! Linux unpacks one archive after the other if they are concatenated at multiples of four bytes, each
//! compressed or not. A later file replaces an earlier one of the same name (kernel documentation,
//! `driver-api/early-userspace/buffer-format`). So the script becomes a small archive of its own after the
//! given one, and the big archive needs no unpacking.

/// Returns `archive` with a program or script that becomes `/init`, as a VM with that `init` gets it.
#[must_use]
pub fn with_init(archive: &[u8], program: &[u8]) -> Vec<u8> {
    join(archive, None, Some(program))
}

/// Returns `archive` with an archive of modules after it, and with a script. The `/init` of the modules loads
/// them and becomes `/sbin/init`, which is then the script. Without modules the script is `/init`.
pub(crate) fn join(archive: &[u8], modules: Option<&[u8]>, script: Option<&[u8]>) -> Vec<u8> {
    let mut out = archive.to_vec();
    if let Some(modules) = modules {
        pad(&mut out);
        out.extend_from_slice(modules);
    }
    if let Some(script) = script {
        pad(&mut out);
        let name = if modules.is_some() { "sbin/init" } else { "init" };
        entry(&mut out, name, 0o100_755, script);
        entry(&mut out, "TRAILER!!!", 0, &[]);
    }
    out
}

/// Appends a member in the format `newc`: thirteen numbers of eight hex digits, name, data.
fn entry(out: &mut Vec<u8>, name: &str, mode: u32, data: &[u8]) {
    let (links, name_size) = (1, name.len() + 1);
    let fields = [
        1,
        mode as usize,
        0,
        0,
        links,
        0,
        data.len(),
        0,
        0,
        0,
        0,
        name_size,
        0,
    ];
    out.extend_from_slice(b"070701");
    for field in fields {
        out.extend_from_slice(format!("{field:08x}").as_bytes());
    }
    out.extend_from_slice(name.as_bytes());
    out.push(0);
    pad(out);
    out.extend_from_slice(data);
    pad(out);
}

fn pad(out: &mut Vec<u8>) {
    out.resize(out.len().next_multiple_of(4), 0);
}

#[cfg(test)]
mod tests {
    use super::join;

    #[test]
    fn script_follows_aligned() {
        let out = join(b"\x1f\x8bxyz", None, Some(b"#!/bin/sh\n"));
        assert_eq!(&out[..8], b"\x1f\x8bxyz\0\0\0");
        assert_eq!(&out[8..14], b"070701");
        // A header of 110 bytes, the name with its NUL, and padding to four bytes.
        assert_eq!(&out[8 + 110..8 + 115], b"init\0");
        assert_eq!(&out[8 + 116..8 + 126], b"#!/bin/sh\n");
        assert_eq!(out.len() % 4, 0);
        let text = String::from_utf8_lossy(&out);
        assert!(text.contains("TRAILER!!!"));
    }

    #[test]
    fn modules_come_between_and_keep_their_init() {
        let out = join(b"abc", Some(b"modules!"), Some(b"#!/bin/sh\n"));
        assert_eq!(&out[..12], b"abc\0modules!");
        assert_eq!(&out[12 + 110..12 + 120], b"sbin/init\0");
        assert_eq!(join(b"abc", Some(b"m"), None), b"abc\0m");
    }
}
