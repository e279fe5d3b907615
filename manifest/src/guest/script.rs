// SPDX-License-Identifier: Apache-2.0
//! Scripts that become the first program of Linux. The kernel starts a script by the program that its first
//! line names, and knows no encoding besides plain bytes (Linux, fs/binfmt_script.c).

use super::Context;
use super::linux_program::elf_fault;
use crate::payload::elf::{is_elf, loader_of};
use crate::payload::rootfs::{Disk, Member};
use crate::payload::text::{Encoding, encoding};

/// The bytes of a script in which Linux looks for its first line (`BINPRM_BUF_SIZE`).
const FIRST_LINE: usize = 256;
/// The programs that Linux starts one for the other, the first script among them (Linux, fs/exec.c,
/// `exec_binprm`).
const MOST_PROGRAMS: usize = 6;
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

/// Returns the reason why the program that reads a script, or loads a program, is not there to be started. A
/// script can be read by another script, and so on.
pub(super) fn interpreter_fault(context: &Context<'_>, disk: &Disk, first: &[u8]) -> Option<Fault> {
    let mut script = first;
    for _ in 0..MOST_PROGRAMS {
        if is_elf(script) {
            return loader_fault(disk, script);
        }
        let (interpreter, argument) = match first_line(script) {
            FirstLine::Names(interpreter, argument) => (interpreter, argument),
            FirstLine::TooLong => return too_long(),
            FirstLine::Unknown => return None,
        };
        let found = match interpreter_in(disk, interpreter) {
            Ok(found) => found,
            Err(fault) => return Some(fault),
        };
        if let Some(fault) = env_fault(disk, interpreter, argument) {
            return Some(fault);
        }
        script = &found.data;
        let reason = if is_elf(script) {
            elf_fault(context, script)
        } else {
            script_fault(script, false)
        };
        if let Some((why, help)) = reason {
            return fault(format!("its first line names `{interpreter}`, and {why}"), help);
        }
    }
    fault(
        "the first lines of scripts name each other in a circle, or too many of them: the kernel gives up after \
         five",
        "name a program that is no script: `#!/bin/sh`",
    )
}

fn loader_fault(disk: &Disk, program: &[u8]) -> Option<Fault> {
    let loader = loader_of(program).filter(|loader| disk.find(loader).is_none())?;
    fault(
        format!("its libraries are loaded by `{loader}`, which is not in the RAM disk"),
        "link it with `-static`, or put that file and the libraries into the archive",
    )
}

fn too_long() -> Option<Fault> {
    fault(
        format!(
            "its first line does not end within {FIRST_LINE} bytes, and neither does the name of the program"
        ),
        "give the program a shorter path",
    )
}

/// Returns the program that the first line of a script names.
///
/// # Errors
/// The reason why it cannot be started.
fn interpreter_in<'d>(disk: &'d Disk, interpreter: &str) -> Result<&'d Member, Fault> {
    match disk.find(interpreter) {
        Some(found) if found.is_file() && found.is_executable() => Ok(found),
        Some(_) => Err((
            format!("its first line names `{interpreter}`, which cannot be executed"),
            "let the file be executable (`chmod +x`) before it goes into the archive".to_owned(),
        )),
        None => Err((
            format!("its first line names `{interpreter}`, which is not in the RAM disk"),
            "put that program into the archive, or name one that is there".to_owned(),
        )),
    }
}

/// Returns the reason why the program that `env` is asked for is not there to be started.
fn env_fault(disk: &Disk, interpreter: &str, argument: Option<&str>) -> Option<Fault> {
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

/// The first line of a script.
enum FirstLine<'s> {
    /// A program, and the first word after the program.
    Names(&'s str, Option<&'s str>),
    /// The name of the program does not end within the bytes that the kernel reads.
    TooLong,
    /// There is none, or one that this module does not understand.
    Unknown,
}

/// Reads the first line of a script as the kernel does.
fn first_line(script: &[u8]) -> FirstLine<'_> {
    let read = script.get(..FIRST_LINE).unwrap_or(script);
    let Some(rest) = read.strip_prefix(b"#!") else {
        return FirstLine::Unknown;
    };
    let line = rest.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let ends = line.len() < rest.len() || read.len() < FIRST_LINE;
    let line = line.trim_ascii_start();
    let mut words = line.split(|byte| matches!(byte, b' ' | b'\t' | 0));
    let Some(name) = words.next().filter(|name| !name.is_empty()) else {
        return FirstLine::Unknown;
    };
    if !ends && name.len() == line.len() {
        return FirstLine::TooLong;
    }
    let argument = words.find(|word| !word.is_empty());
    match (
        std::str::from_utf8(name),
        argument.map(std::str::from_utf8).transpose(),
    ) {
        (Ok(name), Ok(argument)) => FirstLine::Names(name, argument),
        _ => FirstLine::Unknown,
    }
}
