// SPDX-License-Identifier: Apache-2.0
//! Surprises for users who run a Linux kernel: the kernel is loaded as the manifest says, and then ends with
//! a panic.
//!
//! These are warnings only. A kernel can have its root file system built in, and the tool cannot know how
//! little memory a kernel needs.

use super::image::Image;
use crate::diagnostic::{Code, Diagnostic, Report};
use crate::guest::Context;
use crate::payload::bytes;
use crate::units::PAGE;
use crate::window::Window;
use bulkhead_image::layout::HealthAction;

/// Memory that a kernel needs for itself, beside its image and a RAM disk.
const ROOM: u64 = 16 << 20;
/// Size of an unpacked RAM disk, as a multiple of the packed one, which is still in memory then: gzip makes a
/// third of it.
const UNPACKED: u64 = 3;
/// Words of a command line that say where the root file system is, or that tell the kernel to find one.
const ROOTS: [&str; 3] = ["root=", "nfsroot=", "rdinit="];

/// Checks a Linux kernel in `ram` whose RAM disk has `ramdisk` bytes.
pub(super) fn check(context: &Context<'_>, image: &Image, ramdisk: u64, ram: Window, report: &mut Report) {
    if !image.linux {
        return;
    }
    it_starts_cold(context, report);
    there_is_a_root(context, ramdisk, report);
    there_is_room(context, image, ramdisk, ram, report);
}

fn it_starts_cold(context: &Context<'_>, report: &mut Report) {
    let mut actions = context.spec.health.actions().map(|(_, action)| action);
    if let Some(action) = actions.find(|action| action.value == HealthAction::RestartWarm) {
        report.push(
            Diagnostic::at(
                Code::WarmKernel,
                action.place,
                "a Linux kernel cannot be entered twice",
            )
            .label("its data are then those of its earlier life")
            .help("use \"restart\": the kernel is loaded anew"),
        );
    }
}

fn there_is_a_root(context: &Context<'_>, ramdisk: u64, report: &mut Report) {
    let spec = context.spec;
    let arguments = spec.bootargs.as_ref().map_or("", |bootargs| &bootargs.value);
    let named = |argument: &str| ROOTS.iter().any(|root| argument.starts_with(root));
    if ramdisk != 0 || arguments.split_ascii_whitespace().any(named) {
        return;
    }
    let Some(image) = &spec.image else { return };
    report.push(
        Diagnostic::at(
            Code::NoRoot,
            image.place,
            format!("the kernel of `{}` has no root file system", context.name()),
        )
        .label("boots, then panics: unable to mount root fs")
        .help("add a `ramdisk`, or `root=` to `bootargs`; ignore this if one is built into the kernel"),
    );
}

fn there_is_room(context: &Context<'_>, image: &Image, ramdisk: u64, ram: Window, report: &mut Report) {
    let Some(memory) = &context.spec.memory else {
        return;
    };
    let needed = ramdisk.saturating_mul(UNPACKED).saturating_add(ROOM);
    let loaded = image
        .high_in(ram)
        .saturating_sub(ram.base)
        .saturating_add(ramdisk);
    let left = ram.size.saturating_sub(loaded);
    if left < needed {
        let message = format!(
            "kernel and RAM disk of `{}` leave {} of memory",
            context.name(),
            bytes(left & !(PAGE - 1))
        );
        report.push(
            Diagnostic::at(Code::LittleMemory, memory.place, message)
                .label("Linux may run out of it while it boots")
                .help(format!(
                    "{} more: what the RAM disk unpacks to, and room to work",
                    bytes((needed - left).next_multiple_of(PAGE))
                )),
        );
    }
}
