// SPDX-License-Identifier: Apache-2.0
//! The page with the blessed figures of class `aarch64`.

use crate::bench::Page;
use crate::bench::rows::ROWS;
use crate::bench::waivers::{SIZE, Waiver, waiver};

const SWITCH: &str =
    "policies are general: budgets, windows, domains and donation are looked at in each decision";

/// The page.
pub(super) const PAGE: Page = Page {
    file: "docs/timing.md",
    board: "qemu-virt-aarch64",
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
        "arch/paging",
        "arch/vgic",
        "arch/aarch64",
        "arch/aarch64/core",
        "devices",
        "drivers",
        "kernel",
        "hypervisor/aarch64",
    ],
};

/// Bars that do not hold yet.
const WAIVERS: &[Waiver] = &[
    waiver("switch", 475, SWITCH),
    waiver(
        "trace-record",
        102,
        "a record is encoded by the kernel, not by the path that has it",
    ),
    waiver("switch-fixed-priority-2", 475, SWITCH),
    waiver("switch-edf-2", 1170, SWITCH),
    waiver("switch-arinc653-2", 765, SWITCH),
    waiver("switch-domains-2", 823, SWITCH),
    waiver("switch-fixed-priority-8", 475, SWITCH),
    waiver("switch-edf-8", 1185, SWITCH),
    waiver("switch-arinc653-8", 775, SWITCH),
    waiver("switch-domains-8", 823, SWITCH),
    waiver("switch-fixed-priority-32", 475, SWITCH),
    waiver("switch-edf-32", 1196, SWITCH),
    waiver("switch-arinc653-32", 775, SWITCH),
    waiver("switch-domains-32", 823, SWITCH),
    waiver(
        "reset",
        162_500,
        "all rules of the system image are checked, and all memory is cleared",
    ),
    waiver(
        SIZE,
        192_000,
        "one binary has all policies, all rules of the image and all of its class",
    ),
];
