// SPDX-License-Identifier: Apache-2.0
//! Memory as the partitions see it: sizes, alignment, overlaps, virtual devices.

use bulkhead_arch_api::AddressSpace;

use crate::board::{Board, Class};
use crate::class;
use crate::diagnostic::{Code, Diagnostic, Place, Report};
use crate::model::machine::uart_size;
use crate::model::side::Side;
use crate::model::{Kind, Manifest, PartitionSpec, Placed, TASK_BASE, network};
use crate::place::channels;
use crate::units::{Address, PAGE, Size, format_size};
use crate::window::Window;

pub(crate) fn check(manifest: &Manifest, board: Option<&Board>, report: &mut Report) {
    let class = Class::of_board(board);
    if class.facts().runs_in_place() {
        // If nothing is translated, places are known only when the programs are known.
        return;
    }
    for channel in &manifest.channels {
        if let Some(size) = &channel.size {
            size_is_possible(size, report);
        }
        let guests = channel.sides.iter().filter_map(|side| side.guest.as_ref());
        for address in channel.at.iter().chain(guests) {
            address_is_aligned(address, report);
        }
    }
    for partition in &manifest.partitions {
        for size in [&partition.memory]
            .into_iter()
            .chain(partition.regions.iter().map(|r| &r.size))
            .flatten()
        {
            size_is_possible(size, report);
        }
        for address in addresses(partition) {
            address_is_aligned(&address, report);
        }
        class::host(class).check_machine(partition, board, report);
        let mut areas = memory(partition);
        let sides = channels::sides_of(manifest, &partition.name.value);
        areas.extend(sides.iter().map(side));
        if partition.kind == Kind::Vm {
            areas.extend(device_areas(partition, board));
        }
        areas_are_apart(partition, &areas, board, report);
    }
}

fn size_is_possible(size: &Placed<Size>, report: &mut Report) {
    let bytes = size.value.get();
    if bytes == 0 {
        report.push(Diagnostic::at(Code::ZeroSize, size.place, "the size is zero").help("give at least 4K"));
    } else if !size.value.is_multiple_of(PAGE) {
        let up = bytes.div_ceil(PAGE).saturating_mul(PAGE);
        let message = format!(
            "the size {} is not a multiple of the page size",
            format_size(bytes)
        );
        report.push(
            Diagnostic::at(Code::UnalignedSize, size.place, message).help(format!(
                "pages have 4K; the next multiple is \"{}\"",
                format_size(up)
            )),
        );
    }
}

/// Returns every address of a partition in the manifest that must be page aligned.
fn addresses(partition: &PartitionSpec) -> Vec<Placed<Address>> {
    let mut all: Vec<_> = partition.at.iter().cloned().collect();
    for region in &partition.regions {
        all.extend(region.guest.iter().cloned().chain(region.at.iter().cloned()));
    }
    let machine = &partition.machine;
    all.extend(machine.ram_base.key.map(|place| Placed {
        value: machine.ram_base.value,
        place,
    }));
    all
}

fn address_is_aligned(address: &Placed<Address>, report: &mut Report) {
    if !address.value.is_multiple_of(PAGE) {
        let message = format!(
            "the address {:#x} is not a multiple of the page size",
            address.value
        );
        report.push(
            Diagnostic::at(Code::UnalignedAddress, address.place, message).help(format!(
                "pages have 4K; the one it is in starts at {:#x}",
                address.value.get() & !(PAGE - 1)
            )),
        );
    }
}

/// Something at a guest address.
pub(crate) struct Area {
    pub what: String,
    pub window: Window,
    place: Place,
    is_memory: bool,
}

impl Area {
    /// Makes an area of memory, or of a device's registers. `what` is its name in a message.
    pub fn new(what: impl Into<String>, window: Window, place: Place, is_memory: bool) -> Self {
        Self {
            what: what.into(),
            window,
            place,
            is_memory,
        }
    }
}

/// Returns the memory of a partition whose place the manifest gives.
fn memory(partition: &PartitionSpec) -> Vec<Area> {
    let mut areas = Vec::new();
    if let Some(memory) = &partition.memory {
        let base = match partition.kind {
            Kind::Task => TASK_BASE,
            Kind::Vm => partition.machine.ram_base.get(),
        };
        let size = memory.value.get();
        areas.push(Area::new("RAM", Window { base, size }, memory.place, true));
    }
    let known = partition
        .regions
        .iter()
        .filter_map(|region| region.guest.as_ref().zip(region.size.as_ref()));
    for (guest, size) in known {
        let window = Window {
            base: guest.value.get(),
            size: size.value.get(),
        };
        areas.push(Area::new("region", window, guest.place, true));
    }
    if let Some(flash) = &partition.flash {
        let banks = flash.banks();
        areas.extend(banks.map(|window| Area::new("flash", window, flash.place, true)));
    }
    areas
}

