// SPDX-License-Identifier: Apache-2.0
//! Reads the ELF file of a partition where addresses are translated, and cuts the program into pieces to
//! copy.

use std::rc::Rc;

use super::{Area, Context};
use crate::diagnostic::{Code, Diagnostic, Report};
use crate::model::{Kind, Placed, TASK_BASE};
use crate::payload::elf::{self, ElfError, Program};
use crate::payload::{Piece, blob_name, bytes};
use crate::window::Window;

/// Reads the ELF file; `None` if something was reported.
pub(crate) fn parse_elf(
    context: &Context<'_>,
    name: &Placed<String>,
    contents: &[u8],
    report: &mut Report,
) -> Option<Program> {
    match elf::parse(contents, context.board.class.facts()) {
        Ok(program) => Some(program),
        Err(ElfError::Machine(what)) => {
            let message = format!("the payload `{}` does not run on this board: {what}", name.value);
            report.push(
                Diagnostic::at(Code::ElfMachine, name.place, message).help(format!(
                    "build it for {}, and link it",
                    elf::usual(context.board.class.facts())
                )),
            );
            None
        }
        Err(ElfError::Damaged(what)) => {
            let message = format!("the ELF file `{}` is damaged: {what}", name.value);
            report.push(Diagnostic::at(Code::ElfDamaged, name.place, message).help("copy or build it again"));
            None
        }
    }
}

/// Returns the pieces of a program, if each segment is inside one area.
pub(crate) fn elf_pieces(
    context: &Context<'_>,
    name: &Placed<String>,
    program: &Program,
    areas: &[Area],
    report: &mut Report,
) -> Option<Vec<Piece>> {
    let blob = Rc::new(program.blob.clone());
    let blob_name = blob_name(context.name(), "program");
    let mut pieces = Vec::new();
    for (index, segment) in program.segments.iter().enumerate() {
        let window = Window {
            base: segment.guest,
            size: segment.size,
        };
        if !areas.iter().any(|area| area.window.contains(window)) {
            let message = format!(
                "segment {index} of `{}` at {:#x} with {} is not inside the partition's memory",
                name.value,
                segment.guest,
                bytes(segment.size)
            );
            let help = match context.spec.kind {
                Kind::Task => {
                    format!("link the task between {TASK_BASE:#x} and the end of its memory, or give it more")
                }
                Kind::Vm => "give more memory, move `machine.ram-base`, or add a region there".to_owned(),
            };
            report.push(
                Diagnostic::at(Code::ElfOutside, name.place, message)
                    .also(areas[0].place, areas[0].ram_note())
                    .help(help),
            );
            return None;
        }
        if segment.filled > 0 {
            pieces.push(Piece {
                name: blob_name.clone(),
                blob: Rc::clone(&blob),
                offset: segment.offset,
                size: segment.filled,
                guest: segment.guest,
            });
        }
    }
    Some(pieces)
}
