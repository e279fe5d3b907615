// SPDX-License-Identifier: Apache-2.0
//! Devices that are lent: their registers are the memory of a channel.

use crate::board::{Board, Device};
use crate::diagnostic::{Code, Diagnostic, Report};
use crate::model::{ChannelSpec, Manifest, Placed};
use crate::nearest::nearest;
use crate::units::{Address, PAGE, Size};
use crate::window::Window;

/// Makes the registers of devices the memory of the channels that lend them.
pub(crate) fn lend(manifest: &mut Manifest, board: Option<&Board>, report: &mut Report) {
    let Some(board) = board else { return };
    for number in 0..manifest.channels.len() {
        let found = lent_window(number, manifest, board, report);
        let Some(channel) = manifest.channels.get_mut(number) else {
            continue;
        };
        let Some(place) = channel.device.as_ref().map(|device| device.place) else {
            continue;
        };
        let window = found.unwrap_or(Window { base: 0, size: PAGE });
        channel.at = Some(Placed {
            value: Address::new(window.base),
            place,
        });
        channel.size = Some(Placed {
            value: Size::new(window.size),
            place,
        });
        for side in &mut channel.sides {
            side.held.value = true;
        }
    }
}

/// Returns the pages with the registers of the device that a channel lends. Reports a device that cannot be
/// lent.
fn lent_window(number: usize, manifest: &Manifest, board: &Board, report: &mut Report) -> Option<Window> {
    let channel = manifest.channels.get(number)?;
    let name = channel.device.as_ref()?;
    if !board.class.facts().protects {
        let message = format!("a board of class `{}` cannot lend a device", board.class.name());
        report.push(
            Diagnostic::at(Code::NotForClass, name.place, message)
                .help("give the device to one VM, by its `devices`"),
        );
        return None;
    }
    let Some(device) = board.device(&name.value) else {
        let names = board.devices.iter().map(|device| device.name.as_str());
        let help = nearest(&name.value, names).map_or_else(
            || "`bulkhead boards` lists the devices".to_owned(),
            |near| format!("did you mean \"{near}\"?"),
        );
        let message = format!("board `{}` has no device `{}`", board.name, name.value);
        report.push(Diagnostic::at(Code::UnknownDevice, name.place, message).help(help));
        return None;
    };
    let refusal = refusal(channel, name, device, manifest, board);
    if let Some((message, help)) = refusal {
        report.push(Diagnostic::at(Code::BadChannel, name.place, message).help(help));
        return None;
    }
    device.registers.first().map(|registers| registers.pages())
}

/// Returns why a device cannot be lent, and what to do.
fn refusal(
    channel: &ChannelSpec,
    name: &Placed<String>,
    device: &Device,
    manifest: &Manifest,
    board: &Board,
) -> Option<(String, &'static str)> {
    let own = &name.value;
    let is_it = |other: &&Placed<String>| other.value == *own && other.place.start != name.place.start;
    let mut owners = manifest
        .partitions
        .iter()
        .flat_map(|partition| &partition.devices);
    let mut lenders = manifest.channels.iter().filter_map(|other| other.device.as_ref());
    let hypervisors = board.hypervisor_devices();
    let shares = |window: &Window| {
        hypervisors
            .iter()
            .any(|(_, theirs)| window.pages().overlaps(*theirs))
    };
    let is_taken = |line: u32| board.hypervisor_lines().iter().any(|(own, _)| *own == line);
    if channel
        .sides
        .iter()
        .any(|side| *side.pci || side.interrupt.is_some() || side.event.is_some())
    {
        return Some((
            format!("a side of device `{own}` has a doorbell"),
            "remove `pci`, `interrupt` and `event`: the line of the device is a capability",
        ));
    }
    if owners.any(|other| other.value == *own) || lenders.any(|other| is_it(&other)) {
        return Some((
            format!("device `{own}` is given away twice"),
            "name it in `devices` of one VM, or in one channel",
        ));
    }
    if device.dma {
        return Some((
            format!("device `{own}` accesses memory by itself"),
            "give it to one VM, by its `devices`",
        ));
    }
    let has_page = device.registers.len() == 1
        && board.page_neighbours(device).next().is_none()
        && !device.registers.iter().any(shares);
    let lines = &device.interrupts;
    if !has_page || lines.len() > 1 || lines.iter().any(|line| is_taken(line.line.get())) {
        return Some((
            format!("device `{own}` has no pages and no line of its own"),
            "lend a device with one window of registers, in pages of its own, and at most one line",
        ));
    }
    None
}
