// SPDX-License-Identifier: Apache-2.0
//! The memory of a VM: areas, program, RAM disk, and what a loader of a PC leaves below 1 MiB.
//!
//! | at | contents |
//! |---|---|
//! | 0x500 | descriptor table |
//! | 0x6000 | PVH start information |
//! | 0x7000 | boot parameters of Linux |
//! | 0x9000 | translation tables |
//! | 0x20000 | command line |
//! | 0xE0000 | ACPI tables, where every system looks for them |
//! | 0x100000 | programs |
//!
//! A Linux bzImage is entered by the 64-bit boot protocol. A 64-bit ELF file is entered in long mode, and a
//! 32-bit one in flat protected mode by PVH; both find the start information at their argument.

use std::rc::Rc;

use bulkhead_arch_api::EntryState;
use bulkhead_arch_api::class::x86_64::{BOOT_GDT, FLAT_32, LONG_64, LONG_MODE_ROOT};

use super::places::{ACPI, COMMAND_LINE, HIGH};
use super::{acpi, linux};
use crate::diagnostic::{Code, Diagnostic, Report};
use crate::guest::elf::{elf_pieces, parse_elf};
use crate::guest::first::load_init;
use crate::guest::{Area, Context, Guest, Part, ramdisk, region_payloads, vm_areas};
use crate::model::Placed;
use crate::payload::formats::foreign;
use crate::payload::{Bytes, Loader, Piece, blob_name, bytes, elf, initramfs};
use crate::units::{PAGE, align_up, format_size};
use crate::window::Window;

/// Where the start information of PVH is.
const START_INFO: u64 = 0x6000;
/// Where the boot parameters of Linux are.
pub(super) const BOOT_PARAMETERS: u64 = 0x7000;
/// RAM ends here at the latest: above are the interrupt controllers.
const RAM_MAX: u64 = 0xC000_0000;

/// A program in place.
struct Program {
    pieces: Vec<Piece>,
    entry: u64,
    state: EntryState,
    argument: u64,
    /// The end of the memory that it needs.
    end: u64,
    /// The setup header, if it is Linux.
    linux: Option<linux::Setup>,
}

/// Builds the memory of a VM; `None` if something was reported.
pub(super) fn build(context: &Context<'_>, loader: &mut Loader<'_>, report: &mut Report) -> Option<Guest> {
    let spec = context.spec;
    let areas = vm_areas(spec)?;
    let ram = areas[0].window;
    ram_is_possible(context, ram, report)?;
    let name = spec.image.as_ref()?;
    let contents = loader.load(name, report)?;
    let program = place(context, name, contents, &areas, report)?;
    let ramdisk = load_ramdisk(context, loader, report)?;
    if program.linux.is_some() {
        ramdisk::check(context, ramdisk.as_ref(), report);
    }
    let ramdisk_size = ramdisk.as_ref().map_or(0, |ramdisk| ramdisk.len() as u64);
    let ramdisk_at = place_ramdisk(context, program.end, ram, ramdisk_size, report)?;
    let arguments = spec.bootargs.as_ref().map_or("", |bootargs| &bootargs.value);
    let mut command = arguments.as_bytes().to_vec();
    command.push(0);
    let mut pieces = region_payloads(context, loader, report)?;
    pieces.extend(program.pieces);
    let mut put = |what: &str, at: u64, contents: Vec<u8>| {
        pieces.push(Piece::whole(
            blob_name(context.name(), what),
            Rc::new(contents),
            at,
        ));
    };
    put("segments", BOOT_GDT, descriptors());
    put("tables", LONG_MODE_ROOT, tables());
    put("command-line", COMMAND_LINE, command);
    put("acpi", ACPI, acpi::tables(spec.vcpus.len() as u32));
    let disk = Window {
        base: ramdisk_at,
        size: ramdisk_size,
    };
    match &program.linux {
        Some(setup) => put("boot-parameters", BOOT_PARAMETERS, setup.parameters(ram, disk)),
        None => put("start-info", START_INFO, start_info(ram, disk)),
    }
    pieces.extend(
        ramdisk.map(|ramdisk| Piece::whole(blob_name(context.name(), "ramdisk"), ramdisk, ramdisk_at)),
    );
    Some(Guest {
        parts: Part::whole(&areas),
        areas,
        pieces,
        entry: program.entry,
        argument: program.argument,
        entry_state: program.state,
        ..Guest::default()
    })
}

