// SPDX-License-Identifier: Apache-2.0
//! `run --gdb`: a command file for the debugger, and how to start it.

use crate::build::prepare::Prepared;
use crate::class::{self, Symbols};
use crate::emulator::launch::TemporaryFile;
use crate::problem::Problem;
use crate::ui::terminal::tell;
use std::fs;

/// Writes the command file and shows the user the command to type in another terminal. The file is there as
/// long as the returned value.
pub(super) fn announce(
    prepared: &Prepared,
    partition: Option<&str>,
    port: u16,
) -> Result<TemporaryFile, Problem> {
    let board = prepared.system().board();
    let debugger = class::of(board).debugger();
    let moved = match debugger.symbols {
        Symbols::AtLoadAddress => format!(" -o {:#x}", board.load_address),
        Symbols::WhereLinked => String::new(),
    };
    let mut commands = format!(
        "set architecture {}\nset confirm off\nsymbol-file {}{moved}\n",
        debugger.architecture,
        prepared.class_binary().display()
    );
    if let Some(name) = partition {
        let image = prepared.image_of(name)?;
        // The symbols of a guest are of use only if it is an ELF file.
        if fs::read(&image).is_ok_and(|bytes| bytes.starts_with(b"\x7fELF")) {
            let mut partitions = prepared.system().partitions().into_iter();
            let moved_by = partitions
                .find(|own| own.name() == name)
                .map_or(0, |own| own.moved_by());
            // gdb adds the distance without regard to the width of addresses.
            let moved_by = i64::from(moved_by.cast_signed());
            commands.push_str(&format!("add-symbol-file {} -o {moved_by}\n", image.display()));
        } else {
            tell(format_args!("bulkhead: {} has no symbols", image.display()));
        }
    }
    commands.push_str(&format!("target remote :{port}\n"));
    let file = TemporaryFile::write("gdb", commands.as_bytes())?;
    tell(format_args!(
        "bulkhead: stopped at the first instruction; in another terminal:\n  gdb-multiarch -x {}",
        file.path().display()
    ));
    if !crate::build::host::is_installed("gdb-multiarch") {
        tell("  (apt-get install gdb-multiarch)");
    }
    Ok(file)
}
