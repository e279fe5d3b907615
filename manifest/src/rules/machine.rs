// SPDX-License-Identifier: Apache-2.0
//! The virtual machine of a partition: the place of its UART, the lines of its devices, calls of a debugger.

use bulkhead_arch_api::ClassFacts;

use crate::board::{Board, Class};
use crate::diagnostic::{Code, Diagnostic, Place, Report};
use crate::model::machine::uart_lines;
use crate::model::{Kind, Manifest, PartitionSpec, network};
use crate::units::format_size;

/// INTIDs from here on have other meanings (Arm IHI 0069H, section 2.2). No class has a line with such a
/// number.
const FIRST_SPECIAL_LINE: u32 = 1020;

/// Bytes of an instruction in the state in which a VM starts.
const INSTRUCTION: u64 = 4;

pub(super) fn check(manifest: &Manifest, board: Option<&Board>, report: &mut Report) {
    for partition in &manifest.partitions {
        controller_is_possible(partition, report);
        uart_is_aligned(partition, board, report);
        if let Some(board) = board {
            keys_have_a_meaning(partition, board, report);
        }
        if partition.kind == Kind::Vm {
            uart_line_exists(partition, board, report);
            gate_line_exists(partition, board, report);
            entry_is_aligned(partition, board, report);
            interface_line_is_free(partition, board, report);
        }
    }
}

fn controller_is_possible(partition: &PartitionSpec, report: &mut Report) {
    let gic = &partition.machine.gic;
    let lines = gic.lines.get();
    if let (Some(place), false) = (gic.key, lines.is_multiple_of(32)) {
        // The next multiple is a possible value: the largest number that the key can have is a multiple
        // itself.
        let up = lines.next_multiple_of(32);
        let message = format!("{lines} interrupt lines are not a multiple of 32");
        report.push(Diagnostic::at(Code::BadMachine, place, message).help(format!("give {up}")));
    }
}

fn uart_is_aligned(partition: &PartitionSpec, board: Option<&Board>, report: &mut Report) {
    let (uart, granule) = (&partition.machine.uart, Class::of_board(board).facts().granule);
    if let (Some(place), false) = (uart.key, uart.base.is_multiple_of(granule)) {
        let message = format!(
            "the UART at {:#x} is not at a multiple of {}",
            uart.base.value,
            format_size(granule)
        );
        report.push(
            Diagnostic::at(Code::BadMachine, place, message)
                .help(format!("move it to a multiple of {granule:#x}")),
        );
    }
}

/// A key of the machine that not every class has a use for.
struct ClassKey {
    name: &'static str,
    /// The place to blame, if the key is there.
    place: Option<Place>,
    has_meaning: fn(&ClassFacts) -> bool,
    /// The reason why it has none on other classes.
    why: &'static str,
}

/// Reports keys of the machine on a board of a class on which they change nothing.
fn keys_have_a_meaning(partition: &PartitionSpec, board: &Board, report: &mut Report) {
    let machine = &partition.machine;
    let keys = [
        ClassKey {
            name: "machine.semihosting",
            place: machine.semihosting.key,
            has_meaning: |facts| facts.semihosting,
            why: "no program of this class has such calls answered",
        },
        ClassKey {
            name: "machine.mask-words",
            place: machine.mask_words.as_ref().map(|words| words.place),
            has_meaning: |facts| facts.replaces_instructions,
            why: "no instruction of a program is replaced on this class",
        },
    ];
    for key in keys {
        let Some(place) = key.place.filter(|_| !(key.has_meaning)(board.class.facts())) else {
            continue;
        };
        let able = Class::all().filter(|class| (key.has_meaning)(class.facts()));
        let able: Vec<String> = able.map(|class| format!("`{}`", class.name())).collect();
        let (name, class) = (key.name, board.class.name());
        let message = format!("`{name}` has no meaning on a board of class `{class}`");
        report.push(
            Diagnostic::at(Code::NotForClass, place, message)
                .label(key.why)
                .help(format!(
                    "remove it, or choose a board of class {}",
                    able.join(" or ")
                )),
        );
    }
}

