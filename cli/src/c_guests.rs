// SPDX-License-Identifier: Apache-2.0
//! Guests in C, built with the stock toolchain for microcontrollers.
//!
//! Such a guest is a folder of `guests/` with a file [`OPTIONS`] in the place of a `Cargo.toml`: everything that the compiler is
//! told, sources and linker scripts included. What the tool does is what anybody can do in that folder:
//! `arm-none-eabi-gcc @gcc.options -o PROGRAM`. Each build is a whole one, for there are a dozen short files in it; the result replaces
//! the old one at once, so a run at the same time sees one or the other.

use crate::problem::Problem;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{fs, process};

/// The file with the compiler's options in the folder of a guest.
const OPTIONS: &str = "gcc.options";
/// The compiler, of Debian's package `gcc-arm-none-eabi`.
const COMPILER: &str = "arm-none-eabi-gcc";
/// Folder of what is built, among the targets of cargo.
const TARGET: &str = "arm-none-eabi";

/// Whether the folder of a guest has one in C.
#[must_use]
pub fn is_one(folder: &Path) -> bool {
    folder.join(OPTIONS).is_file()
}

/// Where the program of a guest is, once it is built.
#[must_use]
pub fn program(target: &Path, name: &str) -> PathBuf {
    target.join(TARGET).join(name)
}

/// Builds the guest in `folder`.
///
/// # Errors
/// What the compiler says, or that there is none.
pub fn build(folder: &Path, program: &Path) -> Result<(), Problem> {
    let unfinished = program.with_extension(format!("new-{}", process::id()));
    if let Some(parent) = program.parent() {
        fs::create_dir_all(parent).map_err(Problem::io(parent.display()))?;
    }
    let mut command = Command::new(COMPILER);
    command
        .current_dir(folder)
        .arg(format!("@{OPTIONS}"))
        .arg("-o")
        .arg(&unfinished);
    crate::debian::run(&mut command)?;
    fs::rename(&unfinished, program).map_err(Problem::io(program.display()))
}
