// SPDX-License-Identifier: Apache-2.0
//! Programs: recognises the kind of an image, and puts the image in place.

use std::rc::Rc;

use super::kernel::{self, GunzipError};
use crate::diagnostic::{Code, Diagnostic, Place, Report};
use crate::guest::elf::{elf_pieces, parse_elf};
use crate::guest::{Area, Context};
use crate::model::{PartitionSpec, Placed};
use crate::payload::elf;
use crate::window::Window;

use crate::payload::formats::not_code;
use crate::payload::{Bytes, Piece, blob_name, bytes};
use crate::units::{align_up, format_size};

/// A program in place.
pub(super) struct Image {
    pub pieces: Vec<Piece>,
    pub entry: u64,
    /// The memory that the program needs, contents and zeroes.
    pub windows: Vec<Window>,
    /// True if the device tree goes to the start of RAM, provided that there is room below the image.
    pub tree_first: bool,
    /// True if the program starts in AArch32 state.
    pub aarch32: bool,
    /// True if the program is surely a Linux kernel. Boot loaders and small systems come with the same
    /// header.
    pub linux: bool,
}

impl Image {
    /// Returns the image of a file that lies in `window` unchanged and is entered at its first byte, in
    /// AArch64 state.
    fn in_one_piece(name: String, contents: Bytes, window: Window) -> Self {
        Self {
            entry: window.base,
            pieces: vec![Piece::whole(name, contents, window.base)],
            windows: vec![window],
            tree_first: false,
            aarch32: false,
            linux: false,
        }
    }

    pub fn low(&self) -> u64 {
        self.windows.iter().map(|window| window.base).min().unwrap_or(0)
    }

    /// Returns the end of the memory that the image needs in `ram`, or the start of `ram` if the image needs
    /// none there.
    pub fn high_in(&self, ram: Window) -> u64 {
        let inside = self.windows.iter().filter(|window| window.overlaps(ram));
        inside.map(|window| window.end()).max().unwrap_or(ram.base)
    }
}

/// Returns the firmware of a VM without image, which starts at `machine.entry`, in a region.
pub(super) fn firmware(spec: &PartitionSpec, areas: &[Area], report: &mut Report) -> Option<Image> {
    let entry = spec.machine.entry.as_ref()?;
    entry_is_executable(entry.value.get(), entry.place, areas, report)?;
    Some(Image {
        pieces: Vec::new(),
        entry: entry.value.get(),
        windows: Vec::new(),
        tree_first: true,
        aarch32: false,
        linux: false,
    })
}

fn entry_is_executable(entry: u64, place: Place, areas: &[Area], report: &mut Report) -> Option<()> {
    let instruction = Window { base: entry, size: 4 };
    if areas
        .iter()
        .any(|area| area.access.execute && area.window.contains(instruction))
    {
        return Some(());
    }
    let message = format!("the first instruction at {entry:#x} is not in executable memory of the partition");
    report.push(
        Diagnostic::at(Code::EntryOutside, place, message)
            .help("correct the address, or add a region with access \"rx\""),
    );
    None
}

/// A program that is to be placed.
#[derive(Clone, Copy)]
pub(super) struct Program<'a> {
    pub context: &'a Context<'a>,
    /// The file of the program, as the manifest names the file.
    pub name: &'a Placed<String>,
    pub areas: &'a [Area],
}

pub(super) fn place_image(program: &Program<'_>, contents: Bytes, report: &mut Report) -> Option<Image> {
    let Program { name, areas, .. } = *program;
    let contents = match kernel::zboot(&contents) {
        None => contents,
        Some(Ok(packed)) => Rc::new(packed.to_vec()),
        Some(Err(why)) => {
            let message = format!("the EFI zboot kernel `{}` cannot be unpacked: {why}", name.value);
            let code = if why.is_method() {
                Code::PayloadKind
            } else {
                Code::ImageDamaged
            };
            report.push(
                Diagnostic::at(code, name.place, message)
                    .help("give the kernel's plain Image: `Image` or `Image.gz` of its build"),
            );
            return None;
        }
    };
    let contents = unpack(name, contents, areas[0].window.size, report)?;
    if elf::is_elf(&contents) {
        return place_elf(program, &contents, report);
    }
    if kernel::is_image(&contents) {
        return place_linux(program, contents, report);
    }
    if kernel::is_zimage(&contents) {
        return place_zimage(program, contents, report);
    }
    if kernel::is_other_efi(&contents) {
        report.push(wrong_kind(
            name,
            "an EFI program that is no Linux Image for 64-bit Arm",
        ));
        return None;
    }
    if let Some(what) = not_code(&contents) {
        report.push(wrong_kind(name, what));
        return None;
    }
    place_raw(program, contents, report)
}

