// SPDX-License-Identifier: Apache-2.0
//! Guests in C, built with the stock toolchain for microcontrollers, or with another compiler that the guest
//! names in a file `gcc.compiler`.
//!
//! Such a guest is a folder in `guests/` with a file `gcc.options` in the place of a `Cargo.toml`. The file
//! holds all options of the compiler, sources and linker scripts included. Anybody can do the same as the
//! tool in that folder: `arm-none-eabi-gcc @gcc.options -o PROGRAM`. Each build is a whole one, for the
//! folder has only a dozen short files. The result replaces the old one at once, so a run at the same time
//! sees one or the other.

use crate::problem::Problem;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::{fs, process};

/// The file with the compiler's options in the folder of a guest.
const OPTIONS: &str = "gcc.options";
/// The file that names another compiler than the usual one.
const COMPILER_FILE: &str = "gcc.compiler";
/// The usual compiler, of Debian's package `gcc-arm-none-eabi`.
const COMPILER: &str = "arm-none-eabi-gcc";
/// Folder of the built programs, among the targets of cargo.
const TARGET: &str = "arm-none-eabi";

/// Tells whether the folder of a guest has one in C.
#[must_use]
pub fn is_one(folder: &Path) -> bool {
    folder.join(OPTIONS).is_file()
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
    let own = fs::read_to_string(folder.join(COMPILER_FILE)).ok();
    let mut command = Command::new(own.as_deref().map_or(COMPILER, str::trim));
    command
        .current_dir(folder)
        .arg(format!("@{OPTIONS}"))
        .arg("-o")
        .arg(&unfinished);
    crate::build::debian::run(&mut command)?;
    fs::rename(&unfinished, program).map_err(Problem::io(program.display()))
}
