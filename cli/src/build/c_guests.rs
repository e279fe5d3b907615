// SPDX-License-Identifier: Apache-2.0
//! Guests in C, built with the stock toolchain for microcontrollers, or with another compiler that the guest
//! names in a file `gcc.compiler`.
//!
//! Such a guest is a folder in `guests/` with a file `gcc.options` in the place of a `Cargo.toml`. The file
//! holds all options of the compiler, sources and linker scripts included. Anybody can do the same as the
//! tool in that folder: `arm-none-eabi-gcc @gcc.options -o PROGRAM`. Each build is a whole one, for the
//! folder has only a dozen short files. The result replaces the old one at once, so a run at the same time
//! sees one or the other.
//!
//! A guest may be built of C sources that a crate of the registry brings, the kernel of a well-known RTOS for
//! example. Then a file `gcc.crates` names the folder of a package of cargo that depends on the crate. The
//! `Cargo.lock` of that package pins the crate and its digest. `{CRATE}` in `gcc.options` stands for the
//! folder in which cargo keeps the crate's sources; cargo fetches the sources when they are not there.
//!
//! A guest may be linked with a static library of this repository, for example the services of ARINC 653.
//! Then a file `gcc.archive` names the package of the library and the Rust target that it is built for, and
//! `{PACKAGE}` in `gcc.options` stands for the archive.
//!
//! Headers and libraries of the machine that a guest needs are named in a file `gcc.needs`: a line for each
//! has a path and the Debian package that brings the path. The root's `bulkhead` installs what is missing.

use crate::build::debian;
use crate::problem::Problem;
use serde::Deserialize;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::{env, fs, process};

/// The file with the compiler's options in the folder of a guest.
const OPTIONS: &str = "gcc.options";
/// The file that names another compiler than the usual one.
const COMPILER_FILE: &str = "gcc.compiler";
/// The file that names the package whose dependencies bring sources, by its folder.
const CRATES: &str = "gcc.crates";
/// The file that names a package of this repository that is a static library, and its target.
const ARCHIVE: &str = "gcc.archive";
/// The file that names what the guest needs of the machine.
const NEEDS: &str = "gcc.needs";
/// The usual compiler, of Debian's package `gcc-arm-none-eabi`.
const COMPILER: &str = "arm-none-eabi-gcc";
/// Folder of the built programs, among the targets of cargo.
const TARGET: &str = "arm-none-eabi";

/// Tells whether the folder of a guest has one in C.
#[must_use]
pub fn is_one(folder: &Path) -> bool {
    folder.join(OPTIONS).is_file()
}

/// Returns the beginning of the Rust targets whose processors the guest's compiler is for, if it is the usual
/// compiler: that one makes T32 code.
pub(super) fn targets(folder: &Path) -> Option<&'static str> {
    (!folder.join(COMPILER_FILE).is_file()).then_some("thumb")
}

/// Tells whether the folder of a guest has C for a cross compiler, as a whole or for a part.
pub(super) fn has_c(folder: &Path) -> bool {
    let files = fs::read_dir(folder).into_iter().flatten().flatten();
    let names = files.map(|file| file.file_name().to_string_lossy().into_owned());
    names
        .into_iter()
        .any(|name| name.starts_with("gcc") && name.ends_with(".options"))
}

/// Returns the path that the program of a guest has once the program is built.
#[must_use]
pub fn program(target: &Path, name: &str) -> PathBuf {
    target.join(TARGET).join(name)
}

/// A static library of this repository for a guest in C.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Archive {
    /// The package of cargo that makes it.
    pub package: String,
    /// The Rust target that it is built for.
    pub target: String,
}

/// Returns the static library that the guest in `folder` is linked with, if there is one.
#[must_use]
pub fn archive(folder: &Path) -> Option<Archive> {
    let text = fs::read_to_string(folder.join(ARCHIVE)).ok()?;
    let (package, target) = text.trim().split_once(' ')?;
    Some(Archive {
        package: package.to_owned(),
        target: target.trim().to_owned(),
    })
}

/// The output of `cargo metadata`, as far as it is read here.
#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
}

/// A package in there.
#[derive(Deserialize)]
struct Package {
    name: String,
    manifest_path: PathBuf,
}

