// SPDX-License-Identifier: Apache-2.0
//! Builds the memory of a partition, and checks what its class cannot check for itself.

use crate::class;
use crate::diagnostic::{Code, Diagnostic, Place, Report};
use crate::guest::{Area, AreaKind, Context, Guest};
use crate::model::Kind;
use crate::payload::Loader;
use crate::rules::memory;

/// Bytes at the entry that are looked at: the bytes of an instruction, and of one half before an odd entry.
const LOOKED_AT: u64 = 6;

/// Builds a partition's memory; `None` if something was reported.
pub(crate) fn build(context: &Context<'_>, loader: &mut Loader<'_>, report: &mut Report) -> Option<Guest> {
    let errors = report.error_count();
    let class = class::host(context.board.class);
    let mut guest = match context.spec.kind {
        Kind::Vm => class.build_vm(context, loader, report),
        Kind::Task => class.build_task(context, loader, report),
    };
    // Where addresses are translated, the rules of memory have looked at the registers.
    if context.spec.kind == Kind::Vm && context.board.class.facts().runs_in_place() {
        guest = guest.filter(|guest| registers_are_apart(context, &guest.areas, report));
    }
    if let Some(guest) = &guest {
        check_entry(context, guest, report);
    }
    for alternative in &context.spec.alternatives {
        let spec = context.spec.with(alternative);
        let other = Context {
            spec: &spec,
            ..*context
        };
        if let (Some(guest), Some(built)) = (&mut guest, class.build_vm(&other, loader, report)) {
            check_entry(&other, &built, report);
            let other = built;
            if guest.entry_state != other.entry_state {
                let message =
                    "the image of the alternative is of another width than the partition's own".to_owned();
                report.push(
                    Diagnostic::at(Code::ElfMachine, alternative.name.place, message)
                        .help("a partition runs 64-bit or 32-bit images: make it two partitions"),
                );
            }
            guest.alternatives.push(other);
        }
    }
    if let Some(guest) = &mut guest {
        guest.join(context.sides);
        guest.join_frames(context.spec);
    }
    guest.filter(|_| report.error_count() == errors)
}

/// Checks that registers that the VM sees are neither in its memory nor in the place of other registers.
fn registers_are_apart(context: &Context<'_>, areas: &[Area], report: &mut Report) -> bool {
    let errors = report.error_count();
    let (spec, board) = (context.spec, Some(context.board));
    for own in areas {
        let mut all = memory::device_areas(spec, board);
        let what = match own.kind {
            AreaKind::Ram | AreaKind::Startup => "RAM",
            AreaKind::Region | AreaKind::Flash => "region",
            AreaKind::Code => "code",
            AreaKind::Channel(_) | AreaKind::Lent(_) => "a channel",
            AreaKind::Frames => "frames",
        };
        all.insert(0, memory::Area::new(what, own.window, own.place, true));
        memory::areas_are_apart(spec, &all, board, report);
    }
    report.error_count() == errors
}

/// Checks the first instruction of a partition, as far as its address and its bytes can tell.
fn check_entry(context: &Context<'_>, guest: &Guest, report: &mut Report) {
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
