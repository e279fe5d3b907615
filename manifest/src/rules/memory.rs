// SPDX-License-Identifier: Apache-2.0
//! Memory as the partitions see it: sizes, alignment, overlaps, virtual devices.

use crate::board::{Board, Class, Gic, Window};
use crate::diagnostic::{Code, Diagnostic, Place, Report};
use crate::model::{Kind, Manifest, PartitionSpec, Placed};
use crate::units::{PAGE, format_size};

/// Base of a task's memory.
pub(crate) const TASK_BASE: u64 = 0x4000_0000;
/// Bytes of a GICv3 distributor's registers (Arm IHI 0069H, section 12.8).
const DISTRIBUTOR_SIZE: u64 = 0x1_0000;
/// Bytes of a GICv3 redistributor's two frames (Arm IHI 0069H, section 12.10).
const REDISTRIBUTOR_SIZE: u64 = 0x2_0000;
/// Bytes of a GICv2 distributor's registers (Arm IHI 0048B, section 4.1.2).
const DISTRIBUTOR_V2_SIZE: u64 = 0x1000;
/// Bytes of a GICv2 CPU interface's registers (Arm IHI 0048B, section 4.1.3).
const CPU_INTERFACE_SIZE: u64 = 0x2000;
/// Bytes of a PL011's registers.
pub(crate) const UART_SIZE: u64 = 0x1000;
/// First address that a class cannot map: 40 bits, what every Armv8 CPU with EL2 translates at least.
pub(crate) const GUEST_LIMIT: u64 = 1 << 40;

/// The windows of a VM's interrupt controller on a board with `gic`: a name for messages, and where it is.
pub(crate) fn virtual_controller(partition: &PartitionSpec, gic: Gic) -> Vec<(&'static str, Window)> {
    let machine = &partition.machine;
    let window = |base, size| Window { base, size };
    match gic {
        Gic::Nvic => Vec::new(),
        Gic::V2 { .. } => vec![
            ("distributor", window(machine.distributor, DISTRIBUTOR_V2_SIZE)),
            ("CPU interface", window(machine.cpu_interface, CPU_INTERFACE_SIZE)),
        ],
        Gic::V3 { .. } => {
            let redistributors = REDISTRIBUTOR_SIZE * partition.vcpus.len() as u64;
            vec![
                ("distributor", window(machine.distributor, DISTRIBUTOR_SIZE)),
                ("redistributors", window(machine.redistributor, redistributors)),
            ]
        }
    }
}

pub(crate) fn check(manifest: &Manifest, board: Option<&Board>, report: &mut Report) {
    if board.is_some_and(|board| board.class == Class::Armv7m) {
        // Where nothing is translated, places are known only when the programs are.
        return;
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
        if let Some(board) = board {
            gic_is_the_boards(partition, board, report);
        }
        machine_is_possible(partition, gic_of(board), report);
        areas_are_apart(partition, board, report);
    }
}

fn size_is_possible(size: &Placed<u64>, report: &mut Report) {
    if size.value == 0 {
        report.push(Diagnostic::at(Code::ZeroSize, size.place, "the size is zero").help("give at least 4K"));
    } else if !size.value.is_multiple_of(PAGE) {
        let up = size.value.div_ceil(PAGE).saturating_mul(PAGE);
        let message = format!(
            "the size {} is not a multiple of the page size",
            format_size(size.value)
        );
        report.push(
            Diagnostic::at(Code::UnalignedSize, size.place, message).help(format!(
                "pages have 4K; the next multiple is \"{}\"",
                format_size(up)
            )),
        );
    }
}

/// Every address the manifest gives for a partition that must be page aligned.
fn addresses(partition: &PartitionSpec) -> Vec<Placed<u64>> {
    let mut all: Vec<_> = partition.at.iter().cloned().collect();
    for region in &partition.regions {
        all.extend(region.guest.iter().cloned().chain(region.at.iter().cloned()));
    }
    let machine = &partition.machine;
    all.extend(machine.ram_base_place.map(|place| Placed {
        value: machine.ram_base,
        place,
    }));
    all
}

