// SPDX-License-Identifier: Apache-2.0
//! `run --gdb`: a command file for the debugger, and how to start it.

use crate::prepare::Prepared;
use crate::problem::Problem;
use std::fs;

/// Writes the command file and tells the user what to type in another terminal.
pub(super) fn announce(prepared: &Prepared, partition: Option<&str>, port: u16) -> Result<(), Problem> {
    let hypervisor = prepared.class_binary().display().to_string();
    let mut commands = format!(
        "set architecture aarch64\nset confirm off\nsymbol-file {hypervisor} -o {:#x}\n",
        prepared.system().board().load_address
    );
    if let Some(name) = partition {
        let image = prepared.image_of(name)?;
        // The symbols of a guest are of use only if it is an ELF file.
        if fs::read(&image).is_ok_and(|bytes| bytes.starts_with(b"\x7fELF")) {
            commands.push_str(&format!("add-symbol-file {}\n", image.display()));
        } else {
            eprintln!("bulkhead: {} has no symbols", image.display());
        }
    }
    commands.push_str(&format!("target remote :{port}\n"));
    let path = std::env::temp_dir().join(format!("bulkhead-{}.gdb", std::process::id()));
    fs::write(&path, commands).map_err(Problem::io(path.display()))?;
    eprintln!(
        "bulkhead: stopped at the first instruction; in another terminal:\n  gdb-multiarch -x {}",
        path.display()
    );
    if !crate::host::is_installed("gdb-multiarch") {
        eprintln!("  (apt-get install gdb-multiarch)");
    }
    Ok(())
}
