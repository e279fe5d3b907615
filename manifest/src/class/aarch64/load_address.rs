// SPDX-License-Identifier: Apache-2.0
//! The addresses at which a board of class `aarch64` can have the hypervisor.
#![deny(clippy::arithmetic_side_effects)]

use crate::board::Board;
use crate::class::Refuse;
use crate::units::PAGE;
use crate::window::Window;

/// Checks that the flashable file is loaded at an address with room for the log before it.
pub(super) fn check(board: &Board, refuse: &mut Refuse<'_>) {
    let size = board.log().size;
    let load = Window {
        base: board.load_address.saturating_sub(size),
        size: size.saturating_add(1),
    };
    let in_ram = board.load_address >= size && board.ram.first().is_some_and(|ram| ram.contains(load));
    if !board.load_address.is_multiple_of(PAGE) || !in_ram {
        refuse(
            "load-offset",
            format!(
                "the load address {:#x} is not a page of the first stretch of RAM with room for the log before it",
                board.load_address
            ),
            "choose a multiple of 4K from 64K on, below the size of the first stretch of RAM",
        );
    }
}
