// SPDX-License-Identifier: Apache-2.0
//! The answers that all classes of Cortex-M processors give.

pub(super) mod fault_status;

use super::{Debugger, Symbols};
use crate::build::linker::Link;
use crate::serial::health::Event;
use bulkhead_manifest::Board;

/// The flashable file.
pub(super) const FLASH_NAME: &str = "bulkhead.elf";
/// The settings of the debugger.
pub(super) const DEBUGGER: Debugger = Debugger {
    architecture: "arm",
    symbols: Symbols::WhereLinked,
};

/// Tells how a class binary is linked for the places that a board gives.
pub(super) fn link(board: &Board) -> Link {
    let (code, ram) = (board.own_code, board.own_ram);
    Link {
        emulation: "armelf",
        symbols: vec![
            ("__own_code", code.base),
            ("__own_code_size", code.size),
            ("__own_ram", ram.base),
            ("__own_ram_size", ram.size),
        ],
        remedy: format!(
            "if something does not fit: give the hypervisor more memory in the file of board `{}` (`hypervisor.code`, `hypervisor.ram`)",
            board.name
        ),
    }
}

/// Returns a probable remedy against a lock-up.
pub(super) fn remedy(event: &Event) -> Option<&'static str> {
    let locked_up = event.class == "system" && event.syndrome.is_some_and(fault_status::is_lockup);
    locked_up.then_some(
        "look at its vector table, at the stack and at the handler of its HardFault or NMI: one of them faults, and a bare chip \
         would stand still here",
    )
}