fn wrong_kind(name: &Placed<String>, what: &str) -> Diagnostic {
    Diagnostic::at(
        Code::PayloadKind,
        name.place,
        format!("the payload `{}` is {what}", name.value),
    )
    .help("give a Linux Image for 64-bit Arm (raw, gzip or EFI zboot), a zImage for 32-bit Arm, an ELF file, or a raw binary")
}

fn unpack(name: &Placed<String>, contents: Bytes, room: u64, report: &mut Report) -> Option<Bytes> {
    if !kernel::is_gzip(&contents) {
        return Some(contents);
    }
    match kernel::gunzip(&contents, room) {
        Ok(unpacked) if unpacked.is_empty() => {
            report.push(
                Diagnostic::at(
                    Code::PayloadEmpty,
                    name.place,
                    format!("the payload `{}` unpacks to nothing", name.value),
                )
                .help("build it again"),
            );
            None
        }
        Ok(unpacked) => Some(Rc::new(unpacked)),
        Err(GunzipError::TooLarge) => {
            let message = format!(
                "the payload `{}` unpacks to more than the partition's {}",
                name.value,
                bytes(room)
            );
            report.push(
                Diagnostic::at(Code::PayloadTooLarge, name.place, message)
                    .help("give the partition more memory"),
            );
            None
        }
        Err(GunzipError::Damaged(why)) => {
            let message = format!("the payload `{}` is a damaged gzip file: {why}", name.value);
            report
                .push(Diagnostic::at(Code::GzipDamaged, name.place, message).help("copy or build it again"));
            None
        }
    }
}

fn place_linux(program: &Program<'_>, contents: Bytes, report: &mut Report) -> Option<Image> {
    let Program { context, name, areas } = *program;
    let header = match kernel::header(&contents) {
        Ok(header) => header,
        Err(why) => {
            let message = format!("the Linux Image `{}` is damaged: {why}", name.value);
            report
                .push(Diagnostic::at(Code::ImageDamaged, name.place, message).help("copy or build it again"));
            return None;
        }
    };
    refuse_raw_keys(context, "a Linux Image", report);
    let ram = areas[0].window;
    let window = Window {
        base: ram.base.saturating_add(header.offset),
        size: header.size,
    };
    if !ram.contains(window) {
        let need = align_up(header.offset.saturating_add(header.size), 1 << 20);
        let message = format!(
            "the kernel needs memory up to {} above the start of RAM, more than {}",
            bytes(header.offset.saturating_add(header.size)),
            format_size(ram.size)
        );
        report.push(
            Diagnostic::at(Code::DoesNotFit, areas[0].place, message)
                .also(name.place, "the kernel")
                .help(need.map_or_else(
                    || "the header of the Image is damaged".to_owned(),
                    |need| {
                        format!(
                            "give at least \"{}\", and room for what it does",
                            format_size(need)
                        )
                    },
                )),
        );
        return None;
    }
    let name = blob_name(context.name(), "kernel");
    Some(Image {
        linux: header.size >= kernel::LINUX_MIN,
        ..Image::in_one_piece(name, contents, window)
    })
}

/// Places the zImage of a 32-bit kernel. Only the kernel knows where it unpacks itself to, and how much
/// memory it needs then.
fn place_zimage(program: &Program<'_>, contents: Bytes, report: &mut Report) -> Option<Image> {
    let Program { context, name, areas } = *program;
    if let Err(why) = kernel::check_zimage(&contents) {
        let message = format!("the zImage `{}` is damaged: {why}", name.value);
        report.push(Diagnostic::at(Code::ImageDamaged, name.place, message).help("copy or build it again"));
        return None;
    }
    refuse_raw_keys(context, "a zImage", report);
    let ram = areas[0].window;
    let window = Window {
        base: ram.base.saturating_add(kernel::ZIMAGE_OFFSET),
        size: contents.len() as u64,
    };
    if !ram.contains(window) || ram.end() > 1 << 32 {
        let message = format!(
            "the zImage is loaded {} above the start of RAM, and all of it must be below 4G",
            format_size(kernel::ZIMAGE_OFFSET)
        );
        report.push(
            Diagnostic::at(Code::DoesNotFit, areas[0].place, message)
                .also(name.place, "the kernel")
                .help("give at least \"64M\", at a `ram-base` below 4G"),
        );
        return None;
    }
    Some(Image {
        aarch32: true,
        linux: contents.len() as u64 >= kernel::LINUX_MIN,
        ..Image::in_one_piece(blob_name(context.name(), "kernel"), contents, window)
    })
}

