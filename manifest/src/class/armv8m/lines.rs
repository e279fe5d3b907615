// SPDX-License-Identifier: Apache-2.0
//! Interrupt lines of virtual devices. On this class they are lines of the board's own interrupt controller:
//! the hypervisor makes a line pending, and the VM takes the interrupt without an exit. A line with an owner
//! is closed to every other VM, so the interrupt of a virtual device would never arrive there. A line that
//! hardware drives would reach each VM with a virtual device at this line, so the board file names the lines
//! that are for virtual devices.
#![deny(clippy::arithmetic_side_effects)]

use crate::board::Board;
use crate::class::Refuse;
use crate::diagnostic::{Code, Diagnostic, Place, Report};
use crate::model::devices::owned;
use crate::model::machine::uart_lines;
use crate::model::side::lent;
use crate::model::{Kind, Manifest, PartitionSpec};
use crate::place::channels::sides_of;
use crate::schema::form::Whole;

/// The line at which programs for the class look for their UART, if the board has it for virtual devices.
const USUAL_LINE: u32 = 16;

/// Returns the default line of a VM's UART.
pub(super) fn uart_line(board: &Board) -> u32 {
    let lines = &board.virtual_lines;
    if lines.contains(&USUAL_LINE) {
        USUAL_LINE
    } else {
        lines.start
    }
}

/// Fills in the line of each event gate that has none: the last one for virtual devices that the VM's UART
/// leaves free.
pub(super) fn settle(manifest: &mut Manifest, board: &Board) {
    for spec in manifest.partitions.iter_mut() {
        let taken = spec.console.then(|| uart_lines(&spec.machine, Some(board)));
        let is_free = |line: &u32| taken.as_ref().is_none_or(|taken| !taken.contains(line));
        let gate = &mut spec.machine.event_gate.value.line;
        if gate.key.is_none()
            && let Some(line) = board.virtual_lines.clone().rev().find(is_free)
        {
            gate.value = Whole::new(line.into()).unwrap_or_default();
        }
    }
}

/// Checks that the board has lines for virtual devices, and that no device of the board drives one.
pub(super) fn check_board(board: &Board, refuse: &mut Refuse<'_>) {
    let lines = &board.virtual_lines;
    if lines.is_empty() || lines.end > board.line_count {
        refuse(
            "interrupt-controller",
            "the board needs lines of its interrupt controller for virtual devices".to_owned(),
            "add `virtual-lines = { first = .., count = .. }`: lines that no hardware drives",
        );
    }
    let own = board.hypervisor_lines();
    let drives = |line: u32| {
        let device = board.devices.iter().find(|device| device.has_line(line));
        let own = own
            .iter()
            .find(|(own, _)| *own == line)
            .map(|(_, name)| (*name).to_owned());
        device.map(|device| device.name.clone()).or(own)
    };
    if let Some((line, name)) = lines.clone().find_map(|line| Some((line, drives(line)?))) {
        refuse(
            "interrupt-controller",
            format!("line {line} of `virtual-lines` is driven by `{name}`"),
            "leave the line out: its interrupts would reach all VMs",
        );
    }
}

/// Checks that the interrupts of virtual devices can arrive.
pub(super) fn check(manifest: &Manifest, board: &Board, report: &mut Report) {
    for vm in manifest.partitions.iter().filter(|spec| spec.kind == Kind::Vm) {
        for (what, line, place) in virtual_lines(vm, manifest, board) {
            // One line that is impossible is enough to say that the UART cannot be there.
            if report.blames(place) {
                continue;
            }
            let Some(why) = obstacle(line, vm, manifest, board) else {
                continue;
            };
            report.push(
                Diagnostic::at(Code::BadLine, place, format!("line {line} of the {what} {why}"))
                    .label("no virtual device can have this line")
                    .help(format!(
                        "choose one of the lines {} to {}, which are for virtual devices",
                        board.virtual_lines.start,
                        board.virtual_lines.end.saturating_sub(1)
                    )),
            );
        }
    }
}

/// Returns what a VM has virtual lines for, the lines, and the places to blame.
fn virtual_lines(vm: &PartitionSpec, manifest: &Manifest, board: &Board) -> Vec<(&'static str, u32, Place)> {
    let machine = &vm.machine;
    let place = |given: Option<Place>| given.unwrap_or(vm.name.place);
    let mut lines = Vec::new();
    if vm.console {
        let place = place(machine.uart.line.key.or(machine.uart.key));
        lines.extend(uart_lines(machine, Some(board)).map(|line| ("virtual UART", line, place)));
    }
    if vm.has_gate_interrupt() {
        lines.push((
            "event gate",
            machine.gate_line(),
            place(machine.event_gate.line.key),
        ));
    }
    let sides = sides_of(manifest, &vm.name.value);
    let bells = sides.iter().filter_map(|side| side.spec.interrupt.as_ref());
    lines.extend(bells.map(|bell| ("doorbell", bell.value.get(), bell.place)));
    lines
}

/// Returns why a virtual device cannot have a line, if so. Lines of the VM's own devices, and numbers that
/// the machine of the VM does not have, are reported for every class (`rules::machine`, `rules::devices`).
fn obstacle(line: u32, vm: &PartitionSpec, manifest: &Manifest, board: &Board) -> Option<String> {
    if (board.line_count..vm.machine.lines()).contains(&line) {
        return Some(format!(
            "does not exist: the board has {} lines",
            board.line_count
        ));
    }
    let own = board.hypervisor_lines();
    if let Some((_, name)) = own.iter().find(|(own, _)| *own == line) {
        return Some(format!("belongs to the hypervisor: {name}"));
    }
    let mut lenders = manifest.channels.iter();
    let device = lenders.find_map(|channel| lent(channel, board).filter(|device| device.has_line(line)));
    if let Some(device) = device {
        return Some(format!("belongs to device `{}`, which is lent", device.name));
    }
    let mut others = manifest.partitions.iter();
    let of_other = others.find_map(|other| {
        if other.name.value == vm.name.value {
            return None;
        }
        let (name, _) = owned(other, board).find(|(_, device)| device.has_line(line))?;
        Some(format!(
            "belongs to device `{}` of `{}`",
            name.value, other.name.value
        ))
    });
    of_other.or_else(|| {
        let is_virtual = board.virtual_lines.contains(&line);
        (!is_virtual).then(|| "is one that hardware of the board may drive".to_owned())
    })
}