fn address_is_aligned(address: &Placed<u64>, report: &mut Report) {
    if !address.value.is_multiple_of(PAGE) {
        let message = format!(
            "the address {:#x} is not a multiple of the page size",
            address.value
        );
        report.push(
            Diagnostic::at(Code::UnalignedAddress, address.place, message).help(format!(
                "pages have 4K; the one it is in starts at {:#x}",
                address.value & !(PAGE - 1)
            )),
        );
    }
}

/// The board's interrupt controller; a board that is not known has the usual one.
fn gic_of(board: Option<&Board>) -> Gic {
    board.map(|board| board.controller.gic).unwrap_or_default()
}

/// A VM's interrupt controller is the board's, with its registers partly those of the hardware: its version is no choice.
fn gic_is_the_boards(partition: &PartitionSpec, board: &Board, report: &mut Report) {
    let machine = &partition.machine;
    let real = board.controller.gic.version();
    if let Some(version) = machine
        .gic_version
        .as_ref()
        .filter(|version| version.value != real)
    {
        let message = format!(
            "board `{}` cannot give a VM a GICv{}, its own interrupt controller is a GICv{real}",
            board.name, version.value
        );
        report.push(
            Diagnostic::at(Code::BadMachine, version.place, message)
                .help(format!("give `version = {real}`, or leave it out")),
        );
    }
    let (foreign, key, instead) = match board.controller.gic {
        Gic::V2 { .. } => (machine.redistributor_place, "redistributor", "cpu-interface"),
        Gic::V3 { .. } => (machine.cpu_interface_place, "cpu-interface", "redistributor"),
        Gic::Nvic => return,
    };
    if let Some(place) = foreign {
        let message = format!(
            "a GICv{real}, as VMs have on board `{}`, has no `{key}`",
            board.name
        );
        report.push(
            Diagnostic::at(Code::BadMachine, place, message).help(format!("move its `{instead}` instead")),
        );
    }
}

fn machine_is_possible(partition: &PartitionSpec, gic: Gic, report: &mut Report) {
    let machine = &partition.machine;
    if let Some(place) = machine.gic_place {
        let align = match gic {
            Gic::V2 { .. } | Gic::Nvic => PAGE,
            Gic::V3 { .. } => DISTRIBUTOR_SIZE,
        };
        for (name, window) in virtual_controller(partition, gic) {
            let base = window.base;
            if base % align != 0 {
                let message = format!(
                    "the {name} at {base:#x} is not at a multiple of {}",
                    format_size(align)
                );
                report.push(
                    Diagnostic::at(Code::BadMachine, place, message)
                        .help(format!("move it to a multiple of {align:#x}")),
                );
            }
        }
        if !machine.lines.is_multiple_of(32) {
            let message = format!("{} interrupt lines are not a multiple of 32", machine.lines);
            let up = (machine.lines / 32 + 1) * 32;
            report.push(Diagnostic::at(Code::BadMachine, place, message).help(format!("give {up}")));
        }
    }
    if let Some(place) = machine
        .uart_place
        .filter(|_| !machine.uart_base.is_multiple_of(PAGE))
    {
        let message = format!("the UART at {:#x} is not at a multiple of 4K", machine.uart_base);
        report.push(Diagnostic::at(Code::BadMachine, place, message).help("move it to a multiple of 0x1000"));
    }
    if partition.console && machine.uart_line >= machine.lines {
        let message = format!(
            "the UART's line {} does not exist: the machine has {} lines",
            machine.uart_line, machine.lines
        );
        let place = machine
            .uart_place
            .or(machine.gic_place)
            .unwrap_or(partition.name.place);
        report.push(
            Diagnostic::at(Code::BadLine, place, message).help("choose a lower line, or raise `gic.lines`"),
        );
    }
    check_gate_line(partition, report);
}

