// SPDX-License-Identifier: Apache-2.0
//! The rules for the memory of a board of class `armv7m`.

use crate::board::Board;
use crate::class::Refuse;
use crate::driver::Role;
use crate::units::format_size;
use crate::window::Window;

/// Checks that code memory is apart from RAM, and that the hypervisor's share of both exists.
pub(super) fn check(board: &Board, refuse: &mut Refuse<'_>) {
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
    if board.driven(Role::Console).is_none() {
        refuse(
            "class",
            "a board of class `armv7m` needs a console".to_owned(),
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
