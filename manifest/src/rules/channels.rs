// SPDX-License-Identifier: Apache-2.0
//! Channels: who shares which memory, where each side sees it, and how the doorbell reaches it.

use bulkhead_arch_api::class::DeviceRole;
use bulkhead_image::{MAX_FUNCTIONS, MAX_HELD, channel_limits};

use crate::board::{Board, Class};
use crate::diagnostic::{Code, Diagnostic, Place, Report};
use crate::model::machine::taken_line;
use crate::model::{Access, ChannelSpec, Kind, Manifest, PartitionSpec, Placed, SideSpec};
use crate::nearest::nearest;
use crate::place::channels::{BRIDGE_MEMORY, FIRST_ADDRESS, sides_of};
use crate::rules::machine::line_exists;
use crate::units::format_size;
use crate::window::Window;

pub(super) fn check(manifest: &Manifest, board: Option<&Board>, report: &mut Report) {
    fits(manifest, board, report);
    for channel in &manifest.channels {
        has_sides(channel, report);
        for (index, side) in channel.sides.iter().enumerate() {
            let Some(name) = &side.partition else { continue };
            if let Some(first) = earlier(channel, index, &name.value) {
                let message = format!("`{}` is at channel `{}` twice", name.value, channel.name.value);
                report.push(
                    Diagnostic::at(Code::DuplicateName, name.place, message)
                        .also(first, "first named here")
                        .help("give it one side"),
                );
                continue;
            }
            access_has_meaning(channel, side, report);
            in_place(side, board, report);
            can_be_held(channel, side, board, report);
            let mut partitions = manifest.partitions.iter();
            match partitions.find(|partition| partition.name.value == name.value) {
                Some(partition) => bell_reaches(side, manifest, partition, board, report),
                None => unknown_partition(channel, name, manifest, report),
            }
        }
    }
}

/// Returns the place of an earlier side of the same partition.
fn earlier(channel: &ChannelSpec, index: usize, name: &str) -> Option<Place> {
    let names = channel.sides.iter().take(index);
    let mut names = names.filter_map(|side| side.partition.as_ref());
    names.find(|other| other.value == name).map(|other| other.place)
}

fn fits(manifest: &Manifest, board: Option<&Board>, report: &mut Report) {
    let (channels, sides) = channel_limits(Class::of_board(board).facts().tables);
    if let Some(extra) = manifest.channels.get(channels) {
        let message = format!(
            "there are {} channels, but room for {channels}",
            manifest.channels.len()
        );
        report.push(
            Diagnostic::at(Code::BadChannel, extra.name.place, message).help("merge or remove channels"),
        );
    }
    let mut used = 0_usize;
    for channel in &manifest.channels {
        used = used.saturating_add(channel.sides.len());
        if used > sides {
            let message = format!(
                "the channels up to `{}` have {used} sides, but there is room for {sides}",
                channel.name.value
            );
            report.push(
                Diagnostic::at(Code::BadChannel, channel.name.place, message)
                    .help("remove sides, or merge channels"),
            );
            return;
        }
    }
}

fn has_sides(channel: &ChannelSpec, report: &mut Report) {
    let name = &channel.name;
    let (message, help) = if channel.size.is_none() {
        (
            format!("channel `{}` has no size", name.value),
            "give `size`, or `device`",
        )
    } else if channel.device.is_some() && !channel.sides.is_empty() {
        // One driver that can lose its device is enough.
        return;
    } else if channel.sides.len() < 2 {
        (
            format!("channel `{}` has fewer than two sides", name.value),
            "add a table `[[channel.NAME.side]]` for each partition at it",
        )
    } else if !channel.sides.iter().any(|side| side.access.write) {
        (
            format!("nobody may write the memory of channel `{}`", name.value),
            "give one side `access = \"rw\"`",
        )
    } else {
        return;
    };
    if !report.blames(name.place) {
        report.push(Diagnostic::at(Code::BadChannel, name.place, message).help(help));
    }
}

fn access_has_meaning(channel: &ChannelSpec, side: &SideSpec, report: &mut Report) {
    if matches!(*side.access, Access::DATA | Access::READ) {
        return;
    }
    let place = side.access.place.unwrap_or(side.start);
    let message = format!(
        "a side of channel `{}` would execute what another side writes",
        channel.name.value
    );
    report.push(Diagnostic::at(Code::BadChannel, place, message).help("give \"rw\" or \"r\""));
}

/// Reports an address of a side where nothing is translated.
fn in_place(side: &SideSpec, board: Option<&Board>, report: &mut Report) {
    if let (Some(guest), true) = (&side.guest, Class::of_board(board).facts().runs_in_place()) {
        let message = format!(
            "a side has no address of its own on a board of class `{}`",
            Class::of_board(board).name()
        );
        report.push(
            Diagnostic::at(Code::NotForClass, guest.place, message)
                .label("no address is translated")
                .help("remove `guest`, or give `place` of the channel"),
        );
    }
}

