// SPDX-License-Identifier: Apache-2.0
//! Guests in the formats with which a vendor's build often ends. The stock tool of that build converts them.

use crate::case::Case;
use bulkhead::build::artifacts::Workspace;
use bulkhead::emulator::launch::TemporaryFile;
use bulkhead::problem::Problem;
use bulkhead::ui::progress::Progress;
use std::process::Command;

/// The program that converts, of the package that Debian's compiler for microcontrollers needs.
const OBJCOPY: &str = "arm-none-eabi-objcopy";

/// The manifest of a case that names the converted files.
pub(crate) struct Converted {
    pub text: String,
    /// The files are there as long as this value.
    _files: Vec<TemporaryFile>,
}

impl Converted {
    /// Converts the guests that the case names.
    ///
    /// # Errors
    /// A guest cannot be built or converted.
    pub(crate) fn new(case: &Case, progress: &Progress) -> Result<Self, Problem> {
        let mut text = case.manifest.clone();
        let mut files = Vec::new();
        for (guest, format) in &case.objcopy {
            let file = convert(guest, format, progress)?;
            let path = file.path().display().to_string();
            let named = format!("\"@guests/{guest}\"");
            if !text.contains(&named) {
                return Err(Problem::new(format!(
                    "the manifest does not have {named}, which is converted"
                )));
            }
            text = text.replace(&named, &format!("\"{path}\""));
            files.push(file);
        }
        Ok(Self { text, _files: files })
    }
}

/// Writes a guest in another format.
fn convert(guest: &str, format: &str, progress: &Progress) -> Result<TemporaryFile, Problem> {
    let workspace = Workspace::locate()?;
    let program = format!("guest-{guest}");
    workspace.build_once(std::slice::from_ref(&program), progress)?;
    let file = TemporaryFile::write(format, &[])?;
    let mut command = Command::new(OBJCOPY);
    command.args(["-O", format]).arg(workspace.program(&program));
    let done = command.arg(file.path()).status();
    match done.map_err(Problem::io(OBJCOPY))? {
        status if status.success() => Ok(file),
        status => Err(Problem::new(format!("{OBJCOPY} of {guest}: {status}"))),
    }
}
