// SPDX-License-Identifier: Apache-2.0
//! The windows of a program that is executed where it is linked, and its areas.
//!
//! The window of its code is the smallest that the class has for the code ([`Protection`]). Its RAM has the
//! size that the manifest gives. The RAM lies where the manifest says or, without that, in the one block of
//! this size and alignment that holds the program's variables.
#![deny(clippy::arithmetic_side_effects)]

use std::rc::Rc;

use super::firmware::{Firmware, FirmwareError};
use super::protection::Protection;
use crate::board::Board;
use crate::diagnostic::{Code, Diagnostic, Place, Report};
use crate::guest::{Area, AreaKind, Context};
use crate::model::{Access, Placed};
use crate::payload::elf::ElfError;
use crate::payload::hex::HexError;
use crate::payload::{Piece, Stretch, blob_name, bytes};
use crate::units::format_size;
use crate::window::Window;

/// The addresses where a CPU finds its first stack pointer and the address of its first instruction after a
/// reset: 0 on all boards so far (VTOR after a reset, Arm DDI 0403E, section B3.2.5).
pub(crate) const RESET_VECTORS: Window = Window { base: 0, size: 8 };

/// Largest number of places that are listed when a program is refused.
const LISTED: usize = 12;

/// Returns an area in place: its addresses are the board's addresses.
pub(crate) const fn area(kind: AreaKind, window: Window, access: Access, place: Place) -> Area {
    Area {
        kind,
        window,
        access,
        at: None,
        place,
    }
}

/// Returns the area of a program's RAM, with the place in the manifest that names the area.
pub(crate) const fn ram_area(window: Window, access: Access, place: Place) -> Area {
    area(AreaKind::Ram, window, access, place)
}

/// Returns the area of a program's code, with the place in the manifest that names the area.
pub(crate) const fn code_area(window: Window, place: Place) -> Area {
    let access = Access {
        execute: true,
        ..Access::READ
    };
    area(AreaKind::Code, window, access, place)
}

/// Writes the address of the hypervisor's first instruction to the reset vector, if a program is linked
/// there. The hypervisor has to start after a reset. The program's own vector is in the system image.
pub(crate) fn take_reset_vectors(board: &Board, code: &mut [Stretch]) {
    let own = (board.load_address as u32 | 1).to_le_bytes();
    for stretch in code {
        for (address, byte) in (RESET_VECTORS.base + 4..).zip(own) {
            let at = address.checked_sub(stretch.address);
            if let Some(theirs) = at.and_then(|at| stretch.bytes.get_mut(at as usize)) {
                *theirs = byte;
            }
        }
    }
}

/// Returns the data that is put into RAM at every start.
pub(crate) fn data_pieces(context: &Context<'_>, firmware: &Firmware) -> Vec<Piece> {
    let piece = |stretch: &Stretch| {
        let blob = Rc::new(stretch.bytes.clone());
        Piece::whole(blob_name(context.name(), "data"), blob, stretch.address)
    };
    firmware.data.iter().map(piece).collect()
}

