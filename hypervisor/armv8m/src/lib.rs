// SPDX-License-Identifier: Apache-2.0
//! The class binary of `armv8m`: kernel, backend and drivers, put together.
//!
//! Nothing else belongs here. The backend's `entry` calls [`primary`], and [`secondary`] on a second pCPU.
//! Both hand their machine to the kernel and never return.
#![no_std]

use bulkhead_arch_api::{Devices, NoNetwork};
use bulkhead_arch_armv8m::{Machine, Relax, Serial, entry_point};
use bulkhead_image::{Image, ImageError, Portable};
use bulkhead_kernel::{Hooks, Shared, boot};
use bulkhead_policies::AnyPolicy;

/// An initial value: made at start-up, it would need as much stack as it is long.
static SHARED: Shared<'static, Relax> = Shared::new();

const DRIVERS: Devices<Serial, NoNetwork> = Devices {
    console: Serial,
    network: None,
};

entry_point!(primary, secondary);

fn primary(machine: Machine, image: Result<Image<'static>, ImageError>) -> ! {
    let hooks = Hooks {
        digest: Portable,
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
    bulkhead_arch_armv8m::panic(info)
}
