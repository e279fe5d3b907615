// SPDX-License-Identifier: Apache-2.0
//! The memory of a VM: areas, image, RAM disk, device tree.
//!
//! A program is an ELF file, whose segments go to their physical addresses, or a raw binary, which goes to
//! the start of RAM or to `machine.load-at`. RAM disk and device tree follow the program: Linux for the 405
//! sees only its first 16M when it looks for them. r3 is the address of the device tree.

use std::rc::Rc;

use super::devicetree;
use crate::diagnostic::{Code, Diagnostic, Report};
use crate::guest::elf::{elf_pieces, parse_elf};
use crate::guest::{Area, Context, Guest, Part, ramdisk, region_payloads, vm_areas};
use crate::payload::elf::is_elf;
use crate::payload::formats::not_code;
use crate::payload::{Bytes, Loader, Piece, blob_name, bytes, initramfs};
use crate::units::{PAGE, align_up, format_size};
use crate::window::Window;

/// RAM disk and device tree begin at multiples of this.
const ALIGN: u64 = 64 << 10;

/// A program in place.
struct Program {
    pieces: Vec<Piece>,
    entry: u64,
    /// The end of its memory, zeroes included.
    end: u64,
}

/// Builds the memory of a VM; `None` if something was reported.
pub(super) fn build(context: &Context<'_>, loader: &mut Loader<'_>, report: &mut Report) -> Option<Guest> {
    let spec = context.spec;
    let areas = vm_areas(spec)?;
    let ram = areas.first()?.window;
    let mut pieces = region_payloads(context, loader, report)?;
    let program = program(context, &areas, loader, report)?;
    let ramdisk = match &spec.ramdisk {
        Some(name) => Some(as_archive(loader.load(name, report)?)),
        None => None,
    };
    ramdisk::check(context, ramdisk.as_ref(), report);
    let at = align_up(program.end, ALIGN)?;
    let ramdisk_window = ramdisk.as_ref().map(|contents| Window {
        base: at,
        size: contents.len() as u64,
    });
    let tree_at = match ramdisk_window {
        Some(window) => align_up(window.end(), ALIGN)?,
        None => at,
    };
    let tree = devicetree::generate(context, &areas, ramdisk_window);
    fits(context, ram, tree_at.checked_add(tree.len() as u64)?, report)?;
    pieces.extend(program.pieces);
    pieces.extend(ramdisk.map(|contents| Piece::whole(blob_name(context.name(), "ramdisk"), contents, at)));
    pieces.push(Piece::whole(
        blob_name(context.name(), "device-tree"),
        Rc::new(tree.clone()),
        tree_at,
    ));
    Some(Guest {
        parts: Part::whole(&areas),
        areas,
        pieces,
        entry: program.entry,
        argument: tree_at,
        device_tree: tree,
        ..Guest::default()
    })
}

/// Returns a RAM disk for Linux. A program becomes the first one, `/init`, of a RAM disk that has nothing
/// else.
fn as_archive(contents: Bytes) -> Bytes {
    if is_elf(&contents) {
        Rc::new(initramfs::with_init(&[], &contents))
    } else {
        contents
    }
}

fn program(
    context: &Context<'_>,
    areas: &[Area],
    loader: &mut Loader<'_>,
    report: &mut Report,
) -> Option<Program> {
    let (spec, ram) = (context.spec, areas.first()?.window);
    let machine = &spec.machine;
    let own_entry = machine.entry.as_ref().map(|entry| entry.value.get());
    let Some(name) = &spec.image else {
        // The check of a manifest makes sure that a VM without image has an entry.
        return Some(Program {
            pieces: Vec::new(),
            entry: own_entry?,
            end: ram.base,
        });
    };
    let contents = loader.load(name, report)?;
    if is_elf(&contents) {
        let program = parse_elf(context, name, &contents, report)?;
        let end = program.segments.iter().map(|segment| segment.end()).max();
        return Some(Program {
            pieces: elf_pieces(context, name, &program, areas, report)?,
            entry: program.entry,
            end: end.unwrap_or(ram.base),
        });
    }
    if let Some(what) = not_code(&contents) {
        let message = format!("the payload `{}` is {what}", name.value);
        report.push(
            Diagnostic::at(Code::PayloadKind, name.place, message)
                .help("give an ELF file for PowerPC, or a plain binary of its instructions"),
        );
        return None;
    }
    let at = machine.load_at.as_ref().map_or(ram.base, |at| at.value.get());
    Some(Program {
        entry: own_entry.unwrap_or(at),
        end: at.saturating_add(contents.len() as u64),
        pieces: vec![Piece::whole(blob_name(context.name(), "program"), contents, at)],
    })
}

fn fits(context: &Context<'_>, ram: Window, end: u64, report: &mut Report) -> Option<()> {
    if end <= ram.end() {
        return Some(());
    }
    let memory = context.spec.memory.as_ref()?;
    let message = format!(
        "{} of RAM do not hold the image, the RAM disk and the device tree, {} in all",
        format_size(ram.size),
        bytes(end.saturating_sub(ram.base))
    );
    let need = align_up(end.saturating_sub(ram.base).saturating_add(PAGE), 1 << 20).unwrap_or(u64::MAX);
    report.push(
        Diagnostic::at(Code::DoesNotFit, memory.place, message).help(format!(
            "give at least \"{}\", and room for what the partition does",
            format_size(need)
        )),
    );
    None
}
