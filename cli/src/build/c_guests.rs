// SPDX-License-Identifier: Apache-2.0
//! Guests in C, built with stock toolchains: for microcontrollers, and programs of Linux.
//!
//! Such a guest is a folder in `guests/` with a file `gcc.options` (or `gcc-aarch64.options` for a program of
//! Linux) in the place of a `Cargo.toml`. The file
//! holds all options of the compiler, sources and linker scripts included. Anybody can do the same as the
//! tool in that folder: `arm-none-eabi-gcc @gcc.options -o PROGRAM`. Each build is a whole one, for the
//! folder has only a dozen short files. The result replaces the old one at once, so a run at the same time
//! sees one or the other.

use crate::problem::Problem;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::{fs, process};

/// The file with the compiler's options in the folder of a guest, and the compiler, of Debian's package
/// `gcc-arm-none-eabi` or `gcc-aarch64-linux-gnu`.
const KINDS: [(&str, &str); 2] = [
    ("gcc.options", "arm-none-eabi-gcc"),
    ("gcc-aarch64.options", "aarch64-linux-gnu-gcc"),
];
/// Folder of the built programs, among the targets of cargo.
const TARGET: &str = "arm-none-eabi";

/// Tells whether the folder of a guest has one in C.
#[must_use]
pub fn is_one(folder: &Path) -> bool {
    kind(folder).is_some()
}

/// Returns the options and the compiler of the guest in a folder, if there is one in C.
fn kind(folder: &Path) -> Option<(&'static str, &'static str)> {
    KINDS
        .into_iter()
        .find(|(options, _)| folder.join(options).is_file())
}

/// Returns the path that the program of a guest has once the program is built.
#[must_use]
pub fn program(target: &Path, name: &str) -> PathBuf {
    target.join(TARGET).join(name)
}

/// Builds the guest in `folder`.
///
/// # Errors
/// There is no compiler, or the compiler fails with a message.
pub fn build(folder: &Path, program: &Path) -> Result<(), Problem> {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let unfinished = program.with_extension(format!("new-{}-{number}", process::id()));
    if let Some(parent) = program.parent() {
        fs::create_dir_all(parent).map_err(Problem::io(parent.display()))?;
    }
    let Some((options, compiler)) = kind(folder) else {
        return Err(Problem::new(format!("{} has no guest in C", folder.display())));
    };
    let mut command = Command::new(compiler);
    command
        .current_dir(folder)
        .arg(format!("@{options}"))
        .arg("-o")
        .arg(&unfinished);
    crate::build::debian::run(&mut command)?;
    fs::rename(&unfinished, program).map_err(Problem::io(program.display()))
}
