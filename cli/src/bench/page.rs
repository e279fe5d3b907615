// SPDX-License-Identifier: Apache-2.0
//! The pages with blessed figures: one for each class that is measured.

use super::mcu;
use super::rows::{ROWS, Row};
use super::waivers::{self, Waiver};
use bulkhead_manifest::Class;

/// What a page has.
#[derive(Debug, Clone, Copy)]
pub struct Page {
    /// Where it is in the repository.
    pub file: &'static str,
    /// The board whose figures it has.
    pub board: &'static str,
    /// What is measured.
    pub(super) rows: &'static [Row],
    /// Bars that do not hold yet.
    pub(super) waivers: &'static [Waiver],
    /// Most bytes of text and read-only data of the class binary.
    pub(super) size_bar: u64,
    /// Most bytes of RAM with four partitions, if there is a bar.
    pub(super) ram_bar: Option<u64>,
    /// Crates that end up in the class binary, by their folders.
    pub(super) crates: &'static [&'static str],
}

/// The page of class aarch64.
pub const AARCH64: Page = Page {
    file: "docs/timing.md",
    board: "qemu-virt-aarch64",
    rows: ROWS,
    waivers: waivers::AARCH64,
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
        "devices",
        "drivers",
        "kernel",
        "hypervisor/aarch64",
    ],
};

/// The page of class armv7m.
pub const ARMV7M: Page = Page {
    file: "docs/timing-mcu.md",
    board: "mps2-an500",
    rows: mcu::ROWS,
    waivers: waivers::ARMV7M,
    size_bar: 40 << 10,
    ram_bar: Some(16 << 10),
    crates: &[
        "abi",
        "sched",
        "image",
        "arch/api",
        "arch/support",
        "arch/regions",
        "arch/deprivileged",
        "arch/armv7m",
        "devices",
        "drivers",
        "kernel",
        "hypervisor/armv7m",
    ],
};

impl Page {
    /// The page of a class.
    #[must_use]
    pub const fn of(class: Class) -> Self {
        match class {
            Class::Aarch64 => AARCH64,
            Class::Armv7m => ARMV7M,
        }
    }
}

impl Default for Page {
    fn default() -> Self {
        AARCH64
    }
}