/// Builds the guest in `folder`. `archive` is the name of a static library for the guest, and where it is.
///
/// # Errors
/// There is no compiler, the compiler fails with a message, or sources of a crate cannot be had.
pub fn build(folder: &Path, program: &Path, archive: Option<(&str, &Path)>) -> Result<(), Problem> {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let unfinished = program.with_extension(format!("new-{}-{number}", process::id()));
    if let Some(parent) = program.parent() {
        fs::create_dir_all(parent).map_err(Problem::io(parent.display()))?;
    }
    check_needs(folder)?;
    let own = fs::read_to_string(folder.join(COMPILER_FILE)).ok();
    let mut command = Command::new(own.as_deref().map_or(COMPILER, str::trim));
    command.current_dir(folder);
    let crates = fs::read_to_string(folder.join(CRATES)).ok();
    if crates.is_some() || archive.is_some() {
        let path = folder.join(OPTIONS);
        let mut options = fs::read_to_string(&path).map_err(Problem::io(path.display()))?;
        for package in crates.map_or(Ok(Vec::new()), |crates| sources(&folder.join(crates.trim())))? {
            let sources = package.manifest_path.parent().unwrap_or(Path::new("."));
            options = fill(&options, &package.name, sources);
        }
        if let Some((name, file)) = archive {
            options = fill(&options, name, file);
        }
        let filled = unfinished.with_extension(format!("options-{}-{number}", process::id()));
        fs::write(&filled, options).map_err(Problem::io(filled.display()))?;
        let built = debian::run(command.arg(at(&filled)).arg("-o").arg(&unfinished));
        fs::remove_file(&filled).map_err(Problem::io(filled.display()))?;
        built?;
    } else {
        debian::run(command.arg(at(Path::new(OPTIONS))).arg("-o").arg(&unfinished))?;
    }
    fs::rename(&unfinished, program).map_err(Problem::io(program.display()))
}

/// Checks that the machine has what the guest in `folder` needs.
fn check_needs(folder: &Path) -> Result<(), Problem> {
    let needs = fs::read_to_string(folder.join(NEEDS)).unwrap_or_default();
    let pairs = needs.lines().filter_map(|line| line.split_once(' '));
    match pairs.into_iter().find(|(path, _)| !Path::new(path).exists()) {
        None => Ok(()),
        Some((path, package)) => Err(Problem::new(format!(
            "the guest {} needs {path}, which is not on this machine",
            folder.file_name().unwrap_or_default().display()
        ))
        .remedy(format!(
            "install Debian's package {0}: apt-get install --no-install-recommends {0}",
            package.trim()
        ))),
    }
}

/// Returns the argument with which the compiler reads options from a file.
fn at(file: &Path) -> OsString {
    let mut argument = OsString::from("@");
    argument.push(file);
    argument
}

/// Returns what cargo knows of the package in `folder` and of its dependencies, whose sources are fetched.
fn sources(folder: &Path) -> Result<Vec<Package>, Problem> {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command
        .args(["metadata", "--quiet", "--locked", "--format-version", "1"])
        .arg("--manifest-path")
        .arg(folder.join("Cargo.toml"));
    let said = debian::run(&mut command)?;
    let metadata: Metadata = serde_json::from_str(&said)
        .map_err(|error| Problem::new(format!("cargo says of {}: {error}", folder.display())))?;
    Ok(metadata.packages)
}

/// Puts a path in the place of a name in braces. The compiler takes a blank for the end of an option unless a
/// backslash is before the blank.
fn fill(options: &str, name: &str, path: &Path) -> String {
    let path = path.to_string_lossy().replace('\\', "\\\\").replace(' ', "\\ ");
    options.replace(&format!("{{{name}}}"), &path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_crate_in_braces_is_its_folder() {
        let options = "-I{kernel}/include {kernel}/list.c {other}/main.c";
        let filled = "-I/a\\ b/kernel-1/include /a\\ b/kernel-1/list.c {other}/main.c";
        assert_eq!(fill(options, "kernel", Path::new("/a b/kernel-1")), filled);
    }

    #[test]
    fn what_a_guest_needs_and_the_machine_lacks_is_named_with_its_package() {
        let folder = env::temp_dir().join(format!("bulkhead-needs-{}", process::id()));
        fs::create_dir_all(&folder).unwrap();
        fs::write(
            folder.join(NEEDS),
            "/ base-files\n/no/such/header.h libnone-dev\n",
        )
        .unwrap();
        let said = check_needs(&folder).unwrap_err().display();
        fs::remove_dir_all(&folder).unwrap();
        assert!(
            said.contains("/no/such/header.h") && said.contains("libnone-dev"),
            "{said}"
        );
    }

    #[test]
    fn a_guest_names_its_static_library() {
        let guests = Path::new(env!("CARGO_MANIFEST_DIR")).join("../guests");
        let named = archive(&guests.join("demo/apex-c")).expect("it is linked with one");
        assert_eq!(named.package, "bulkhead-apex-c");
        assert_eq!(archive(&guests.join("demo/mcu-task")), None);
    }
}
