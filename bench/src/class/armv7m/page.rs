// SPDX-License-Identifier: Apache-2.0
//! The page with the blessed figures of class `armv7m`.

use super::measure::ROWS;
use crate::page::Page;
use crate::waivers::{RAM, SIZE, Waiver, waiver};

/// The page.
pub(super) const PAGE: Page = Page {
    file: "docs/timing-mcu.md",
    board: "mps2-an500",
    pace: 0,
    rows: ROWS,
    waivers: WAIVERS,
    size_bar: 40 << 10,
    ram_bar: Some(16 << 10),
    crates: &[
        "abi",
        "sched",
        "image",
        "arch/api",
        "arch/support",
        "arch/one-pcpu",
        "arch/regions",
        "arch/armv7m/core",
        "arch/armv7m",
        "devices",
        "drivers",
        "kernel",
        "hypervisor/armv7m",
    ],
    models: &[],
};

const TRAPS: &str = "a switch has three traps left: the store that asks for PendSV, its entry when the mask falls, and the return";

/// Bars that do not hold yet.
const WAIVERS: &[Waiver] = &[
    waiver("words-rtos-switch", 1243, TRAPS),
    waiver("words-rtos-semaphore", 2503, TRAPS),
    waiver(
        "ping-bridged",
        27064,
        "each access to a register of the virtual controller traps, some sixty a ping, and two more if the guest's \
         look for the answer comes just before it",
    ),
    waiver(
        "ping-ring",
        4755,
        "one store that leaves for the kernel and one interrupt, each with a decision; two loads of the virtual \
         SysTick by which the program measures; and each word of a frame goes through the chip's FIFO",
    ),
    waiver(
        SIZE,
        113742,
        "the variant for VMs alone has all rules of the image and all of its class, and looks at interrupts between their steps",
    ),
    waiver(
        RAM,
        17720,
        "the deepest chain of calls is 6,744 bytes, and the kernel keeps an entry for each kind of object that the class does not have",
    ),
];
