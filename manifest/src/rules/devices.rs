// SPDX-License-Identifier: Apache-2.0
//! Devices of the board and their interrupt lines.

use std::ops::RangeInclusive;

use super::cpus::possible_duration;
use crate::board::{Board, Device, Interrupt, Overheads, Trigger};
use crate::class;
use crate::diagnostic::{Code, Diagnostic, Report};
use crate::model::devices::{owned, registers};
use crate::model::machine::uart_lines;
use crate::model::{Kind, Manifest, PartitionSpec, Placed};
use crate::nearest::nearest;
use crate::units::{Duration, format_duration};
use bulkhead_image::layout::{MAX_EARLY_NS, MAX_LATENCY_NS};

/// Possible latencies. A latency below the best case of an interrupt does nothing. With a latency above the
/// range the CPU would only wait.
const LATENCY: RangeInclusive<u64> = 1_000..=MAX_LATENCY_NS as u64;
/// Possible times of an early start.
const EARLY: RangeInclusive<u64> = 1_000..=MAX_EARLY_NS as u64;

pub(super) fn check(manifest: &Manifest, board: &Board, report: &mut Report) {
    let owners: Vec<_> = manifest.partitions.iter().collect();
    for partition in &owners {
        if partition.kind == Kind::Task && !task_can_own(partition, board, report) {
            continue;
        }
        dma_is_confined(partition, board, report);
        latency_is_possible(partition, manifest, board, report);
        early_handlers_are_possible(partition, manifest, board, report);
        for name in &partition.devices {
            device_exists(name, board, report);
        }
        for (name, device) in owned(partition, board) {
            page_is_free(name, device, partition, board, report);
            if partition.kind == Kind::Vm {
                line_is_free(name, device, partition, board, report);
            }
        }
    }
    one_owner(&owners, report);
    one_owner_per_line(&owners, board, report);
}

/// Checks that a task can drive its devices. A task has no virtual interrupt controller: an interrupt is an
/// event. Where controllers keep devices apart, the registers are mapped, and the line opens again when the
/// task waits. Elsewhere the event ends at once, and the hypervisor carries out each access. Returns whether
/// the class has tasks with devices at all.
fn task_can_own(task: &PartitionSpec, board: &Board, report: &mut Report) -> bool {
    let Some(first) = task.devices.first() else {
        return true;
    };
    let help = "remove it, or make the partition a VM: kind = \"vm\"";
    if board.class.facts().guards_memory() {
        return true;
    }
    if !class::host(board.class).finds_services() {
        let message = format!("the task `{}` cannot have `devices`", task.name.value);
        let label = format!("on class `{}` only a VM drives devices", board.class.name());
        report.push(
            Diagnostic::at(Code::NotForTask, first.place, message)
                .label(label)
                .help(help),
        );
        return false;
    }
    for (name, device) in owned(task, board) {
        let is_level = |interrupt: &Interrupt| interrupt.trigger == Trigger::Level;
        let is_shared = registers(task, board)
            .filter(|registers| registers.name.place == name.place)
            .all(|registers| registers.forwarded);
        let why = if device.interrupts.iter().any(is_level) {
            "its interrupt is a level, and a task takes edges only"
        } else if !device.forward || !is_shared {
            "its registers are mapped, and a task reaches registers by trap only"
        } else {
            continue;
        };
        let message = format!(
            "the task `{}` cannot have the device `{}`",
            task.name.value, name.value
        );
        report.push(
            Diagnostic::at(Code::NotForTask, name.place, message)
                .label(why)
                .help(help),
        );
    }
    true
}

/// Checks that the class can hold interrupts back. That needs a hypervisor that takes the interrupts itself,
/// with nothing between it and the CPU.
fn latency_is_possible(partition: &PartitionSpec, manifest: &Manifest, board: &Board, report: &mut Report) {
    let Some(latency) = &partition.interrupt_latency else {
        return;
    };
    let foreign = if !board.class.facts().delays_interrupts {
        Some(("the class of the board has no `interrupt-latency`", "remove it"))
    } else if owned(partition, board).all(|(_, device)| device.interrupts.is_empty()) {
        Some((
            "no device of the partition interrupts",
            "name its device: devices = [...]",
        ))
    } else {
        None
    };
    if let Some((message, help)) = foreign {
        report.push(Diagnostic::at(Code::ForeignParameter, latency.place, message).help(help));
        return;
    }
    possible_duration("interrupt-latency", latency, &LATENCY, report);
    // A board of such a class has one pCPU.
    if let Some(overheads) = board.overheads(manifest.partitions.len()) {
        latency_is_kept(latency, board, &overheads, report);
    }
}

