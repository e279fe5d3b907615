// SPDX-License-Identifier: Apache-2.0
//! Payloads from Debian for VMs of the class.

use crate::build::payload::{Payload, Source};

/// The firmware of QEMU's board, for a VM or for the board itself.
pub(super) const UEFI: Payload = Payload {
    name: "qemu-efi-arm64",
    description: "Debian's EDK2 (UEFI) for QEMU's board virt",
    architecture: "arm64",
    source: Source::File("qemu-efi-aarch64", "usr/share/qemu-efi-aarch64/QEMU_EFI.fd"),
};

/// Every payload.
pub(super) const ALL: &[Payload] = &[
    Payload {
        name: "linux-arm64",
        description: "Debian's arm64 kernel",
        architecture: "arm64",
        source: Source::Kernel("linux-image-arm64"),
    },
    Payload {
        name: "linux-rt-arm64",
        description: "Debian's arm64 kernel with PREEMPT_RT",
        architecture: "arm64",
        source: Source::Kernel("linux-image-rt-arm64"),
    },
    Payload {
        name: "linux-armhf",
        description: "Debian's kernel for 32-bit Arm with LPAE",
        architecture: "armhf",
        source: Source::Kernel("linux-image-armmp-lpae"),
    },
    UEFI,
    Payload {
        name: "u-boot-arm64",
        description: "Debian's U-Boot for QEMU's board virt",
        architecture: "arm64",
        source: Source::File("u-boot-qemu", "usr/lib/u-boot/qemu_arm64/u-boot.bin"),
    },
    Payload {
        name: "initramfs",
        description: "a root file system of Debian's busybox for arm64",
        architecture: "arm64",
        source: Source::Busybox,
    },
    Payload {
        name: "initramfs-armhf",
        description: "the same for armhf",
        architecture: "armhf",
        source: Source::Busybox,
    },
];
