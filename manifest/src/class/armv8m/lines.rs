// SPDX-License-Identifier: Apache-2.0
//! Interrupt lines of virtual devices. On this class they are lines of the board's own interrupt controller:
//! the hypervisor makes a line pending, and the VM takes the interrupt without an exit. A line with an owner
//! is closed to every other VM, so the interrupt of a virtual device would never arrive there.
#![deny(clippy::arithmetic_side_effects)]

use crate::board::Board;
use crate::diagnostic::{Code, Diagnostic, Place, Report};
use crate::model::devices::owned;
use crate::model::machine::{uart_lines, uart_lines_from};
use crate::model::side::lent;
use crate::model::{Kind, Manifest, PartitionSpec};
use crate::place::channels::sides_of;

/// The lowest default of a line. The subsystem around the CPU has the lines below, and a board file need not
/// name all devices there.
const LOWEST_DEFAULT: u32 = 16;

/// Returns the default line of a VM's UART: the lowest one at which the board has no devices.
pub(super) fn uart_line(board: &Board) -> u32 {
    let own = board.hypervisor_lines();
    let is_taken = |line: u32| {
        own.iter().any(|(own, _)| *own == line) || board.devices.iter().any(|device| device.has_line(line))
    };
    let is_free = |first: &u32| {
        let mut lines = uart_lines_from(*first, board.class);
        lines.all(|line| line < board.line_count && !is_taken(line))
    };
    let mut lines = LOWEST_DEFAULT..board.line_count;
    lines.find(is_free).unwrap_or(LOWEST_DEFAULT)
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
                    .label("the interrupt would never arrive")
                    .help("choose a line that no device of the board has"),
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
    others.find_map(|other| {
        if other.name.value == vm.name.value {
            return None;
        }
        let (name, _) = owned(other, board).find(|(_, device)| device.has_line(line))?;
        Some(format!(
            "belongs to device `{}` of `{}`",
            name.value, other.name.value
        ))
    })
}
