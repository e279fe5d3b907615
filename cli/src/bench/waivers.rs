// SPDX-License-Identifier: Apache-2.0
//! Bars that do not hold yet.
//!
//! A figure beyond its bar is a finding, whatever the compiler, unless there is a waiver for it; one beyond its waiver is a
//! finding as well, so that what does not hold yet gets no worse. A waiver that is clearly not needed any more is the third
//! kind: a bar that was reached once is not to be lost. What a waiver allows is the figure on the day it was
//! written and a twentieth more, since another compiler makes other code.

/// Name of the size of the class binary, where rows have their keys.
pub(super) const SIZE: &str = "size";

/// The same of its RAM.
pub(super) const RAM: &str = "ram";

/// A bar that does not hold yet.
#[derive(Debug, Clone, Copy)]
pub(super) struct Waiver {
    /// Key of the row.
    pub key: &'static str,
    /// The figure gets no larger than this.
    pub most: u64,
    /// Why it is beyond the bar.
    pub why: &'static str,
}

const fn waiver(key: &'static str, most: u64, why: &'static str) -> Waiver {
    Waiver { key, most, why }
}

const SWITCH: &str =
    "policies are general: budgets, windows, domains and donation are looked at in each decision";

/// Those of class aarch64.
pub(super) const AARCH64: &[Waiver] = &[
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
        190_000,
        "one binary has all policies, all rules of the image and all of its class",
    ),
];

/// Those of class armv7m.
pub(super) const ARMV7M: &[Waiver] = &[
    waiver(
        "ping-bridged",
        27_900,
        "each access to a register of the virtual controller traps, some sixty a ping",
    ),
    waiver(
        SIZE,
        119_000,
        "one binary has all policies, all rules of the image and all of its class",
    ),
];
