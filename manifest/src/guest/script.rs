// SPDX-License-Identifier: Apache-2.0
//! Scripts that become the first program of Linux. The kernel starts a script by the program that its first
//! line names, and knows no encoding besides plain bytes (Linux, fs/binfmt_script.c).

use crate::payload::cpio::Disk;
use crate::payload::elf::{is_elf, loader_of};
use crate::payload::text::{Encoding, encoding};

/// The most bytes of a script's first line that Linux looks at.
const FIRST_LINE: usize = 256;
/// The folders in which the kernel's first program finds others by their names.
const PATH: [&str; 4] = ["/sbin", "/usr/sbin", "/bin", "/usr/bin"];

/// Why something cannot be started, and the remedy.
type Fault = (String, String);

fn fault(why: impl Into<String>, help: impl Into<String>) -> Option<Fault> {
    Some((why.into(), help.into()))
}

/// Returns the reason why the kernel cannot start a file as a script. With `by_shell` a shell starts it,
/// which takes any text in bytes for a script.
pub(super) fn script_fault(script: &[u8], by_shell: bool) -> Option<Fault> {
    if let Some(coded @ (Encoding::Utf16 | Encoding::Utf32)) = encoding(script) {
        let from = if coded == Encoding::Utf16 {
            "UTF-16"
        } else {
            "UTF-32"
        };
        return fault(
            format!("it is {}, of which the kernel reads no letter", coded.name()),
            format!(
                "save it in UTF-8 without a byte order mark (`iconv -f {from} -t UTF-8`, then look at its first byte)"
            ),
        );
    }
    let Some(line) = script.strip_prefix(b"#!") else {
        return if by_shell { None } else { no_mark(script) };
    };
    let line = line.split(|byte| *byte == b'\n').next().unwrap_or_default();
    if line.ends_with(b"\r") {
        return fault(
            "its first line ends with a carriage return, which the kernel takes for a part of the name",
            "save the script with the line ends of Unix",
        );
    }
    if line.iter().all(|byte| matches!(byte, b' ' | b'\t')) {
        return fault(
            "its first line, `#!`, names no program",
            "name the program that reads the script: `#!/bin/sh`",
        );
    }
    None
}

/// Describes a file that does not begin with `#!`.
fn no_mark(script: &[u8]) -> Option<Fault> {
    if script.starts_with(b"\xef\xbb\xbf") {
        return fault(
            "it begins with a byte order mark, three bytes that editors do not show, and the kernel wants `#!` \
             before all else",
            "save it in UTF-8 without a byte order mark (`sed -i '1s/^\\xef\\xbb\\xbf//' FILE`)",
        );
    }
    if script.trim_ascii_start().starts_with(b"#!") {
        return fault(
            "its `#!` comes after spaces or empty lines, and the kernel wants it before all else",
            "let `#!` be the first two bytes of the file",
        );
    }
    fault(
        "it is no ELF file, and does not begin with `#!`",
        "begin the script with a line `#!/bin/sh`: the kernel starts it without a shell",
    )
}

/// Returns the reason why the program that reads a script, or loads a program, is not there to be started.
pub(super) fn interpreter_fault(disk: &Disk, script: &[u8]) -> Option<Fault> {
    if is_elf(script) {
        let loader = loader_of(script).filter(|loader| disk.find(loader).is_none())?;
        return fault(
            format!("its libraries are loaded by `{loader}`, which is not in the RAM disk"),
            "link it with `-static`, or put that file and the libraries into the archive",
        );
    }
    let (interpreter, argument) = first_line(script)?;
    match disk.find(interpreter) {
        Some(found) if found.is_file() && found.is_executable() => {}
        Some(_) => {
            return fault(
                format!("its first line names `{interpreter}`, which cannot be executed"),
                "let the file be executable (`chmod +x`) before it goes into the archive",
            );
        }
        None => {
            return fault(
                format!("its first line names `{interpreter}`, which is not in the RAM disk"),
                "put that program into the archive, or name one that is there",
            );
        }
    }
    // `env` starts the program that its argument names.
    let name = argument.filter(|name| interpreter.ends_with("/env") && !name.starts_with('-'))?;
    let is_there = |folder: &&str| disk.find(&format!("{folder}/{name}")).is_some();
    if name.contains(['/', '=']) || PATH.iter().any(is_there) {
        return None;
    }
    fault(
        format!("its first line lets `env` start `{name}`, which is not in the RAM disk"),
        "put that program into the archive, or name one that is there",
    )
}

/// Returns the program that the first line of a script names, and the first word after it.
fn first_line(script: &[u8]) -> Option<(&str, Option<&str>)> {
    let line = script.strip_prefix(b"#!")?.split(|byte| *byte == b'\n').next()?;
    let line = std::str::from_utf8(line)
        .ok()
        .filter(|line| line.len() < FIRST_LINE)?;
    let mut words = line.split([' ', '\t']).filter(|word| !word.is_empty());
    Some((words.next()?, words.next()))
}
