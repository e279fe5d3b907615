// SPDX-License-Identifier: Apache-2.0
//! Payloads from Debian for VMs of the class.

use crate::build::kernel_source::Recipe;
use crate::build::payload::{Payload, Source};

/// Every payload.
pub(super) const ALL: &[Payload] = &[Payload {
    name: "linux-ppc405",
    description: "Linux for a PowerPC 405, built from Debian's source of its kernel",
    architecture: "arm64",
    source: Source::Built(&LINUX_PPC405),
}];

/// Linux for a PowerPC 405. Later versions of Linux do not have this CPU any more.
static LINUX_PPC405: Recipe = Recipe {
    package: "linux-source-6.1",
    architecture: "powerpc",
    compiler: "powerpc-linux-gnu-",
    options: include_str!("linux.config"),
};
