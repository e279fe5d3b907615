// SPDX-License-Identifier: Apache-2.0
//! Class `aarch64`: the page with its blessed figures, and the measurement by parts of the guest.

use super::Bench;
use crate::in_turns;
use crate::page::Page;
use crate::rows::ROWS;
use crate::runs::{self, Results};
use crate::waivers::{SIZE, Waiver, waiver};
use bulkhead::problem::Problem;
use bulkhead::ui::progress::Progress;
use bulkhead_arch_api::ClassFacts;
use bulkhead_arch_api::class::AARCH64;
use bulkhead_manifest::Board;
use bulkhead_manifest::board::Emulator;

/// The class.
pub(super) struct Aarch64;

impl Bench for Aarch64 {
    fn facts(&self) -> &'static ClassFacts {
        &AARCH64
    }

    fn page(&self) -> Page {
        PAGE
    }

    fn meter(&self) -> Option<&'static str> {
        Some("@guests/calibrate")
    }

    fn measure(&self, board: &Board, emulator: &Emulator, progress: &Progress) -> Result<Results, Problem> {
        let mut results = runs::measure_parts(board, emulator, progress)?;
        // These programs know the interrupt controller of this board.
        if board.name == PAGE.board {
            in_turns::measure(board, emulator, progress, &mut results)?;
        }
        Ok(results)
    }
}

const SWITCH: &str =
    "policies are general: budgets, windows, domains and donation are looked at in each decision";

/// The page.
const PAGE: Page = Page {
    file: "docs/timing.md",
    board: "qemu-virt-aarch64",
    pace: 0,
    rows: ROWS,
    waivers: WAIVERS,
    size_bar: 64 << 10,
    ram_bar: None,
    crates: &[
        "abi",
        "sched",
        "image",
        "arch/api",
        "arch/support",
        "arch/translating",
        "arch/paging",
        "arch/vgic",
        "arch/aarch64",
        "arch/aarch64/core",
        "devices",
        "drivers",
        "kernel",
        "hypervisor/aarch64",
    ],
    models: &[],
};

/// The reason why messages with donation are beyond their bars.
const MESSAGE: &str =
    "an exit, locks of the port and of both seats, a reply capability, a second look and a switch, each way";

/// The reason why other messages are beyond their bars.
const QUEUED: &str = "the port's lock, a look-up of the memory and of the port, and lines that are cleaned";

/// The reason why a receipt that met its bar is beyond it.
const LOOKED: &str = "under the port's lock it looks once more whether its capability is there";

/// The reason why doorbells are beyond their bar.
const DOORBELL: &str = "two entries and exits, a look-up, and five changes of words that pCPUs share";

/// The reason why a timer on a shared pCPU is beyond its bar.
const TIMER: &str = "the next time is another VM's: it is looked at once more, and the clock is armed for it";

/// The reason why first uses are beyond their bars: the same 450 to 550 instructions more in each of them.
const FIRST: &str = "the interrupt is the first one of its vCPU, and takes the long way";

/// Bars that do not hold yet.
const WAIVERS: &[Waiver] = &[
    waiver("timer-shared-31-full", 497, TIMER),
    waiver("switch", 469, SWITCH),
    waiver("switch-fixed-priority-2", 469, SWITCH),
    waiver("switch-edf-2", 722, SWITCH),
    waiver("switch-arinc653-2", 624, SWITCH),
    waiver("switch-domains-2", 691, SWITCH),
    waiver("switch-fixed-priority-8", 469, SWITCH),
    waiver("switch-edf-8", 709, SWITCH),
    waiver("switch-arinc653-8", 634, SWITCH),
    waiver("switch-domains-8", 691, SWITCH),
    waiver("switch-fixed-priority-32", 469, SWITCH),
    waiver("switch-edf-32", 709, SWITCH),
    waiver("switch-arinc653-32", 634, SWITCH),
    waiver("switch-domains-32", 691, SWITCH),
    waiver("doorbell-busy-far", 365, DOORBELL),
    waiver("doorbell-idle-far", 365, DOORBELL),
    waiver("port-send-64-task-task", 374, QUEUED),
    waiver("port-send-320-task-task", 418, QUEUED),
    waiver("port-receive-64-task-task", 335, QUEUED),
    waiver("port-receive-320-task-task", 379, LOOKED),
    waiver("port-send-64-vm-vm", 390, QUEUED),
    waiver("port-send-320-vm-vm", 450, QUEUED),
    waiver("port-receive-64-vm-vm", 350, QUEUED),
    waiver("port-receive-320-vm-vm", 410, QUEUED),
    waiver("port-one-way-64-task-task", 803, MESSAGE),
    waiver("port-one-way-320-task-task", 847, MESSAGE),
    waiver("port-two-way-64-task-task", 1610, MESSAGE),
    waiver("port-two-way-320-task-task", 1698, MESSAGE),
    waiver("port-two-way-64-vm-task", 1964, MESSAGE),
    waiver("port-two-way-320-vm-task", 2084, MESSAGE),
    waiver("port-two-way-64-task-vm", 1956, MESSAGE),
    waiver("port-two-way-320-task-vm", 2076, MESSAGE),
    waiver("cold:timer-busy", 609, FIRST),
    waiver("cold:sgi-self", 673, FIRST),
    waiver("cold:sgi-other-busy", 747, FIRST),
    waiver("cold:switch", 919, FIRST),
    waiver("cold:switch-fixed-priority-2", 919, FIRST),
    waiver("cold:switch-edf-2", 1172, FIRST),
    waiver("cold:switch-arinc653-2", 1074, FIRST),
    waiver("cold:switch-domains-2", 1141, FIRST),
    waiver("cold:switch-fixed-priority-8", 919, FIRST),
    waiver("cold:switch-edf-8", 1172, FIRST),
    waiver("cold:switch-arinc653-8", 1084, FIRST),
    waiver("cold:switch-domains-8", 1141, FIRST),
    waiver("cold:switch-fixed-priority-32", 919, FIRST),
    waiver("cold:switch-edf-32", 1172, FIRST),
    waiver("cold:switch-arinc653-32", 1084, FIRST),
    waiver("cold:switch-domains-32", 1141, FIRST),
    waiver(
        "reset",
        164728,
        "all rules of the system image are checked, and all memory is cleared",
    ),
    waiver(
        SIZE,
        202565,
        "the variant for one VM has all rules of the image and all of its class",
    ),
];