fn ram_is_possible(context: &Context<'_>, ram: Window, report: &mut Report) -> Option<()> {
    if ram.base == 0 && ram.size > HIGH && ram.end() <= RAM_MAX {
        return Some(());
    }
    let place = context.spec.memory.as_ref()?.place;
    let message = format!(
        "a PC has RAM from 0 to at most {}, and more than {}: this is {} from {:#x}",
        format_size(RAM_MAX),
        format_size(HIGH),
        format_size(ram.size),
        ram.base
    );
    report.push(
        Diagnostic::at(Code::DoesNotFit, place, message)
            .help("leave out `machine.ram-base`, and give at least \"2M\""),
    );
    None
}

fn place(
    context: &Context<'_>,
    name: &Placed<String>,
    contents: Bytes,
    areas: &[Area],
    report: &mut Report,
) -> Option<Program> {
    if elf::is_elf(&contents) {
        let program = parse_elf(context, name, &contents, report)?;
        let pieces = elf_pieces(context, name, &program, areas, report)?;
        let ends = program.segments.iter().map(|segment| segment.end());
        return Some(Program {
            pieces,
            entry: program.entry,
            state: if program.is_other_state { FLAT_32 } else { LONG_64 },
            argument: START_INFO,
            end: ends.max().unwrap_or(HIGH),
            linux: None,
        });
    }
    let ram = areas[0].window;
    match linux::Setup::read(&contents) {
        Ok(setup) => {
            let end = HIGH.max(setup.load_address()).saturating_add(setup.room());
            if end > ram.end() {
                let message = format!(
                    "the kernel needs memory up to {end:#x}, more than {}",
                    format_size(ram.size)
                );
                report.push(
                    Diagnostic::at(Code::DoesNotFit, areas[0].place, message)
                        .also(name.place, "the kernel")
                        .help("give more memory"),
                );
                return None;
            }
            let kernel = Rc::new(setup.kernel(&contents).to_vec());
            Some(Program {
                pieces: vec![Piece::whole(
                    blob_name(context.name(), "kernel"),
                    kernel,
                    setup.load_address(),
                )],
                entry: setup.entry(),
                state: LONG_64,
                argument: BOOT_PARAMETERS,
                end,
                linux: Some(setup),
            })
        }
        Err(why) => {
            let what = foreign(&contents).map_or_else(|| why.to_owned(), str::to_owned);
            let message = format!("the payload `{}` is {what}", name.value);
            report.push(
                Diagnostic::at(Code::PayloadKind, name.place, message)
                    .help("give a Linux bzImage of protocol 2.12 or later, or an ELF file for x86"),
            );
            None
        }
    }
}

/// Loads the RAM disk: `Some(None)` if there is none, `None` if something was reported.
#[expect(
    clippy::option_option,
    reason = "absence and failure are different things here"
)]
fn load_ramdisk(
    context: &Context<'_>,
    loader: &mut Loader<'_>,
    report: &mut Report,
) -> Option<Option<Bytes>> {
    let Some(name) = &context.spec.ramdisk else {
        return Some(None);
    };
    let archive = loader.load(name, report)?;
    let init = load_init(context, loader, &[&archive], report)?;
    if init.is_none() {
        return Some(Some(archive));
    }
    let joined = initramfs::join(&archive, None, init.as_ref().map(|script| script.as_slice()));
    Some(Some(Rc::new(joined)))
}

