// SPDX-License-Identifier: Apache-2.0
//! Channels: who shares which memory, where each side sees it, and how the doorbell reaches it.

use bulkhead_arch_api::class::{DeviceRole, device};
use bulkhead_image::layout::{
    ChannelRecord, NONE, Name, SIDE_DEVICE, SIDE_EDGE, SIDE_FUNCTION, SIDE_HELD, SIDE_WRITES, SideRecord,
};
use bulkhead_image::{MAX_FUNCTIONS, MAX_HELD, NameError, channel_limits};

use crate::board::{Board, Class, Device, Trigger};
use crate::diagnostic::{Code, Diagnostic, Place, Report};
use crate::model::{Access, ChannelSpec, Kind, Manifest, PartitionSpec, Placed, SideSpec};
use crate::nearest::nearest;
use crate::rules::machine::{line_exists, taken_line};
use crate::units::{Address, BLOCK, PAGE, Size, align_up, format_size};
use crate::window::Window;

/// The address from which on partitions see their channels, unless the manifest says otherwise: QEMU's `virt`
/// board has no memory and no device there that a VM of ours has.
const FIRST_ADDRESS: u64 = 0x1000_0000;

/// A partition at a channel.
#[derive(Clone, Copy)]
pub(crate) struct Side<'a> {
    /// Number of the channel.
    pub number: usize,
    pub channel: &'a ChannelSpec,
    pub spec: &'a SideSpec,
    /// The addresses at which the partition sees the memory. A class without translation finds them with the
    /// places of everything.
    pub window: Window,
}

/// Returns the number of a channel in the system image.
pub(crate) fn number(manifest: &Manifest, name: &str) -> Option<usize> {
    manifest
        .channels
        .iter()
        .position(|channel| channel.name.value == name)
}

/// Returns the sides of a partition, in the order of the channels.
pub(crate) fn sides_of<'a>(manifest: &'a Manifest, partition: &str) -> Vec<Side<'a>> {
    let is_own = |side: &&SideSpec| matches!(&side.partition, Some(own) if own.value == partition);
    let mut next = FIRST_ADDRESS;
    let mut sides = Vec::new();
    for (number, channel) in manifest.channels.iter().enumerate() {
        let Some(spec) = channel.sides.iter().find(is_own) else {
            continue;
        };
        let size = channel.size.as_ref().map_or(0, |size| size.value.get());
        // A base address register tells a multiple of its size.
        let unit = match *spec.pci {
            true if size.is_power_of_two() => size.max(PAGE),
            _ if size >= BLOCK => BLOCK,
            _ => PAGE,
        };
        let base = match &spec.guest {
            Some(guest) => guest.value.get(),
            None => {
                let base = align_up(next, unit).unwrap_or(next);
                next = base.saturating_add(size);
                base
            }
        };
        sides.push(Side {
            number,
            channel,
            spec,
            window: Window { base, size },
        });
    }
    sides
}

/// The virtual PCI host bridge: the place of its configuration space is that of QEMU's `virt` board, and its
/// registers are behind its window for memory.
pub(crate) const BRIDGE: [(&str, Window); 2] = [
    (
        "virtual PCI host bridge",
        Window {
            base: 0x3f00_0000,
            size: device::PCI_BRIDGE.windows[0].size,
        },
    ),
    (
        "registers of virtual PCI functions",
        Window {
            base: 0x3e00_0000,
            size: device::PCI_BRIDGE.windows[1].size,
        },
    ),
];
/// The window for memory: from the first channel to the last register.
pub(crate) const BRIDGE_MEMORY: Window = Window {
    base: FIRST_ADDRESS,
    size: 0x2e10_0000,
};

/// Counts the PCI functions of each partition.
pub(crate) fn count_functions(manifest: &mut Manifest) {
    let names = manifest.partitions.iter().map(|partition| &partition.name.value);
    let count = |name: &String| {
        let sides = sides_of(manifest, name);
        sides.iter().filter(|side| *side.spec.pci).count()
    };
    let counts: Vec<usize> = names.map(count).collect();
    for (partition, count) in manifest.partitions.iter_mut().zip(counts) {
        partition.machine.functions = count;
    }
}

/// Returns the device whose registers are the memory of a channel.
pub(crate) fn lent<'b>(channel: &ChannelSpec, board: &'b Board) -> Option<&'b Device> {
    board.device(&channel.device.as_ref()?.value)
}

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
    let refusal = refusal(channel, name, device, (manifest, board));
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
    (manifest, board): (&Manifest, &Board),
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

/// Returns the record of a channel whose first side has this number.
pub(crate) fn record(channel: &ChannelSpec, host: u64, first: usize) -> Result<ChannelRecord, NameError> {
    Ok(ChannelRecord {
        name: Name::new(&channel.name.value)?,
        host: host.into(),
        size: channel.size.as_ref().map_or(0, |size| size.value.get()).into(),
        first_side: (first as u32).into(),
        side_count: (channel.sides.len() as u32).into(),
    })
}

/// Returns the record of a side.
pub(crate) fn side_record(
    (channel, device): (usize, Option<&Device>),
    side: &SideSpec,
    partition: usize,
    guest: u64,
) -> SideRecord {
    let line = device.and_then(|device| device.interrupts.first());
    let bits = [
        (device.is_some(), SIDE_DEVICE),
        (line.is_some_and(|line| line.trigger == Trigger::Edge), SIDE_EDGE),
        (side.access.write, SIDE_WRITES),
        (*side.pci, SIDE_FUNCTION),
        (*side.held, SIDE_HELD),
    ];
    let set = bits.iter().filter(|(set, _)| *set);
    let flags = set.fold(0, |flags, (_, bit)| flags | bit);
    SideRecord {
        channel: (channel as u32).into(),
        partition: (partition as u32).into(),
        guest: guest.into(),
        virtual_line: side
            .interrupt
            .as_ref()
            .map_or(NONE, |line| line.value.get())
            .into(),
        event: side.event.as_ref().map_or(NONE, |event| event.value.get()).into(),
        flags: flags.into(),
        line: line.map_or(0, |line| line.line.get().saturating_add(1)).into(),
    }
}

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
                Some(partition) => bell_reaches(side, (manifest, partition), board, report),
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
    (manifest, partition): (&Manifest, &PartitionSpec),
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
    (manifest, partition): (&Manifest, &PartitionSpec),
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
        function_is_possible(side, place, (manifest, partition), board, report);
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
    if !line_exists("the doorbell's", number, line.place, (partition, board), report) {
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
