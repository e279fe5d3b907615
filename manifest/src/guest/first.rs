// SPDX-License-Identifier: Apache-2.0
//! The first thing that a partition executes: the first instruction of its image, the first program of its
//! Linux.
//!
//! Some files can be loaded and can never run. The reason is known here, where the user reads it, and not on
//! the board, where the guest says nothing.

use super::Context;
use crate::diagnostic::{Code, Diagnostic, Report};
use crate::payload::elf::{is_elf, machine_name, machine_of};
use crate::payload::{Bytes, Loader};

/// Loads the program that becomes the first one of Linux: `Some(None)` if there is none, `None` if something
/// was reported.
#[expect(
    clippy::option_option,
    reason = "absence and failure are different things here"
)]
pub(crate) fn load_init(
    context: &Context<'_>,
    loader: &mut Loader<'_>,
    report: &mut Report,
) -> Option<Option<Bytes>> {
    let Some(name) = &context.spec.init else {
        return Some(None);
    };
    let contents = loader.load(name, report)?;
    let Some((why, help)) = init_fault(context, &contents) else {
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
pub(super) fn init_fault(context: &Context<'_>, contents: &[u8]) -> Option<(String, &'static str)> {
    if is_elf(contents) {
        let machine = machine_of(contents)?;
        let mut programs = context.board.class.facts().programs.iter();
        let fits = programs.any(|program| program.machine == machine);
        let why = format!(
            "it is an ELF file for machine {machine} ({})",
            machine_name(machine)
        );
        return (!fits).then_some((why, "build it for the processor of the VM"));
    }
    if !contents.starts_with(b"#!") {
        // With modules, a shell starts it, and takes anything for a script.
        return context.spec.modules.is_empty().then(|| {
            (
                "it is no ELF file, and does not begin with `#!`".to_owned(),
                "begin the script with a line `#!/bin/sh`: the kernel starts it without a shell",
            )
        });
    }
    let line = contents.split(|byte| *byte == b'\n').next()?;
    line.ends_with(b"\r").then(|| {
        (
            "its first line ends with a carriage return, which the kernel takes for a part of the name"
                .to_owned(),
            "save the script with the line ends of Unix",
        )
    })
}
