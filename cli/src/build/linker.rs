// SPDX-License-Identifier: Apache-2.0
//! Links the class binary of a class that executes code in place.
//!
//! The board's data says where the hypervisor is on such a board, and nothing can be moved once it is linked.
//! So cargo makes an archive, the same for all boards. Linking the archive with the package's script for the
//! places of one board takes a tenth of a second. The tool links each time, because an archive that cargo has
//! just found to be up to date may be older than the one that was linked last. The result replaces the old
//! one at once, so a run at the same time sees one or the other.

use crate::problem::Problem;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{self, Command};
use std::sync::atomic::{AtomicU32, Ordering};

/// The way to link a class binary for a board.
#[derive(Debug)]
pub struct Link {
    /// The linker's name of the format.
    pub emulation: &'static str,
    /// Symbols of the script, and their values: the places that the board gives.
    pub symbols: Vec<(&'static str, u64)>,
    /// The advice if something does not fit.
    pub remedy: String,
}

/// Returns the path of the class binary `name` that is linked in `folder`. The file's name has the values of
/// all symbols.
fn program(folder: &Path, name: &str, link: &Link) -> PathBuf {
    let values: Vec<String> = link
        .symbols
        .iter()
        .map(|(_, value)| format!("{value:x}"))
        .collect();
    folder.join(format!("{name}-{}", values.join("+")))
}

/// Links `archive` with `script` for a board, by the `linker`, and returns the path of the class binary
/// `name`.
///
/// # Errors
/// The error carries the message of the linker: the board may leave too little room.
pub fn link(
    mut linker: Command,
    archive: &Path,
    script: &Path,
    name: &str,
    link: &Link,
) -> Result<PathBuf, Problem> {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let program = program(archive.parent().unwrap_or(Path::new("")), name, link);
    let mut unfinished = program.clone().into_os_string();
    unfinished.push(format!(".new-{}-{number}", process::id()));
    linker.args(["-m", link.emulation, "--gc-sections", "--build-id=none", "-T"]);
    linker.arg(script).arg(archive).arg("-o").arg(&unfinished);
    for (symbol, value) in &link.symbols {
        linker.arg(format!("--defsym={symbol}={value:#x}"));
    }
    crate::build::debian::run(&mut linker).map_err(|problem| problem.remedy(link.remedy.as_str()))?;
    fs::rename(&unfinished, &program).map_err(Problem::io(program.display()))?;
    Ok(program)
}
