// SPDX-License-Identifier: Apache-2.0
//! Links the class binary of a class that executes code in place.
//!
//! Where the hypervisor is on such a board its data says, and nothing can be moved once it is linked. So cargo makes an archive, the same
//! for all boards, and linking it with the package's script for the places of one board takes a tenth of a second. It is
//! done each time: what cargo has just found to be up to date may be older than what was linked last. The result replaces the old one at once, so a
//! run at the same time sees one or the other.

use crate::problem::Problem;
use bulkhead_manifest::Board;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{self, Command};
use std::sync::atomic::{AtomicU32, Ordering};

/// Symbols of a script for the hypervisor's memory.
const SYMBOLS: [&str; 4] = ["__own_code", "__own_code_size", "__own_ram", "__own_ram_size"];

/// Where the class binary `name` is that is linked for `board` in `folder`.
fn program(folder: &Path, name: &str, board: &Board) -> PathBuf {
    let [code, code_size, ram, ram_size] = places(board);
    folder.join(format!("{name}-{code:x}+{code_size:x}-{ram:x}+{ram_size:x}"))
}

/// The values of [`SYMBOLS`].
fn places(board: &Board) -> [u64; 4] {
    let (code, ram) = (board.own_code, board.own_ram);
    [code.base, code.size, ram.base, ram.size]
}

/// Links `archive` with `script` for `board`, by the `linker`, and says where the class binary `name` is.
///
/// # Errors
/// What the linker says: the board may leave too little.
pub fn link(
    mut linker: Command,
    (archive, script): (&Path, &Path),
    name: &str,
    board: &Board,
) -> Result<PathBuf, Problem> {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let program = program(archive.parent().unwrap_or(Path::new("")), name, board);
    let mut unfinished = program.clone().into_os_string();
    unfinished.push(format!(".new-{}-{number}", process::id()));
    linker.args(["-m", "armelf", "--gc-sections", "--build-id=none", "-T"]);
    linker.arg(script).arg(archive).arg("-o").arg(&unfinished);
    for (symbol, value) in SYMBOLS.iter().zip(places(board)) {
        linker.arg(format!("--defsym={symbol}={value:#x}"));
    }
    crate::debian::run(&mut linker).map_err(|problem| {
        problem.remedy(format!(
            "if something does not fit: give the hypervisor more memory in the file of board `{}` (`hypervisor.code`, `hypervisor.ram`)",
            board.name
        ))
    })?;
    fs::rename(&unfinished, &program).map_err(Problem::io(program.display()))?;
    Ok(program)
}