pub(crate) fn refusal(context: &Context<'_>, name: &Placed<String>, error: FirmwareError) -> Diagnostic {
    let at = |code, message: String| Diagnostic::at(code, name.place, message);
    match error {
        FirmwareError::Elf(ElfError::Machine(what)) => at(
            Code::ElfMachine,
            format!("the payload `{}` does not run on this board: {what}", name.value),
        )
        .help("build it for the board's CPU, and link it to fixed addresses"),
        FirmwareError::Elf(ElfError::Damaged(what)) => at(
            Code::ElfDamaged,
            format!("the ELF file `{}` is damaged: {what}", name.value),
        )
        .help("copy or build it again"),
        FirmwareError::Hex(HexError { line, why }) => at(
            Code::HexDamaged,
            format!("the file of Intel HEX `{}` is damaged: {why}", name.value),
        )
        .label(format!("in its line {line}"))
        .help("copy or build it again"),
        FirmwareError::Outside {
            what,
            address,
            size,
        } => {
            let message = format!(
                "{what} of `{}` at {address:#x} with {} is neither in code memory nor in RAM of board `{}`",
                name.value,
                bytes(size),
                context.board.name
            );
            let load_at = context.spec.machine.load_at.as_ref();
            Diagnostic::at(Code::ElfOutside, load_at.map_or(name.place, |at| at.place), message)
                .help("link it for the memory of the board: `bulkhead boards`")
        }
        FirmwareError::Untold(places) => at(
            Code::CannotRewrite,
            format!("the image `{}` has no symbols, and its code cannot be told from data", name.value),
        )
        .label(places.join("; "))
        .help(format!(
            "give the ELF file of the same build, with its symbols: class `{}` replaces instructions, which it must tell from data",
            context.board.class.name()
        )),
        FirmwareError::Fixed(why) => {
            let load_at = context.spec.machine.load_at.as_ref();
            let message = format!("the program `{}` cannot be moved: {why}", name.value);
            Diagnostic::at(Code::NotMovable, load_at.map_or(name.place, |at| at.place), message)
                .help("link it as a position-independent program (`-fPIE -pie`, in C), or link it for this place and remove `load-at`")
        }
        FirmwareError::Refused(places) => {
            let more = places.len().saturating_sub(LISTED);
            let mut lines: Vec<String> = places.into_iter().take(LISTED).collect();
            if more > 0 {
                lines.push(format!("and {more} more"));
            }
            at(
                Code::CannotRewrite,
                format!(
                    "the program `{}` has code that cannot be told from data",
                    name.value
                ),
            )
            .label(lines.join("; "))
            .help("link it without removing its symbols, mark code in assembly as code (`.thumb_func`, `.inst`), and give constants an output section of their own in the linker script (`.rodata`)")
        }
        FirmwareError::NoVectors { address, why } => {
            let machine = &context.spec.machine;
            let keys = machine.entry.as_ref().or(machine.load_at.as_ref());
            let place = keys.map_or(name.place, |key| key.place);
            let message = format!("there is no vector table at {address:#x} of `{}`: {why}", name.value);
            let help = if machine.load_at.is_some() {
                "give the address that the binary is linked for (`machine.load-at`), or say where its vector table is: `machine.entry`"
            } else {
                "link the vector table first, or say where it is: `machine.entry`; a program without one runs as `kind = \"task\"`"
            };
            Diagnostic::at(Code::NoVectors, place, message).help(help)
        }
    }
}

/// Returns the smallest window around all code that a partition can have.
pub(crate) fn code_window(protection: &dyn Protection, code: &[Stretch]) -> Option<Window> {
    let (first, last) = (code.first()?.window(), code.last()?.window());
    let start = u32::try_from(first.base).ok()?;
    protection.around(start, last.end().checked_sub(first.base)?)
}

/// Returns the RAM: where the manifest says, else the aligned block around the first variable, or around
/// `stack` if that is lower.
pub(crate) fn ram_window(
    context: &Context<'_>,
    protection: &dyn Protection,
    firmware: &Firmware,
    stack: Option<u64>,
    report: &mut Report,
) -> Option<Window> {
    let spec = context.spec;
    let size = spec.memory.as_ref()?.value.get();
    if let Some(at) = &spec.at {
        return Some(Window {
            base: at.value.get(),
            size,
        });
    }
    if firmware.is_silent {
        report.push(silent(context, stack));
        return None;
    }
    let variables = firmware.ram.iter().map(|window| window.base);
    let Some(lowest) = variables.chain(stack).min() else {
        let message = format!("nothing says where the memory of `{}` is", context.name());
        report.push(
            Diagnostic::at(Code::MissingKey, spec.name.place, message)
                .label("its program has no variables")
                .help("add `place = ...`"),
        );
        return None;
    };
    let block = protection.block(size)?;
    if size.is_multiple_of(block) {
        return Some(Window {
            base: lowest & !block.saturating_sub(1),
            size,
        });
    }
    let place = spec
        .memory
        .as_ref()
        .map_or(spec.name.place, |memory| memory.place);
    let message = format!(
        "the memory of `{}` is no power of two, and its place is not given",
        context.name()
    );
    let help = format!(
        "add `place = ...`: the program's variables start at {lowest:#x}; or give \"{}\"",
        format_size(block)
    );
    report.push(Diagnostic::at(Code::UnalignedSize, place, message).help(help));
    None
}

