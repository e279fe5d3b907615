// SPDX-License-Identifier: Apache-2.0
//! The memory of a VM: areas, image, RAM disk, device tree.
//!
//! Placement inside a VM follows QEMU's `virt` board (hw/arm/boot.c of QEMU 7.2), because software built for
//! that board may depend on it. A Linux Image is at RAM base plus its offset, a raw binary at RAM base plus
//! 512K. The RAM disk is at 128M or half of RAM, whichever is less. The device tree is after the RAM disk or,
//! for an ELF image and for firmware, at the start of RAM. Where that does not fit, the RAM disk and the
//! device tree go to the end of RAM. x0 is always the device tree's address.

use std::rc::Rc;

use bulkhead_arch_api::EntryState;
use bulkhead_arch_api::class::AARCH32;

use super::devicetree::{self, Machine};
use super::image::{self, Image};
use super::linux;
use super::virtual_flash as flash;
use crate::diagnostic::{Code, Diagnostic, Report};
use crate::guest::first::load_init;
use crate::guest::{Area, AreaKind, Context, Guest, Part, ramdisk, region_payloads, vm_areas};
use crate::model::{Access, PartitionSpec, Placed};
use crate::payload::{Bytes, Loader, Piece, blob_name, bytes, initramfs, is_ramdisk};
use crate::units::{BLOCK, PAGE, align_up, format_size};
use crate::window::Window;

/// QEMU's largest distance of the RAM disk from the start of RAM.
const RAMDISK_MAX_OFFSET: u64 = 128 << 20;
/// Alignment of the device tree if the tree is not at QEMU's place.
const TREE_ALIGN: u64 = PAGE;

fn areas(spec: &PartitionSpec) -> Option<Vec<Area>> {
    let mut areas = vm_areas(spec)?;
    if let Some(flash) = &spec.flash {
        areas.extend(flash.banks().map(|window| Area {
            kind: AreaKind::Flash,
            window,
            access: Access::CODE,
            at: None,
            place: flash.place,
        }));
    }
    Some(areas)
}

/// Builds the memory of a VM; `None` if something was reported.
pub(super) fn build(context: &Context<'_>, loader: &mut Loader<'_>, report: &mut Report) -> Option<Guest> {
    let spec = context.spec;
    let areas = areas(spec)?;
    let mut pieces = region_payloads(context, loader, report)?;
    pieces.extend(flash::pieces(context, loader, report)?);
    let image = match &spec.image {
        Some(name) => {
            let contents = loader.load(name, report)?;
            let program = image::Program {
                context,
                name,
                areas: &areas,
            };
            image::place_image(&program, contents, report)?
        }
        None => image::firmware(spec, &areas, report)?,
    };
    let ramdisk = load_ramdisk(context, loader, report)?;
    let overlay = match &spec.overlay {
        Some(name) => Some((name, devicetree::overlay::load(name, loader, report)?)),
        None => None,
    };
    if image.linux {
        ramdisk::check(context, ramdisk.as_ref(), report);
    }
    let ramdisk_size = ramdisk.as_ref().map_or(0, |ramdisk| ramdisk.len() as u64);
    linux::check(context, &image, ramdisk_size, areas[0].window, report);
    let tree = |ramdisk: Option<Window>, report: &mut Report| {
        let machine = Machine {
            context,
            areas: &areas,
            ramdisk,
        };
        devicetree::generate(
            &machine,
            overlay
                .as_ref()
                .map(|(name, overlay)| (*name, overlay.as_slice())),
            report,
        )
    };
    // The size of the tree does not depend on the addresses in the tree.
    let tree_size = tree(
        (ramdisk_size > 0).then_some(Window {
            base: 0,
            size: ramdisk_size,
        }),
        report,
    )?
    .len() as u64;
    let (ramdisk_at, tree_at) =
        place_rest(context, &image, areas[0].window, ramdisk_size, tree_size, report)?;
    let device_tree = tree(
        ramdisk.as_ref().map(|_| Window {
            base: ramdisk_at,
            size: ramdisk_size,
        }),
        report,
    )?;
    pieces.extend(image.pieces);
    pieces.extend(
        ramdisk.map(|ramdisk| Piece::whole(blob_name(context.name(), "ramdisk"), ramdisk, ramdisk_at)),
    );
    pieces.push(Piece::whole(
        blob_name(context.name(), "device-tree"),
        Rc::new(device_tree.clone()),
        tree_at,
    ));
    Some(Guest {
        parts: Part::whole(&areas),
        areas,
        pieces,
        entry: image.entry,
        argument: tree_at,
        stack: 0,
        device_tree,
        entry_state: if image.aarch32 { AARCH32 } else { EntryState::USUAL },
        ..Guest::default()
    })
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
    if !is_ramdisk(&archive) {
        let message = format!(
            "`{}` is neither a cpio archive nor compressed in a way Linux knows",
            name.value
        );
        report.push(
            Diagnostic::at(Code::OddRamdisk, name.place, message)
                .help("ignore this if the guest is not Linux"),
        );
    }
    let modules = match modules(context.spec) {
        Some(name) => Some(loader.load(&name, report)?),
        None => None,
    };
    let archives: Vec<&[u8]> = [Some(&archive), modules.as_ref()]
        .into_iter()
        .flatten()
        .map(|archive| archive.as_slice())
        .collect();
    let init = load_init(context, loader, &archives, report)?;
    if modules.is_none() && init.is_none() {
        return Some(Some(archive));
    }
    let joined = initramfs::join(
        &archive,
        modules.as_ref().map(|modules| modules.as_slice()),
        init.as_ref().map(|script| script.as_slice()),
    );
    Some(Some(Rc::new(joined)))
}