fn check_gate_line(partition: &PartitionSpec, report: &mut Report) {
    let machine = &partition.machine;
    let line = machine.gate_line;
    let (message, help) = if !partition.has_gate_interrupt() {
        return;
    } else if line >= machine.lines {
        (
            format!(
                "the event gate's line {line} does not exist: the machine has {} lines",
                machine.lines
            ),
            "choose a lower line, or raise `gic.lines`",
        )
    } else if partition.console && line == machine.uart_line {
        (
            format!("line {line} of the event gate is the virtual UART's"),
            "move one of them to another line",
        )
    } else {
        return;
    };
    let place = machine.gate_place.or(machine.uart_place);
    let place = place.or(machine.gic_place).unwrap_or(partition.name.place);
    report.push(Diagnostic::at(Code::BadLine, place, message).help(help));
}

/// Something at a guest address.
struct Area {
    what: String,
    window: Window,
    place: Place,
    is_memory: bool,
}

fn areas(partition: &PartitionSpec, board: Option<&Board>) -> Vec<Area> {
    let area = |what: String, base, size, place, is_memory| Area {
        what,
        window: Window { base, size },
        place,
        is_memory,
    };
    let machine = &partition.machine;
    let mut areas = Vec::new();
    if let Some(memory) = &partition.memory {
        let base = if partition.kind == Kind::Task {
            TASK_BASE
        } else {
            machine.ram_base
        };
        areas.push(area("RAM".to_owned(), base, memory.value, memory.place, true));
    }
    if partition.kind == Kind::Task {
        return areas;
    }
    for region in &partition.regions {
        if let (Some(guest), Some(size)) = (&region.guest, &region.size) {
            areas.push(area(
                "region".to_owned(),
                guest.value,
                size.value,
                guest.place,
                true,
            ));
        }
    }
    let gic = machine.gic_place.unwrap_or(partition.name.place);
    let windows = virtual_controller(partition, gic_of(board));
    areas.extend(
        windows
            .into_iter()
            .map(|(name, window)| area(format!("virtual {name}"), window.base, window.size, gic, false)),
    );
    if partition.console {
        let place = machine.uart_place.unwrap_or(partition.name.place);
        areas.push(area(
            "virtual UART".to_owned(),
            machine.uart_base,
            UART_SIZE,
            place,
            false,
        ));
    }
    // Devices that share a page share the mapping too: each page once.
    let mut pages: Vec<Window> = Vec::new();
    for name in &partition.devices {
        let Some(device) = board.and_then(|board| board.device(&name.value)) else {
            continue;
        };
        for window in device.registers.iter().map(|window| window.pages()) {
            if !pages.contains(&window) {
                pages.push(window);
                areas.push(area(
                    format!("device `{}`", name.value),
                    window.base,
                    window.size,
                    name.place,
                    false,
                ));
            }
        }
    }
    areas
}

fn areas_are_apart(partition: &PartitionSpec, board: Option<&Board>, report: &mut Report) {
    let areas = areas(partition, board);
    for (index, area) in areas.iter().enumerate() {
        let end = area.window.base.checked_add(area.window.size);
        if end.is_none_or(|end| end > GUEST_LIMIT) {
            let message = format!(
                "{} at {:#x} with {} reaches beyond what can be mapped",
                area.what,
                area.window.base,
                format_size(area.window.size)
            );
            report.push(
                Diagnostic::at(Code::GuestRange, area.place, message)
                    .help(format!("stay below {GUEST_LIMIT:#x} (40 address bits)")),
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
            area.window.end() - 1
        )
    };
    let mut diagnostic = Diagnostic::at(code, second.place, message).label(range(second));
    if first.place != second.place {
        diagnostic = diagnostic.also(first.place, range(first));
    }
    diagnostic.help("move or shrink one of them")
}
