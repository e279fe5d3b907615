// SPDX-License-Identifier: Apache-2.0
//! The class binary of `ppc405`: kernel, backend and drivers, put together.
//!
//! Nothing else belongs here. The backend's `entry` calls [`primary`], which hands its machine to the kernel
//! and never returns.
#![no_std]
#![no_main]

use bulkhead_arch_api::{Devices, NoNetwork};
use bulkhead_arch_ppc405::{Machine, Relax, Serial, entry_point};
use bulkhead_image::{Image, ImageError, Portable};
use bulkhead_kernel::{Hooks, Shared, boot};
use bulkhead_policies::AnyPolicy;

/// The drivers of the board's own devices.
const DRIVERS: Devices<Serial, NoNetwork> = Devices {
    console: Serial,
    network: None,
};

static SHARED: Shared<'static, Relax> = Shared::new();

entry_point!(primary);

fn primary(machine: Machine, image: Result<Image<'static>, ImageError>) -> ! {
    let hooks = Hooks {
        digest: Portable,
        version: env!("CARGO_PKG_VERSION"),
    };
    boot::primary::<AnyPolicy, _, _, _>(machine, DRIVERS, &SHARED, image, &hooks)
}

#[panic_handler]
fn panic(info: &core::panic::PanicInfo<'_>) -> ! {
    boot::abandon(&SHARED);
    bulkhead_arch_ppc405::panic(info)
}
