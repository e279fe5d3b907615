// SPDX-License-Identifier: Apache-2.0
//! Disks and networks that the board's emulator plugs into devices.

use std::path::Path;

use crate::board::{AttachmentKind, Board};
use crate::diagnostic::{Code, Diagnostic, Report};
use crate::model::{DiskSpec, Manifest, Placed, network};

pub(super) fn check(manifest: &Manifest, board: &Board, report: &mut Report) {
    let mut seen: Vec<&Placed<String>> = Vec::new();
    for attachment in manifest.emulator.attachments() {
        if let Some(disk) = attachment.disk() {
            source_is_clear(disk, report);
        }
        let Some(name) = attachment.device() else {
            continue;
        };
        possible(name, attachment.kind(), board, report);
        if let Some(first) = seen.iter().find(|other| other.value == name.value) {
            let message = format!("`{}` is given two disks or networks", name.value);
            report.push(
                Diagnostic::at(Code::Attachment, name.place, message)
                    .also(first.place, "the first")
                    .help("a device takes one: choose another device for the second"),
            );
        }
        seen.push(name);
        let owned = manifest
            .partitions
            .iter()
            .any(|partition| partition.devices.iter().any(|device| device.value == name.value))
            || network::uplink(manifest, board).is_some_and(|device| device.name == name.value);
        if !owned {
            let message = format!(
                "something is attached to `{}`, which no partition owns",
                name.value
            );
            report.push(
                Diagnostic::at(Code::UnusedAttachment, name.place, message)
                    .help("give the device to a VM with `devices`, or make it the `uplink` of a network"),
            );
        }
    }
}

/// Checks that the files of disks, as far as they are there, are ordinary ones with something in them. The
/// names are relative to `base`. A file may be made after the check, so a missing one is no mistake yet.
pub(crate) fn disks_are_files(manifest: &Manifest, base: &Path, report: &mut Report) {
    for file in manifest
        .emulator
        .disks
        .iter()
        .filter_map(|disk| disk.file.as_ref())
    {
        let Ok(metadata) = std::fs::metadata(base.join(&file.value)) else {
            continue;
        };
        let why = match (metadata.is_file(), metadata.len()) {
            (false, _) => "is no ordinary file",
            (true, 0) => "is empty",
            (true, _) => continue,
        };
        let message = format!("`{}` cannot be a disk: it {why}", file.value);
        report.push(
            Diagnostic::at(Code::Attachment, file.place, message)
                .help("name an image of a disk; `size` instead of `file` makes an empty disk for one run"),
        );
    }
}

/// Checks that a disk is either a file that stays or an empty disk of a size.
fn source_is_clear(disk: &DiskSpec, report: &mut Report) {
    if disk.file.is_some() == disk.size.is_some() {
        report.push(
            Diagnostic::at(
                Code::Attachment,
                disk.start,
                "a disk needs either a `file` or a `size`",
            )
            .help("`file` names an image that stays; `size` makes an empty disk for one run"),
        );
    }
    if let Some(size) = disk
        .size
        .as_ref()
        .filter(|size| size.value.get() == 0 || !size.value.is_multiple_of(512))
    {
        report.push(
            Diagnostic::at(
                Code::Attachment,
                size.place,
                "a disk has whole sectors of 512 bytes",
            )
            .help("give a size such as \"16M\""),
        );
    }
}

fn possible(name: &Placed<String>, kind: AttachmentKind, board: &Board, report: &mut Report) {
    let takes = |device: &crate::board::Device| !device.attach(kind).is_empty();
    if board.emulator.is_none() {
        let message = format!("board `{}` has no emulator to attach anything to", board.name);
        report.push(Diagnostic::at(Code::Attachment, name.place, message).help("remove `emulator`"));
    } else if !board.device(&name.value).is_some_and(takes) {
        let able: Vec<_> = board
            .devices
            .iter()
            .filter(|device| takes(device))
            .map(|device| device.name.as_str())
            .collect();
        let help = match (able.first(), able.last()) {
            (Some(only), _) if able.len() == 1 => format!("the device that does: {only}"),
            (Some(first), Some(last)) => format!("devices that do: {first} to {last}"),
            _ => format!("no device of board `{}` does", board.name),
        };
        let message = format!("`{}` takes no {}", name.value, kind.name());
        report.push(Diagnostic::at(Code::Attachment, name.place, message).help(help));
    }
}
