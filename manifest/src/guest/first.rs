// SPDX-License-Identifier: Apache-2.0
//! The first thing that a partition executes: the first instruction of its image, the first program of its
//! Linux.
//!
//! Some files can be loaded and can never run. The reason is known here, where the user reads it, and not on
//! the board, where the guest says nothing.

use super::{Context, Guest};
use crate::class;
use crate::diagnostic::{Code, Diagnostic, Place, Report};
use crate::payload::elf::{is_elf, machine_name, machine_of};
use crate::payload::{Bytes, Loader};

/// Bytes at the entry that are looked at: those of an instruction, and of one half before an odd entry.
const LOOKED_AT: u64 = 6;

/// Checks the first instruction of a partition, as far as its address and its bytes can tell.
pub(crate) fn check_entry(context: &Context<'_>, guest: &Guest, report: &mut Report) {
    let spec = context.spec;
    let own = spec.machine.entry.as_ref().map(|entry| entry.place);
    let image = spec.image.as_ref();
    let place = own.or(image.map(|image| image.place)).unwrap_or(spec.name.place);
    let what = image.map_or("the firmware", |image| &image.value);
    let entry = guest.entry;
    if let Some(why) = class::host(context.board.class).entry_fault(entry, guest.entry_state) {
        let message = format!("the entry point {entry:#x} of `{what}` {why}");
        report.push(
            Diagnostic::at(Code::OddEntry, place, message)
                .label("the first instruction would be a fault")
                .help("name the first instruction: `ENTRY` in a linker script, `machine.entry` for a plain binary"),
        );
    } else if !class::host(context.board.class).runs_zeros(guest.entry_state)
        && holds_zeros(guest, entry & !1)
    {
        report.push(no_instruction(what, entry, place));
    }
}

fn no_instruction(what: &str, entry: u64, place: Place) -> Diagnostic {
    let message = format!("the entry point {entry:#x} of `{what}` has zeros instead of an instruction");
    Diagnostic::at(Code::EmptyEntry, place, message)
        .label("the partition begins where nothing is loaded")
        .help("name the first instruction: `ENTRY` in a linker script, `machine.entry` for a plain binary; or load what belongs there")
}

/// Tells whether nothing but zeros is loaded at `address`.
fn holds_zeros(guest: &Guest, address: u64) -> bool {
    let byte = |at: u64| {
        let piece = guest
            .pieces
            .iter()
            .rev()
            .find(|piece| (piece.guest..piece.end()).contains(&at));
        if let Some(piece) = piece {
            let index = piece.offset.saturating_add(at.saturating_sub(piece.guest));
            return piece.blob.get(index as usize).copied();
        }
        guest.residents.iter().find_map(|stretch| {
            let index = at.checked_sub(stretch.address)?;
            stretch.bytes.get(index as usize).copied()
        })
    };
    (address..address.saturating_add(LOOKED_AT)).all(|at| byte(at).unwrap_or(0) == 0)
}

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
