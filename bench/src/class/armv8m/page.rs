// SPDX-License-Identifier: Apache-2.0
//! The page with the blessed figures of class `armv8m`.

use super::rows::ROWS;
use crate::page::Page;
use crate::waivers::Waiver;

/// The page.
pub(super) const PAGE: Page = Page {
    file: "docs/timing-worlds.md",
    board: "mps2-an505",
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

/// Bars that do not hold yet.
const WAIVERS: &[Waiver] = &[];