/// Checks that handlers can start early. An early start takes the time of the code that it interrupts, not
/// the partition's. So the partition has no budget that it could exceed, and no latency beside it is
/// constant.
fn early_handlers_are_possible(
    partition: &PartitionSpec,
    manifest: &Manifest,
    board: &Board,
    report: &mut Report,
) {
    let Some(bound) = &partition.early_handlers else {
        return;
    };
    let others = || manifest.partitions.iter();
    let foreign = if !board.class.facts().delays_interrupts {
        Some(("the class of the board has no `early-handlers`", "remove it"))
    } else if owned(partition, board).all(|(_, device)| device.interrupts.is_empty()) {
        Some((
            "no device of the partition interrupts",
            "name its device: devices = [...]",
        ))
    } else if others().filter(|other| other.early_handlers.is_some()).count() > 1 {
        Some(("two partitions have `early-handlers`", "choose one of them"))
    } else if others().any(|other| other.interrupt_latency.is_some()) {
        Some((
            "handlers that start early take the time that a constant latency needs",
            "remove it, or `interrupt-latency`",
        ))
    } else if partition.vcpus.iter().any(|vcpu| vcpu.budget.is_some()) {
        Some((
            "a handler that starts early is not limited by the budget of its vCPU",
            "remove it, or `budget`",
        ))
    } else if partition.frame_ring.value {
        Some((
            "a handler that starts early could change frames while the hypervisor copies them",
            "remove it, or `frame-ring`",
        ))
    } else {
        None
    };
    if let Some((message, help)) = foreign {
        report.push(Diagnostic::at(Code::ForeignParameter, bound.place, message).help(help));
        return;
    }
    possible_duration("early-handlers", bound, &EARLY, report);
}

/// Checks that a latency is no shorter than the worst case: an interrupt that takes longer than the promised
/// time arrives late. In the worst case the hypervisor does the longest thing it ever does when the interrupt
/// arrives. Then it takes the interrupt, decides, and switches.
fn latency_is_kept(latency: &Placed<Duration>, board: &Board, overheads: &Overheads, report: &mut Report) {
    let least = overheads.at_ends();
    if latency.value.get() >= least {
        return;
    }
    let under_way = format_duration(overheads.under_way());
    let message = format!(
        "interrupts may take up to {} to their partition on board `{}`",
        format_duration(least),
        board.name
    );
    report.push(
        Diagnostic::at(Code::ShortLatency, latency.place, message)
            .label("an interrupt that takes longer than this arrives late, and is counted as late in the log area")
            .help(format!(
                "the least that always holds: interrupt-latency = \"{}\" ({under_way} that may be under way, and {} to take the interrupt, \
                 decide and switch, by [overheads] of the board)",
                format_duration(least),
                format_duration(overheads.event())
            )),
    );
}

fn device_exists(name: &Placed<String>, board: &Board, report: &mut Report) {
    if board
        .hypervisor_devices()
        .iter()
        .any(|(own, _)| *own == name.value)
        || name.value == "timer"
    {
        let message = format!("`{}` is used by the hypervisor itself", name.value);
        report.push(
            Diagnostic::at(Code::HypervisorDevice, name.place, message)
                .help("every VM has a virtual one; remove it from `devices`"),
        );
    } else if board.device(&name.value).is_none() {
        let message = format!("board `{}` has no device `{}`", board.name, name.value);
        let names = board.devices.iter().map(|device| device.name.as_str());
        let help = match nearest(&name.value, names.clone()) {
            Some(near) => format!("did you mean \"{near}\"?"),
            None if board.devices.is_empty() => "remove it: the board has no device to give away".to_owned(),
            None => format!("its devices are: {}", rows(board)),
        };
        report.push(Diagnostic::at(Code::UnknownDevice, name.place, message).help(help));
    }
}

/// Returns the names of a board's devices, each row of numbered ones once.
fn rows(board: &Board) -> String {
    let stem = |name: &str| name.trim_end_matches(|c: char| c.is_ascii_digit()).to_owned();
    let mut rows: Vec<(String, &str, &str)> = Vec::new();
    for device in &board.devices {
        match rows.last_mut() {
            Some((last, _, end)) if *last == stem(&device.name) => *end = &device.name,
            _ => rows.push((stem(&device.name), &device.name, &device.name)),
        }
    }
    let one = |(_, first, last): &(String, &str, &str)| {
        if first == last {
            (*first).to_owned()
        } else {
            format!("{first} to {last}")
        }
    };
    rows.iter().map(one).collect::<Vec<_>>().join(", ")
}

fn one_owner(partitions: &[&PartitionSpec], report: &mut Report) {
    let mut seen: Vec<(&PartitionSpec, &Placed<String>)> = Vec::new();
    for partition in partitions {
        for name in &partition.devices {
            if let Some((first, place)) = seen.iter().find(|(_, other)| other.value == name.value) {
                let message = if first.name.value == partition.name.value {
                    format!(
                        "device `{}` is given to partition `{}` twice",
                        name.value, partition.name.value
                    )
                } else {
                    format!(
                        "device `{}` is given to both `{}` and `{}`",
                        name.value, first.name.value, partition.name.value
                    )
                };
                report.push(
                    Diagnostic::at(Code::DeviceTwice, name.place, message)
                        .label("given again here")
                        .also(place.place, "first given here")
                        .help("a device has one owner: remove one of the two"),
                );
            }
            seen.push((partition, name));
        }
    }
}

