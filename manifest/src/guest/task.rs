// SPDX-License-Identifier: Apache-2.0
//! The memory of a task: program, page permissions, startup page.

use std::rc::Rc;

use super::elf::{elf_pieces, parse_elf};
use super::{Area, AreaKind, Context, Guest, Part, startup};
use crate::diagnostic::{Code, Diagnostic, Place, Report};
use crate::model::{Access, Placed, TASK_BASE};
use crate::payload::elf::{self, Program};
use crate::payload::{Loader, Piece, blob_name};
use crate::units::{PAGE, format_size};
use crate::window::Window;

/// The address at which a task sees its startup page.
const STARTUP_PAGE: u64 = TASK_BASE - PAGE;
/// The least size of a task's stack.
const STACK_MIN: u64 = PAGE;

/// Builds the memory of a task; `None` if something was reported.
pub(crate) fn build(context: &Context<'_>, loader: &mut Loader<'_>, report: &mut Report) -> Option<Guest> {
    let spec = context.spec;
    let (name, memory) = (spec.image.as_ref()?, spec.memory.as_ref()?);
    let ram = Window {
        base: TASK_BASE,
        size: memory.value.get(),
    };
    let startup = Window {
        base: STARTUP_PAGE,
        size: PAGE,
    };
    let area = |kind, window, access, at| Area {
        kind,
        window,
        access,
        at,
        place: memory.place,
    };
    let areas = vec![
        area(AreaKind::Ram, ram, Access::ALL, spec.at.clone()),
        area(AreaKind::Startup, startup, Access::READ, None),
    ];
    let contents = loader.load(name, report)?;
    let program = read_program(context, name, &contents, report)?;
    let mut pieces = elf_pieces(context, name, &program, &areas[..1], report)?;
    leaves_stack(&program, ram, memory.place, report)?;
    let mut parts = task_parts(ram, &program);
    entry_is_code(&program, &parts, name, report)?;
    warn_writable_code(&parts, name, report);
    pieces = split(pieces, &parts);
    parts.push(Part {
        area: 1,
        window: startup,
        access: Access::READ,
    });
    let mut page = startup::records(ram, context.capabilities);
    page.extend(startup::windows(context.windows));
    page.extend(startup::devices(context));
    page.resize(PAGE as usize, 0);
    pieces.push(Piece::whole(
        blob_name(context.name(), "startup"),
        Rc::new(page),
        STARTUP_PAGE,
    ));
    Some(Guest {
        areas,
        parts,
        pieces,
        entry: program.entry,
        argument: STARTUP_PAGE,
        stack: ram.end(),
        device_tree: Vec::new(),
        ..Guest::default()
    })
}

fn read_program(
    context: &Context<'_>,
    name: &Placed<String>,
    contents: &[u8],
    report: &mut Report,
) -> Option<Program> {
    if elf::is_elf(contents) {
        let program = parse_elf(context, name, contents, report)?;
        if !program.is_other_state {
            return Some(program);
        }
        let message = format!(
            "the program `{}` of a task is for the other state of the CPU",
            name.value
        );
        report.push(
            Diagnostic::at(Code::ElfMachine, name.place, message).help(format!(
                "build it for {}; only VMs run 32-bit code",
                elf::usual(context.board.class.facts())
            )),
        );
        return None;
    }
    report.push(needs_elf(name));
    None
}

/// Returns the finding that the image of a task is something else.
pub(crate) fn needs_elf(name: &Placed<String>) -> Diagnostic {
    let message = format!("the image `{}` of a task is not an ELF file", name.value);
    Diagnostic::at(Code::TaskNeedsElf, name.place, message)
        .help("give the linked program itself: its segments say which pages can be written or executed")
}

fn leaves_stack(program: &Program, ram: Window, place: Place, report: &mut Report) -> Option<()> {
    let high = program
        .segments
        .iter()
        .map(|segment| segment.end())
        .max()
        .unwrap_or(ram.base);
    if ram.end().saturating_sub(high) >= STACK_MIN {
        return Some(());
    }
    let message = format!("the program ends at {high:#x}, and leaves no memory for its stack");
    let enough = format_size(ram.size.saturating_add(16 * PAGE));
    report.push(Diagnostic::at(Code::DoesNotFit, place, message).help(format!("give at least \"{enough}\"")));
    None
}

fn entry_is_code(
    program: &Program,
    parts: &[Part],
    name: &Placed<String>,
    report: &mut Report,
) -> Option<()> {
    let instruction = Window {
        base: program.entry,
        size: 4,
    };
    if parts
        .iter()
        .any(|part| part.access.execute && part.window.contains(instruction))
    {
        return Some(());
    }
    let message = format!(
        "the entry point {:#x} of `{}` is not in an executable segment",
        program.entry, name.value
    );
    report.push(Diagnostic::at(Code::EntryOutside, name.place, message).help("correct the linker script"));
    None
}

fn warn_writable_code(parts: &[Part], name: &Placed<String>, report: &mut Report) {
    for part in parts
        .iter()
        .filter(|part| part.access.write && part.access.execute)
    {
        let message = format!(
            "`{}` has pages at {:#x} that are writable and executable",
            name.value, part.window.base
        );
        report.push(
            Diagnostic::at(Code::WritableCode, name.place, message)
                .help("align segments with different permissions to 4K in the linker script"),
        );
    }
}

/// Returns the task's memory, cut where permissions change. A page that two segments share gets the
/// permissions of both.
fn task_parts(ram: Window, program: &Program) -> Vec<Part> {
    let pages: Vec<(Window, Access)> = program
        .segments
        .iter()
        .map(|segment| {
            (
                Window {
                    base: segment.guest,
                    size: segment.size,
                }
                .pages(),
                segment.access,
            )
        })
        .collect();
    let mut cuts = vec![ram.base, ram.end()];
    cuts.extend(pages.iter().flat_map(|(window, _)| [window.base, window.end()]));
    cuts.sort_unstable();
    cuts.dedup();
    let mut parts: Vec<Part> = Vec::new();
    for pair in cuts.windows(2) {
        let window = Window {
            base: pair[0],
            size: pair[1] - pair[0],
        };
        let covering: Vec<_> = pages
            .iter()
            .filter(|(page, _)| page.overlaps(window))
            .map(|(_, access)| *access)
            .collect();
        let access = match covering.as_slice() {
            [] => Access::DATA,
            all => Access {
                read: true,
                write: all.iter().any(|access| access.write),
                execute: all.iter().any(|access| access.execute),
            },
        };
        match parts.last_mut() {
            Some(last) if last.access == access => last.window.size += window.size,
            _ => parts.push(Part {
                area: 0,
                window,
                access,
            }),
        }
    }
    parts
}

/// Cuts pieces so that each piece is inside one part.
fn split(pieces: Vec<Piece>, parts: &[Part]) -> Vec<Piece> {
    let mut out = Vec::new();
    for piece in pieces {
        for part in parts {
            let start = piece.guest.max(part.window.base);
            let end = piece.end().min(part.window.end());
            if start < end {
                let offset = piece.offset + (start - piece.guest);
                out.push(Piece {
                    guest: start,
                    size: end - start,
                    offset,
                    ..piece.clone()
                });
            }
        }
    }
    out
}