/// Finds the place of the RAM disk: at the end of RAM.
fn place_ramdisk(
    context: &Context<'_>,
    end: u64,
    ram: Window,
    size: u64,
    report: &mut Report,
) -> Option<u64> {
    let at = ram.end().checked_sub(size).map(|at| at & !(PAGE - 1));
    if let Some(at) = at.filter(|at| *at >= end) {
        return Some(if size == 0 { 0 } else { at });
    }
    let place = context.spec.memory.as_ref()?.place;
    let message = format!(
        "{} of RAM hold the program up to {end:#x}, but not also {} of RAM disk",
        format_size(ram.size),
        bytes(size)
    );
    let need = align_up(end.saturating_add(size), 1 << 20).unwrap_or(u64::MAX);
    report.push(Diagnostic::at(Code::DoesNotFit, place, message).help(format!(
        "give at least \"{}\", and room for what the partition does",
        format_size(need)
    )));
    None
}

/// Returns the descriptor table: nothing, nothing, 64-bit code, data (Linux boot.rst, "64-bit boot
/// protocol").
fn descriptors() -> Vec<u8> {
    let table: [u64; 4] = [0, 0, 0x00AF_9B00_0000_FFFF, 0x00CF_9300_0000_FFFF];
    table.iter().flat_map(|entry| entry.to_le_bytes()).collect()
}

/// Returns translation tables that map the first 4 GiB to themselves: a root, a table of the next level, and
/// four tables of 2 MiB pages.
fn tables() -> Vec<u8> {
    const PRESENT: u64 = 3;
    const LARGE: u64 = 0x83;
    let mut words = vec![0_u64; 6 * 512];
    words[0] = (LONG_MODE_ROOT + PAGE) | PRESENT;
    for table in 0..4 {
        words[512 + table] = (LONG_MODE_ROOT + (2 + table as u64) * PAGE) | PRESENT;
    }
    for (page, word) in words[1024..].iter_mut().enumerate() {
        *word = (page as u64) << 21 | LARGE;
    }
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// Returns `hvm_start_info` with one module and a memory map after it (Xen
/// `public/arch-x86/hvm/start_info.h`).
fn start_info(ram: Window, disk: Window) -> Vec<u8> {
    const MAGIC: u32 = 0x336E_C578;
    const SIZE: u64 = 56;
    const MODULE: u64 = 32;
    let modules = u32::from(disk.size != 0);
    let map = linux::memory_map(ram);
    let mut out = Vec::new();
    for word in [MAGIC, 1, 0, modules] {
        out.extend(word.to_le_bytes());
    }
    for word in [START_INFO + SIZE, COMMAND_LINE, ACPI, START_INFO + SIZE + MODULE] {
        out.extend(word.to_le_bytes());
    }
    out.extend((map.len() as u32).to_le_bytes());
    out.extend(0_u32.to_le_bytes());
    for word in [disk.base, disk.size, 0, 0] {
        out.extend(word.to_le_bytes());
    }
    for (base, size, kind) in map {
        out.extend(base.to_le_bytes());
        out.extend(size.to_le_bytes());
        out.extend(kind.to_le_bytes());
        out.extend(0_u32.to_le_bytes());
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_map_addresses_to_themselves() {
        let bytes = tables();
        let word = |index: usize| u64::from_le_bytes(bytes[8 * index..8 * index + 8].try_into().unwrap());
        assert_eq!((word(0), word(512), word(515)), (0xA003, 0xB003, 0xE003));
        assert_eq!((word(1024), word(1024 + 2047)), (0x83, 0xFFE0_0083));
    }

    #[test]
    fn start_information_is_as_pvh_wants_it() {
        let window = |base, size| Window { base, size };
        let bytes = start_info(window(0, 64 << 20), window(0x300_0000, 0x1000));
        assert_eq!(bytes[..4], [0x78, 0xC5, 0x6E, 0x33]);
        assert_eq!(bytes[12], 1, "one module");
        assert_eq!(bytes[48], 4, "entries of the memory map");
        assert_eq!(bytes[56..64], 0x300_0000_u64.to_le_bytes());
    }
}