fn one_owner_per_line(partitions: &[&PartitionSpec], board: &Board, report: &mut Report) {
    let own: Vec<u32> = board
        .hypervisor_lines()
        .into_iter()
        .map(|(line, _)| line)
        .collect();
    let mut seen: Vec<(u32, &Placed<String>)> = Vec::new();
    for partition in partitions {
        for (name, device) in owned(partition, board) {
            for interrupt in &device.interrupts {
                let line = interrupt.line.get();
                let first = seen
                    .iter()
                    .find(|(other, by)| *other == line && by.value != name.value);
                if let Some((_, first)) = first {
                    let message = format!(
                        "interrupt line {line} belongs to both `{}` and `{}`",
                        first.value, name.value
                    );
                    report.push(
                        Diagnostic::at(Code::LineTwice, name.place, message)
                            .label("uses the line as well")
                            .also(first.place, "uses the line")
                            .help("lines cannot be shared: give away one of the devices only"),
                    );
                } else if own.contains(&line) {
                    let message = format!(
                        "interrupt line {line} of `{}` belongs to the hypervisor",
                        name.value
                    );
                    report.push(
                        Diagnostic::at(Code::LineTwice, name.place, message)
                            .help("this device cannot be given away"),
                    );
                }
                seen.push((line, name));
            }
        }
    }
}

/// Checks that no other owner has registers in the pages of a device, or its registers can be forwarded.
fn page_is_free(
    name: &Placed<String>,
    device: &Device,
    partition: &PartitionSpec,
    board: &Board,
    report: &mut Report,
) {
    for (own, window) in board.hypervisor_devices() {
        if device
            .registers
            .iter()
            .any(|registers| registers.pages().overlaps(window))
        {
            let message = format!(
                "`{}` shares a page of registers with the hypervisor's own `{own}`",
                name.value
            );
            report.push(
                Diagnostic::at(Code::HypervisorDevice, name.place, message).help("remove it from `devices`"),
            );
        }
    }
    if device.forward {
        return;
    }
    let missing: Vec<_> = board
        .page_neighbours(device)
        .map(|neighbour| neighbour.name.as_str())
        .filter(|neighbour| !partition.devices.iter().any(|name| name.value == *neighbour))
        .collect();
    if let (Some(first), Some(last)) = (missing.first(), missing.last()) {
        let others = if missing.len() > 1 {
            format!("`{first}` to `{last}`")
        } else {
            format!("`{first}`")
        };
        let message = format!("`{}` shares a 4K page of registers with {others}", name.value);
        report.push(
            Diagnostic::at(Code::SharedPage, name.place, message)
                .label("whoever has one register of a page has the whole page")
                .help(format!(
                    "give partition `{}` {others} as well",
                    partition.name.value
                )),
        );
    }
}

fn line_is_free(
    name: &Placed<String>,
    device: &Device,
    partition: &PartitionSpec,
    board: &Board,
    report: &mut Report,
) {
    let machine = &partition.machine;
    for interrupt in &device.interrupts {
        let line = interrupt.line.get();
        let (message, help) = if line >= machine.lines() {
            (
                format!(
                    "line {line} of `{}` is beyond the {} lines of the virtual interrupt controller",
                    name.value,
                    machine.lines()
                ),
                "raise `gic.lines` of its machine",
            )
        } else if partition.console && uart_lines(machine, Some(board)).contains(&line) {
            (
                format!("line {line} of `{}` is the virtual UART's", name.value),
                "move the UART to another line (`uart.line` of its machine)",
            )
        } else if partition.has_gate_interrupt() && line == machine.gate_line() {
            (
                format!("line {line} of `{}` is the event gate's", name.value),
                "move the event gate to another line (`event-gate.line` of its machine)",
            )
        } else {
            continue;
        };
        report.push(Diagnostic::at(Code::BadLine, name.place, message).help(help));
    }
}

fn dma_is_confined(partition: &PartitionSpec, board: &Board, report: &mut Report) {
    if board.iommu || partition.trusted_dma {
        return;
    }
    let with_dma: Vec<_> = owned(partition, board)
        .filter(|(_, device)| device.dma)
        .map(|(name, _)| name)
        .collect();
    let Some((first, others)) = with_dma.split_first() else {
        return;
    };
    let subject = match others.len() {
        0 => format!("`{}` does", first.value),
        more => format!(
            "`{}` and {more} more devices of `{}` do",
            first.value, partition.name.value
        ),
    };
    let message = format!(
        "{subject} DMA, and no IOMMU of board `{}` confines it",
        board.name
    );
    report.push(
        Diagnostic::at(Code::UntrustedDma, first.place, message)
            .label("the partition could overwrite everything with it, the hypervisor included")
            .help("if you trust its software as much as the hypervisor, add `trusted-dma = true`"),
    );
}
