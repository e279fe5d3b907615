// SPDX-License-Identifier: Apache-2.0
//! The first program of a Linux that begins with a RAM disk of the user's own.
//!
//! Linux starts `/init` of the RAM disk, or what `rdinit=` of the command line names. Without such a file it
//! looks for a disk with its root file system, and panics if none is named. A file that it cannot start is
//! the end as well, unless another one is found by chance.

use super::Context;
use super::first::init_fault;
use super::script::interpreter_fault;
use crate::diagnostic::{Code, Diagnostic, Report};
use crate::payload::Bytes;
use crate::payload::cpio;
use crate::payload::rootfs::Disk;

/// Words of a command line that say that the root file system is elsewhere.
const ELSEWHERE: [&str; 3] = ["root=", "nfsroot=", "noinitrd"];

/// Warns of a RAM disk in which Linux finds no first program that it can start. Says nothing of one whose
/// contents are not known for certain: an archive that is compressed otherwise, or that is followed by
/// something else; and nothing of the tool's own RAM disks.
pub(crate) fn check(context: &Context<'_>, archive: Option<&Bytes>, report: &mut Report) {
    let spec = context.spec;
    let (Some(name), Some(archive)) = (&spec.ramdisk, archive) else {
        return;
    };
    if cpio::has_foreign_check(archive) {
        let message = format!(
            "Linux cannot unpack `{}`: it is an xz file with a check other than CRC32",
            name.value
        );
        report.push(
            Diagnostic::at(Code::NoFirstProgram, name.place, message)
                .label("the kernel boots without a RAM disk")
                .help("pack it with `xz --check=crc32`"),
        );
        return;
    }
    let is_ours = name.value.starts_with('@') || spec.init.is_some() || !spec.modules.is_empty();
    let arguments = spec.bootargs.as_ref().map_or("", |bootargs| &bootargs.value);
    let mut words = arguments.split_ascii_whitespace();
    if is_ours
        || words
            .clone()
            .any(|word| ELSEWHERE.iter().any(|what| word.starts_with(what)))
    {
        return;
    }
    let named = words.rfind(|word| word.starts_with("rdinit="));
    let path = named.map_or("/init", |word| &word["rdinit=".len()..]);
    let Some(disk) = cpio::read(archive) else { return };
    if let Some((why, help)) = fault(context, &disk, path) {
        let message = format!(
            "Linux cannot start the first program `{path}` of `{}`: {why}",
            name.value
        );
        report.push(
            Diagnostic::at(Code::NoFirstProgram, name.place, message)
                .label("the kernel boots, then panics, unless it finds another program")
                .help(help),
        );
    }
}

/// Returns the reason why Linux cannot start the file at `path`, and the remedy.
fn fault(context: &Context<'_>, disk: &Disk, path: &str) -> Option<(String, String)> {
    let executable = "let the file be executable (`chmod +x`) before it goes into the archive";
    let Some(first) = disk.find(path) else {
        let help = "put one there, or name another file with `rdinit=` in `bootargs`; ignore this if the \
                    kernel has a first program built in, or is not Linux";
        return Some(("there is no such file".to_owned(), help.to_owned()));
    };
    if !first.is_file() {
        return Some((
            "it is no plain file".to_owned(),
            "put a program or script there".to_owned(),
        ));
    }
    if !first.is_executable() {
        return Some(("it is not executable".to_owned(), executable.to_owned()));
    }
    init_fault(context, &first.data).or_else(|| interpreter_fault(context, disk, &first.data))
}
