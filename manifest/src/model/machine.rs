// SPDX-License-Identifier: Apache-2.0
//! The virtual machine of a partition: its UART, and the owners of its lines.

use std::ops::RangeInclusive;

use bulkhead_arch_api::ClassFacts;

use super::devices::owned;
use super::{MachineSpec, PartitionSpec, network};
use crate::board::{Board, Class};
use crate::diagnostic::Place;

/// Bytes of a PL011's registers.
pub(crate) const UART_SIZE: u64 = 0x1000;

/// Returns the size of the registers of a VM's UART, in bytes or ports.
pub(crate) fn uart_size(class: &ClassFacts) -> u64 {
    class
        .console()
        .map_or(UART_SIZE, |(device, _)| device.windows[0].size)
}

/// Returns the lines of the virtual UART that have numbers.
pub(crate) fn uart_lines(machine: &MachineSpec, board: Option<&Board>) -> RangeInclusive<u32> {
    uart_lines_from(machine.uart.line.get(), Class::of_board(board))
}

/// Returns the lines of a virtual UART with this first line.
pub(crate) fn uart_lines_from(first: u32, class: Class) -> RangeInclusive<u32> {
    let console = class.facts().console();
    let behind = console.map_or(0, |(device, _)| device.lines).saturating_sub(1);
    first..=first.saturating_add(behind)
}

/// Returns the owner of a line of a VM, if a virtual device or a device of the VM has the line.
pub(crate) fn taken_line(partition: &PartitionSpec, board: Option<&Board>, line: u32) -> Option<String> {
    taken_by_other(partition, board, line, None)
}

/// Does [`taken_line`] without the device of a service that is declared at `own`.
pub(crate) fn taken_by_other(
    partition: &PartitionSpec,
    board: Option<&Board>,
    line: u32,
    own: Option<Place>,
) -> Option<String> {
    let machine = &partition.machine;
    if partition.console && uart_lines(machine, board).contains(&line) {
        return Some("the virtual UART's".to_owned());
    }
    if partition.has_gate_interrupt() && line == machine.gate_line() {
        return Some("the event gate's".to_owned());
    }
    let mut served = machine.served.iter().filter(|served| Some(served.place) != own);
    if let Some(served) = served.find(|served| served.line == line) {
        return Some(format!("that of service `{}`", served.service));
    }
    let board = board?;
    let network = partition
        .network
        .as_ref()
        .and_then(|_| network::controller(board));
    if network.is_some_and(|device| device.has_line(line)) {
        return Some("the virtual Ethernet controller's".to_owned());
    }
    let mut devices = owned(partition, board);
    let (name, _) = devices.find(|(_, device)| device.has_line(line))?;
    Some(format!("that of device `{}`", name.value))
}
