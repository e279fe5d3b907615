// SPDX-License-Identifier: Apache-2.0
//! Payloads from Debian for VMs of the class.

use crate::build::payload::{Payload, Source};

/// Every payload.
pub(super) const ALL: &[Payload] = &[
    Payload {
        name: "linux-cloud-amd64",
        description: "Debian's amd64 kernel for virtual machines",
        architecture: "amd64",
        source: Source::Kernel("linux-image-cloud-amd64"),
    },
    Payload {
        name: "initramfs-amd64",
        description: "a root file system of Debian's busybox for amd64",
        architecture: "amd64",
        source: Source::Busybox,
    },
];
