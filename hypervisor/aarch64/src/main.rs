// SPDX-License-Identifier: Apache-2.0
//! The class binary of `aarch64`: kernel, backend and drivers, put together.
//!
//! Nothing else belongs here. The backend's `entry` calls [`primary`] on the boot pCPU and [`secondary`] on
//! each one the kernel starts; both hand their machine to the kernel and never come back.
#![no_std]
#![no_main]

use bulkhead_arch_aarch64::{CpuDigest, Machine, Relax, Serial, entry_points};
use bulkhead_arch_api::{Devices, NoNetwork};
use bulkhead_image::{Image, ImageError};
use bulkhead_kernel::{Hooks, Shared, boot};
use bulkhead_policies::AnyPolicy;

/// The drivers of the board's own devices. A VM's network is a device passed through, or one of a service
/// partition.
const DRIVERS: Devices<Serial, NoNetwork> = Devices {
    console: Serial,
    network: None,
};

static SHARED: Shared<'static, Relax> = Shared::new();

entry_points!(primary, secondary);

fn primary(machine: Machine, image: Result<Image<'static>, ImageError>) -> ! {
    let hooks = Hooks {
        digest: CpuDigest,
        version: env!("CARGO_PKG_VERSION"),
    };
    boot::primary::<AnyPolicy, _, _, _>(machine, DRIVERS, &SHARED, image, &hooks)
}

fn secondary(machine: Machine) -> ! {
    boot::secondary::<AnyPolicy, _, _>(machine, DRIVERS, &SHARED)
}

#[panic_handler]
fn panic(info: &core::panic::PanicInfo<'_>) -> ! {
    boot::abandon(&SHARED);
    bulkhead_arch_aarch64::panic(info)
}