fn place_raw(program: &Program<'_>, contents: Bytes, report: &mut Report) -> Option<Image> {
    let Program { context, name, areas } = *program;
    firmware_belongs_in_flash(program, &contents, report);
    let machine = &context.spec.machine;
    let size = contents.len() as u64;
    let default = machine.ram_base.get().saturating_add(kernel::DEFAULT_OFFSET);
    let window = Window {
        base: machine.load_at.as_ref().map_or(default, |at| at.value.get()),
        size,
    };
    if !areas.iter().any(|area| area.window.contains(window)) {
        let place = machine.load_at.as_ref().map_or(name.place, |at| at.place);
        let message = format!(
            "the binary `{}` at {:#x} with {} is not inside the partition's memory",
            name.value,
            window.base,
            bytes(size)
        );
        report.push(
            Diagnostic::at(Code::DoesNotFit, place, message)
                .also(areas[0].place, format!("RAM from {:#x}", areas[0].window.base))
                .help("give more memory, or another address: `machine.load-at`"),
        );
        return None;
    }
    let entry = machine
        .entry
        .as_ref()
        .map_or(window.base, |entry| entry.value.get());
    let place = machine
        .entry
        .as_ref()
        .or(machine.load_at.as_ref())
        .map_or(name.place, |entry| entry.place);
    entry_is_executable(entry, place, areas, report)?;
    Some(Image {
        entry,
        ..Image::in_one_piece(blob_name(context.name(), "binary"), contents, window)
    })
}

/// The start of the version that U-Boot prints first.
const U_BOOT: &[u8] = b"U-Boot 20";

/// Warns of U-Boot for QEMU's board as a plain binary. It looks for its device tree at the start of RAM,
/// where the tree of a VM is only if the VM starts from flash.
fn firmware_belongs_in_flash(program: &Program<'_>, contents: &[u8], report: &mut Report) {
    let Program { context, name, .. } = *program;
    if context.spec.machine.load_at.is_some() || !contents.windows(U_BOOT.len()).any(|part| part == U_BOOT) {
        return;
    }
    let message = format!("`{}` is U-Boot, which finds no device tree this way", name.value);
    report.push(
        Diagnostic::at(Code::FirmwareImage, name.place, message)
            .label("loaded behind the start of RAM, with the device tree above it")
            .help(format!(
                "start it from flash: no `image`, but `flash = {{ code = \"{}\" }}` and `machine = {{ entry = 0x0 }}`",
                name.value
            )),
    );
}

/// Refuses `load-at` and `entry`, which have a meaning for raw binaries only.
fn refuse_raw_keys(context: &Context<'_>, what: &str, report: &mut Report) {
    let machine = &context.spec.machine;
    for (key, value) in [("load-at", &machine.load_at), ("entry", &machine.entry)] {
        if let Some(value) = value {
            let message = format!("`{key}` is for raw binaries, but the image is {what}");
            report.push(
                Diagnostic::at(Code::BadMachine, value.place, message)
                    .help(format!("remove `{key}`; the image says it itself")),
            );
        }
    }
}

fn place_elf(placed: &Program<'_>, contents: &[u8], report: &mut Report) -> Option<Image> {
    let Program { context, name, areas } = *placed;
    let program = parse_elf(context, name, contents, report)?;
    refuse_raw_keys(context, "an ELF file", report);
    let pieces = elf_pieces(context, name, &program, areas, report)?;
    entry_is_executable(program.entry, name.place, areas, report)?;
    let windows = program
        .segments
        .iter()
        .map(|segment| Window {
            base: segment.guest,
            size: segment.size,
        })
        .collect();
    Some(Image {
        pieces,
        entry: program.entry,
        windows,
        tree_first: true,
        aarch32: program.is_other_state,
        linux: false,
    })
}
