// SPDX-License-Identifier: Apache-2.0
//! The first thing that a partition executes: the first instruction of its image, the first program of its
//! Linux.
//!
//! Some files can be loaded and can never run. The reason is known here, where the user reads it, and not on
//! the board, where the guest says nothing.

use super::Context;
use super::linux_program::elf_fault;
use super::script::{interpreter_fault, script_fault};
use crate::diagnostic::{Code, Diagnostic, Report};
use crate::payload::cpio;
use crate::payload::elf::is_elf;
use crate::payload::{Bytes, Loader};

/// Loads the program that becomes the first one of Linux: `Some(None)` if there is none, `None` if something
/// was reported. It goes after `archives` into the RAM disk, where a script finds the program that reads it.
#[expect(
    clippy::option_option,
    reason = "absence and failure are different things here"
)]
pub(crate) fn load_init(
    context: &Context<'_>,
    loader: &mut Loader<'_>,
    archives: &[&[u8]],
    report: &mut Report,
) -> Option<Option<Bytes>> {
    let Some(name) = &context.spec.init else {
        return Some(None);
    };
    let contents = loader.load(name, report)?;
    let missing = || {
        let mut disk = cpio::read_all(archives)?;
        // With modules, the tool's own `/init` is there.
        if context.spec.modules.is_empty() {
            disk.put_program("/init", &contents);
        }
        interpreter_fault(context, &disk, &contents)
    };
    let Some((why, help)) = init_fault(context, &contents).or_else(missing) else {
        return Some(Some(contents));
    };
    let message = format!("`{}` cannot become `/init`: {why}", name.value);
    report.push(
        Diagnostic::at(Code::BadInit, name.place, message)
            .label("Linux would panic for want of a first program")
            .help(help),
    );
    None
}

/// Returns the reason why Linux cannot start this file as its first program, and the remedy.
pub(super) fn init_fault(context: &Context<'_>, contents: &[u8]) -> Option<(String, String)> {
    if is_elf(contents) {
        return elf_fault(context, contents);
    }
    // With modules, a shell starts it, and takes anything for a script.
    script_fault(contents, !context.spec.modules.is_empty())
}