/// Returns the finding that neither the manifest nor an image says where the program's RAM is.
fn silent(context: &Context<'_>, stack: Option<u64>) -> Diagnostic {
    let spec = context.spec;
    let place = spec.image.as_ref().map_or(spec.name.place, |name| name.place);
    let hint = stack.map_or_else(String::new, |stack| {
        format!(
            "; by its first word its stack is below {:#x}",
            stack.saturating_add(4)
        )
    });
    let message = format!("nothing says where the memory of `{}` is", context.name());
    Diagnostic::at(Code::MissingKey, place, message)
        .label(format!(
            "such an image does not say where its variables are{hint}"
        ))
        .help("add `place = ...`: the beginning of RAM in its linker script")
}

/// Returns the remedy that would put `window` into the partition's `ram`.
fn reach(window: Window, ram: Window, context: &Context<'_>) -> String {
    let board = context.board;
    let own = board.own_ram;
    let end = window.base.saturating_add(window.size);
    if end > own.base && window.base < own.end() {
        let reaching = Window {
            base: ram.base,
            size: own.end().saturating_sub(ram.base),
        };
        let is_below = ram.base < own.base && board.ram.iter().any(|stretch| stretch.contains(reaching));
        let fix = if is_below {
            format!(
                "from {:#x} on the length of RAM in the program's linker script can be {}",
                ram.base,
                format_size(own.base.saturating_sub(ram.base))
            )
        } else {
            "link the program for RAM elsewhere".to_owned()
        };
        return format!("the hypervisor's RAM begins at {:#x}: {fix}", own.base);
    }
    let needed = end.checked_sub(ram.base).filter(|needed| {
        let reaching = Window {
            base: ram.base,
            size: *needed,
        };
        window.base >= ram.base && board.ram.iter().any(|stretch| stretch.contains(reaching))
    });
    match needed {
        Some(needed) => {
            let needed = needed.next_multiple_of(1024);
            // Without a place, the size determines the place, and must be a power of two.
            let place = if context.spec.at.is_none() && !needed.is_power_of_two() {
                format!(" with `place = {:#x}`", ram.base)
            } else {
                String::new()
            };
            format!(
                "give more memory (`memory = \"{}\"`{place} reaches it), or add a region there",
                format_size(needed)
            )
        }
        None => format!(
            "say where its memory is (`place = {:#x}` or below), or add a region there",
            window.base & !board.class.facts().granule.saturating_sub(1)
        ),
    }
}

/// Checks that all RAM that the program mentions, and these windows, are in RAM of the partition.
pub(crate) fn variables_are_inside(
    context: &Context<'_>,
    firmware: &Firmware,
    others: &[(&str, Window)],
    areas: &[Area],
    report: &mut Report,
) -> Option<()> {
    let data = firmware.data.iter().map(Stretch::window);
    let windows = firmware
        .ram
        .iter()
        .copied()
        .chain(data)
        .map(|window| ("variables", window));
    for (what, window) in windows.chain(others.iter().copied()) {
        let writable = |area: &&Area| area.access.write && area.window.contains(window);
        if areas.iter().find(writable).is_none() {
            let name = context.spec.image.as_ref()?;
            let message = format!(
                "{what} of `{}` at {:#x} with {} are not inside the partition's memory",
                name.value,
                window.base,
                bytes(window.size)
            );
            report.push(
                Diagnostic::at(Code::ElfOutside, name.place, message)
                    .also(areas[0].place, areas[0].ram_note())
                    .help(reach(window, areas[0].window, context)),
            );
            return None;
        }
    }
    Some(())
}
