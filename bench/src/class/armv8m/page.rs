// SPDX-License-Identifier: Apache-2.0
//! The page with the blessed figures of class `armv8m`.

use super::rows::ROWS;
use crate::page::Page;
use crate::waivers::{RAM, SIZE, Waiver, waiver};

/// The page.
pub(super) const PAGE: Page = Page {
    file: "docs/timing-worlds.md",
    board: "mps2-an505",
    pace: 6,
    rows: &ROWS,
    waivers: WAIVERS,
    size_bar: 64 << 10,
    ram_bar: Some(12 << 10),
    crates: &[
        "abi",
        "sched",
        "image",
        "arch/api",
        "arch/support",
        "arch/one-pcpu",
        "arch/regions",
        "arch/armv7m/core",
        "arch/armv8m/core",
        "arch/armv8m",
        "devices",
        "drivers",
        "kernel",
        "hypervisor/armv8m",
    ],
    models: &[],
};

const TURN: &str = "the decision, the timer and the code for few bytes; between VMs also the whole world with its lines and blocks";
const CALL: &str = "the registers and the frame of every trap, and the check of the frame's place";
const INSTRUCTION: &str = "an undefined instruction becomes a HardFault of the Secure world, and goes the way of all calls through the kernel";

/// Bars that do not hold yet.
const WAIVERS: &[Waiver] = &[
    waiver("turn-vm-vm", 1875, TURN),
    waiver("cold:turn-vm-vm", 1875, TURN),
    waiver("turn-task-task", 1129, TURN),
    waiver("cold:turn-task-task", 1129, TURN),
    waiver("null-call-vm", 251, CALL),
    waiver("cold:null-call-vm", 251, CALL),
    waiver("null-call-instruction-vm", 1192, INSTRUCTION),
    waiver("cold:null-call-instruction-vm", 1192, INSTRUCTION),
    waiver("null-call-task", 202, CALL),
    waiver(
        SIZE,
        90_824,
        "the variant for VMs alone has all rules of the image and all of its class",
    ),
    waiver(
        RAM,
        20_480,
        "the deepest chain of calls, the Non-secure block, and the worlds of the partitions",
    ),
];