/// Returns the memory of a channel as a partition sees it.
fn side(side: &Side<'_>) -> Area {
    let guest = side.spec.guest.as_ref().map(|guest| guest.place);
    Area::new(
        format!("channel `{}`", side.channel.name.value),
        side.window,
        guest.unwrap_or(side.spec.start),
        true,
    )
}

/// Returns the registers of a partition's virtual devices.
pub(crate) fn virtual_areas(partition: &PartitionSpec, board: Option<&Board>) -> Vec<Area> {
    let machine = &partition.machine;
    let mut areas = Vec::new();
    let gic = machine.gic.key.unwrap_or(partition.name.place);
    let controller = class::host(Class::of_board(board)).virtual_controller(partition, board);
    let windows = controller.into_iter().flat_map(|controller| controller.windows);
    areas.extend(windows.map(|(name, window)| Area::new(format!("virtual {name}"), window, gic, false)));
    if partition.console {
        let place = machine.uart.key.unwrap_or(partition.name.place);
        let window = Window {
            base: machine.uart.base.get(),
            size: uart_size(Class::of_board(board).facts()),
        };
        // A UART at I/O ports takes no memory.
        let is_in_memory = Class::of_board(board)
            .facts()
            .console()
            .is_none_or(|(device, _)| device.windows[0].space == AddressSpace::Memory);
        if is_in_memory {
            areas.push(Area::new("virtual UART", window, place, false));
        }
    }
    if machine.functions != 0 {
        let place = partition.name.place;
        areas.extend(channels::BRIDGE.map(|(what, window)| Area::new(what, window, place, false)));
    }
    for served in &machine.served {
        let what = format!("registers of service `{}`", served.service);
        areas.push(Area::new(what, served.window, served.place, false));
    }
    let network = partition.network.as_ref();
    let interface = network.zip(board.and_then(network::controller));
    if let Some((network, window)) =
        interface.and_then(|(network, device)| Some((network, *device.registers.first()?)))
    {
        areas.push(Area::new(
            "virtual Ethernet controller",
            window,
            network.place,
            false,
        ));
    }
    areas
}

/// Returns the registers that a partition sees: the registers of its virtual devices, and of devices of the
/// board.
pub(crate) fn device_areas(partition: &PartitionSpec, board: Option<&Board>) -> Vec<Area> {
    let mut areas = virtual_areas(partition, board);
    // Devices that share a page share the mapping too, so each page comes once.
    let mut pages: Vec<Window> = Vec::new();
    for name in &partition.devices {
        let Some(device) = board.and_then(|board| board.device(&name.value)) else {
            continue;
        };
        for window in device.registers.iter().map(|window| window.pages()) {
            if !pages.contains(&window) {
                pages.push(window);
                areas.push(Area::new(
                    format!("device `{}`", name.value),
                    window,
                    name.place,
                    false,
                ));
            }
        }
    }
    areas
}

/// Reports areas that overlap or that cannot be mapped.
pub(crate) fn areas_are_apart(
    partition: &PartitionSpec,
    areas: &[Area],
    board: Option<&Board>,
    report: &mut Report,
) {
    let limit = Class::of_board(board).facts().guest_address_limit;
    for (index, area) in areas.iter().enumerate() {
        let end = area.window.base.checked_add(area.window.size);
        if end.is_none_or(|end| end > limit) {
            let message = format!(
                "{} at {:#x} with {} reaches beyond what can be mapped",
                area.what,
                area.window.base,
                format_size(area.window.size)
            );
            report.push(
                Diagnostic::at(Code::GuestRange, area.place, message)
                    .help(format!("stay below {limit:#x} ({} address bits)", limit.ilog2())),
            );
            continue;
        }
        for other in &areas[..index] {
            if area.window.overlaps(other.window) {
                report.push(overlap(partition, other, area));
            }
        }
    }
}

fn overlap(partition: &PartitionSpec, first: &Area, second: &Area) -> Diagnostic {
    let both_memory = first.is_memory && second.is_memory;
    let code = if both_memory {
        Code::GuestOverlap
    } else {
        Code::VirtualOverlap
    };
    let message = format!(
        "{} and {} of partition `{}` overlap at {:#x}",
        first.what,
        second.what,
        partition.name.value,
        first.window.base.max(second.window.base)
    );
    let range = |area: &Area| {
        format!(
            "{}: {:#x} to {:#x}",
            area.what,
            area.window.base,
            area.window.end().saturating_sub(1)
        )
    };
    let mut diagnostic = Diagnostic::at(code, second.place, message).label(range(second));
    if first.place != second.place {
        diagnostic = diagnostic.also(first.place, range(first));
    }
    diagnostic.help("move or shrink one of them")
}