/// Reports a first instruction that is between two instructions. On a class of microcontrollers, `entry` is
/// where the vector table is, which is checked with the program.
fn entry_is_aligned(partition: &PartitionSpec, board: Option<&Board>, report: &mut Report) {
    let Some(entry) = &partition.machine.entry else {
        return;
    };
    if Class::of_board(board).facts().translates && !entry.value.is_multiple_of(INSTRUCTION) {
        let message = format!("no instruction can be at {:#x}", entry.value);
        report.push(
            Diagnostic::at(Code::BadMachine, entry.place, message)
                .label("the VM would fault at once")
                .help(format!("give a multiple of {INSTRUCTION}")),
        );
    }
}

/// Tells whether the virtual interrupt controller has this line for devices. Reports a line that the
/// controller does not have.
pub(super) fn line_exists(
    what: &str,
    line: u32,
    place: Place,
    partition: &PartitionSpec,
    board: Option<&Board>,
    report: &mut Report,
) -> bool {
    let machine = &partition.machine;
    let (first, lines) = (Class::of_board(board).facts().first_device_line, machine.lines());
    let (message, help) = if line < first {
        (
            format!("{what} line {line} is private to each CPU"),
            format!("choose {first} or a higher line"),
        )
    } else if line >= lines.min(FIRST_SPECIAL_LINE) {
        let help = match machine.board_lines {
            Some(_) => "choose a lower line".to_owned(),
            None => "choose a lower line, or raise `gic.lines`".to_owned(),
        };
        (
            format!("{what} line {line} does not exist: the machine has {lines} lines"),
            help,
        )
    } else {
        return true;
    };
    report.push(Diagnostic::at(Code::BadLine, place, message).help(help));
    false
}

fn uart_line_exists(partition: &PartitionSpec, board: Option<&Board>, report: &mut Report) {
    let machine = &partition.machine;
    if partition.console {
        let place = machine.uart.key.or(machine.gic.key);
        let place = place.unwrap_or(partition.name.place);
        // One missing line is enough to say that the UART cannot be there.
        let _ = uart_lines(machine, board)
            .any(|line| !line_exists("the UART's", line, place, partition, board, report));
    }
}

fn gate_line_exists(partition: &PartitionSpec, board: Option<&Board>, report: &mut Report) {
    if !partition.has_gate_interrupt() {
        return;
    }
    let machine = &partition.machine;
    let line = machine.gate_line();
    let place = machine.event_gate.key.or(machine.uart.key);
    let place = place.or(machine.gic.key).unwrap_or(partition.name.place);
    if partition.console && uart_lines(machine, board).contains(&line) {
        let message = format!("line {line} of the event gate is the virtual UART's");
        report.push(Diagnostic::at(Code::BadLine, place, message).help("move one of them to another line"));
    }
    line_exists("the event gate's", line, place, partition, board, report);
}

/// Reports a line of the virtual Ethernet controller that another virtual device has. The board determines
/// the line of the controller.
fn interface_line_is_free(partition: &PartitionSpec, board: Option<&Board>, report: &mut Report) {
    let (Some(network), Some(device)) = (&partition.network, board.and_then(network::controller)) else {
        return;
    };
    let machine = &partition.machine;
    for line in device.interrupts.iter().map(|interrupt| interrupt.line.get()) {
        let (owner, place) = if partition.console && uart_lines(machine, board).contains(&line) {
            ("UART", machine.uart.key)
        } else if partition.has_gate_interrupt() && line == machine.gate_line() {
            ("event gate", machine.event_gate.key)
        } else {
            continue;
        };
        let message = format!("line {line} of the {owner} is the virtual Ethernet controller's");
        report.push(
            Diagnostic::at(Code::BadLine, place.unwrap_or(network.place), message)
                .also(network.place, "the controller")
                .help(format!("move the {owner} to another line")),
        );
    }
}