/// Returns the name of the payload with the modules that a VM asks for. The resolver has this archive; it
/// belongs to the VM's kernel.
fn modules(spec: &PartitionSpec) -> Option<Placed<String>> {
    let (image, first) = (spec.image.as_ref()?, spec.modules.first()?);
    let names: Vec<&str> = spec.modules.iter().map(|module| module.value.as_str()).collect();
    Some(Placed {
        value: format!("{}/modules/{}", image.value, names.join(",")),
        place: first.place,
    })
}

/// Finds the places of RAM disk and device tree.
fn place_rest(
    context: &Context<'_>,
    image: &Image,
    ram: Window,
    ramdisk: u64,
    tree: u64,
    report: &mut Report,
) -> Option<(u64, u64)> {
    let high = image.high_in(ram);
    if let Some(found) = places(image, ram, high, ramdisk, tree) {
        return Some(found);
    }
    let place = context
        .spec
        .memory
        .as_ref()
        .map_or(context.spec.name.place, |memory| memory.place);
    let message = format!(
        "{} of RAM hold the image up to {high:#x}, but not also {} of RAM disk and {} of device tree",
        format_size(ram.size),
        bytes(ramdisk),
        bytes(tree)
    );
    let need = high
        .saturating_sub(ram.base)
        .saturating_add(ramdisk)
        .saturating_add(tree)
        .saturating_add(2 * PAGE);
    let need = align_up(need, 1 << 20).unwrap_or(u64::MAX);
    report.push(Diagnostic::at(Code::DoesNotFit, place, message).help(format!(
        "give at least \"{}\", and room for what the partition does",
        format_size(need)
    )));
    None
}

fn places(image: &Image, ram: Window, high: u64, ramdisk: u64, tree: u64) -> Option<(u64, u64)> {
    let fits = |base: u64, size: u64| ram.contains(Window { base, size });
    let tree_first = image.tree_first && (image.low() >= ram.base.checked_add(tree)? || high == ram.base);
    let preferred = ram
        .base
        .checked_add(RAMDISK_MAX_OFFSET.min(ram.size / 2))?
        .max(high);
    let ramdisk_at = align_up(preferred, PAGE)?;
    if tree_first {
        if fits(ram.base, tree) && (ramdisk == 0 || fits(ramdisk_at, ramdisk)) {
            return Some((ramdisk_at, ram.base));
        }
    } else {
        let tree_at = align_up(ramdisk_at.checked_add(ramdisk)?, BLOCK)?;
        if fits(ramdisk_at, ramdisk) && fits(tree_at, tree) {
            return Some((ramdisk_at, tree_at));
        }
    }
    let tree_at = ram.end().checked_sub(tree)? & !(TREE_ALIGN - 1);
    let ramdisk_at = tree_at.checked_sub(ramdisk)? & !(PAGE - 1);
    (ramdisk_at >= high && ramdisk_at >= ram.base).then_some((ramdisk_at, tree_at))
}