/// Checks that the memory of a side can be mapped and unmapped.
fn can_be_held(channel: &ChannelSpec, side: &SideSpec, board: Option<&Board>, report: &mut Report) {
    let (Some(place), true) = (side.held.place, *side.held) else {
        return;
    };
    let class = Class::of_board(board);
    if !class.facts().protects {
        let message = format!(
            "a board of class `{}` cannot unmap the memory of a side",
            class.name()
        );
        report.push(Diagnostic::at(Code::NotForClass, place, message).help("remove `held`"));
        return;
    }
    let (message, help) = match &channel.size {
        _ if *side.pci => (
            "the memory of a PCI function is always there".to_owned(),
            "remove `held` or `pci`".to_owned(),
        ),
        Some(size) if size.value.get() > MAX_HELD => (
            format!(
                "channel `{}` is too large to be mapped while it is held",
                channel.name.value
            ),
            format!("give it {} at most, or remove `held`", format_size(MAX_HELD)),
        ),
        _ => return,
    };
    report.push(Diagnostic::at(Code::BadChannel, place, message).help(help));
}

fn unknown_partition(channel: &ChannelSpec, name: &Placed<String>, manifest: &Manifest, report: &mut Report) {
    let names = manifest
        .partitions
        .iter()
        .map(|partition| partition.name.value.as_str());
    let help = match nearest(&name.value, names.clone()) {
        Some(near) => format!("did you mean \"{near}\"?"),
        None => format!("the partitions are: {}", names.collect::<Vec<_>>().join(", ")),
    };
    let message = format!(
        "channel `{}` has a side of `{}`, which does not exist",
        channel.name.value, name.value
    );
    report.push(Diagnostic::at(Code::BadChannel, name.place, message).help(help));
}

/// Checks that a side can be a PCI function.
fn function_is_possible(
    side: &SideSpec,
    place: Place,
    manifest: &Manifest,
    partition: &PartitionSpec,
    board: Option<&Board>,
    report: &mut Report,
) {
    let name = &partition.name.value;
    let class = Class::of_board(board);
    let mut devices = class.facts().devices.iter();
    if !devices.any(|device| device.role == DeviceRole::Bridge) {
        let message = format!("a board of class `{}` has no virtual PCI", class.name());
        report.push(Diagnostic::at(Code::NotForClass, place, message).help("remove `pci`"));
        return;
    }
    if partition.kind == Kind::Task {
        let message = format!("`{name}` is a task, which has no PCI");
        report.push(Diagnostic::at(Code::NotForTask, place, message).help("remove `pci`"));
        return;
    }
    let sides = sides_of(manifest, name);
    let own = sides.iter().find(|own| own.spec.start == side.start);
    let (base, size) = own.map_or((0, 1), |own| (own.window.base, own.window.size));
    let (message, help) = if side.interrupt.is_none() {
        (
            format!("the PCI function of `{name}` has no interrupt"),
            "give `interrupt`, the line of its INTx".to_owned(),
        )
    } else if !size.is_power_of_two() || !base.is_multiple_of(size) {
        (
            "the memory of a PCI function has a power of two of bytes, at a multiple of that".to_owned(),
            "change `size` of the channel, or `guest`".to_owned(),
        )
    } else if !BRIDGE_MEMORY.contains(Window { base, size }) {
        (
            "the memory of a PCI function is outside the window of the bridge".to_owned(),
            format!("remove `guest`, or choose an address from {FIRST_ADDRESS:#x} on"),
        )
    } else if partition.machine.functions > MAX_FUNCTIONS {
        (
            format!("`{name}` has more than {MAX_FUNCTIONS} PCI functions"),
            "remove some".to_owned(),
        )
    } else {
        return;
    };
    report.push(Diagnostic::at(Code::BadChannel, place, message).help(help));
}

/// Checks that the doorbell can reach a partition as the manifest says.
fn bell_reaches(
    side: &SideSpec,
    manifest: &Manifest,
    partition: &PartitionSpec,
    board: Option<&Board>,
    report: &mut Report,
) {
    let name = &partition.name.value;
    if let (Some(event), false) = (&side.event, partition.can_wait()) {
        let message = format!("partition `{name}` cannot wait for the events of its gate");
        report.push(
            Diagnostic::at(Code::BadChannel, event.place, message).help(format!(
                "add `events = {{ event-gate = \"{name}\", rights = [\"read\"] }}` to its capabilities"
            )),
        );
    }
    if let (Some(place), true) = (side.pci.place, *side.pci) {
        function_is_possible(side, place, manifest, partition, board, report);
    }
    let Some(line) = &side.interrupt else { return };
    if partition.kind == Kind::Task {
        let message = format!("`{name}` is a task, which has no interrupts");
        report.push(
            Diagnostic::at(Code::NotForTask, line.place, message)
                .help("give `event`, and the capability to wait at its own gate"),
        );
        return;
    }
    let number = line.value.get();
    if !line_exists("the doorbell's", number, line.place, partition, board, report) {
        return;
    }
    let other = sides_of(manifest, name).into_iter().find(|other| {
        let same = |taken: &Placed<_>| taken.place.start < line.place.start && taken.value == line.value;
        other.spec.interrupt.as_ref().is_some_and(same)
    });
    let owner = match other {
        Some(other) => Some(format!(
            "the doorbell's of channel `{}`",
            other.channel.name.value
        )),
        None => taken_line(partition, board, number),
    };
    if let Some(owner) = owner {
        let message = format!("line {number} of the doorbell is {owner}");
        report
            .push(Diagnostic::at(Code::BadLine, line.place, message).help("give the doorbell another line"));
    }
}
