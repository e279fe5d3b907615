// SPDX-License-Identifier: Apache-2.0
//! The keys of a board with code memory, the hypervisor's share of memory, and the rules for both.

use crate::board::{Board, Refuse};
use crate::driver::Role;
use crate::model::Manifest;
use crate::schema::declare::tables;
use crate::schema::form::{Declared, Whole};
use crate::units::{Address, Size, format_size};
use crate::value::Table;
use crate::window::Window;

tables! {
    /// Keys of boards with code memory.
    pub(crate) BoardKeys = "a board of a microcontroller" {
        /// stretches of code memory: flash, or RAM that is loaded before reset; armv7m, armv8m
        code "code": Vec<Window>, required;
        /// memory that the hypervisor keeps for itself; armv7m, armv8m
        hypervisor "hypervisor": Share, required;
    }

    /// Memory that no partition can be linked to. The class binary is linked to these addresses.
    pub(crate) Share = "the hypervisor's share" {
        /// code memory for class binary and system image
        code "code": Size, required;
        /// address of that code memory; without this key it is at the end of the first stretch of code memory
        code_base "code-base": Option<Address>, optional;
        /// RAM, the log of 4K included; 24K are enough for eight partitions and 32 interrupt lines
        ram "ram": Size, required;
        /// address of that RAM; without this key it is at the end of the first stretch of RAM
        ram_base "ram-base": Option<Address>, optional;
    }
}

/// Fills in the code memory, and the hypervisor's share of memory.
pub(crate) fn settle(table: &Table, board: &mut Board) {
    let BoardKeys {
        code,
        hypervisor: own,
    } = BoardKeys::of(table);
    let share = |windows: &[Window], base: Option<Address>, size: Size| {
        let end = windows.first().map_or(0, |window| window.end());
        let size = size.get();
        Window {
            base: base.map_or(end.saturating_sub(size), Address::get),
            size,
        }
    };
    board.own_code = share(&code, own.code_base, own.code);
    board.own_ram = share(&board.ram, own.ram_base, own.ram);
    board.load_address = board.own_code.base;
    board.code = code;
}

/// Returns the line of the board's own UART, where a program expects the line of a virtual one.
pub(crate) fn console_line(board: &Board) -> u32 {
    let lines = board.driven(Role::Console).map(|console| &console.lines[..]);
    lines.and_then(<[u32]>::first).copied().unwrap_or(0)
}

/// Fills in the place of the UART and the number of lines from the board: a program expects them there. The
/// default of the UART's line is `uart_line`.
pub(crate) fn settle_machines(manifest: &mut Manifest, board: &Board, uart_line: u32) {
    for partition in &mut manifest.partitions {
        let machine = &mut partition.machine;
        if let Some(console) = board.driven(Role::Console) {
            let window = console.windows.first().copied().unwrap_or_default();
            let uart = &mut machine.uart.value;
            if uart.base.key.is_none() {
                uart.base.value = Address::new(window.base);
            }
            if uart.line.key.is_none() {
                uart.line.value = Whole::new(uart_line.into()).unwrap_or_default();
            }
        }
        machine.board_lines = Some(board.line_count.next_multiple_of(32));
    }
}

/// Checks that code memory is apart from RAM, and that the hypervisor's share of both exists.
pub(crate) fn check(board: &Board, refuse: &mut Refuse<'_>) {
    let whole = |window: &Window| window.size > 0 && window.pages() == *window && window.end() <= 1 << 32;
    let overlap = board.code.iter().enumerate().any(|(index, window)| {
        let others = board.code[..index].iter().chain(&board.ram);
        others.into_iter().any(|other| other.overlaps(*window))
    });
    if board.code.is_empty() || !board.code.iter().all(whole) || overlap {
        refuse(
            "code",
            "code memory must be whole pages of 4K below 4G, apart from RAM".to_owned(),
            "list each byte once, as code memory or as RAM",
        );
    }
    let can_start = if board.driven(Role::Processors).is_some() {
        2
    } else {
        1
    };
    if board.cpus.len() > can_start {
        refuse(
            "cpus",
            format!(
                "the hypervisor of class `{}` cannot use {} CPUs of this board",
                board.class.name(),
                board.cpus.len()
            ),
            "list one CPU, or two on a board whose table `processors` says how the second one starts",
        );
    }
    if board.driven(Role::Console).is_none() {
        refuse(
            "class",
            format!("a board of class `{}` needs a console", board.class.name()),
            "add the table `console`: programs find a virtual UART of the same kind there",
        );
    }
    for (what, key, share, stretches) in [
        ("code memory", "code", board.own_code, &board.code),
        ("RAM", "ram", board.own_ram, &board.ram),
    ] {
        if !whole(&share) || !stretches.iter().any(|stretch| stretch.contains(share)) {
            refuse(
                "hypervisor",
                format!(
                    "the hypervisor's {what}, {} from {:#x} on, is not within one stretch of the board's",
                    format_size(share.size),
                    share.base
                ),
                &format!("give multiples of 4K that are there (`{key}`, `{key}-base`)"),
            );
        }
    }
    if board.own_ram.size <= board.log().size {
        refuse(
            "hypervisor",
            "the hypervisor's RAM has no room for more than its log".to_owned(),
            "give more than 4K (`ram`)",
        );
    }
}
