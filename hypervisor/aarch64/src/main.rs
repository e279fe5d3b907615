// SPDX-License-Identifier: Apache-2.0
//! The class binary of `aarch64`: kernel and backend, put together.
//!
//! Nothing else belongs here. The backend's `entry` calls [`primary`] on the boot pCPU and [`secondary`] on
//! each one the kernel starts; both hand their machine to the kernel and never come back.
#![no_std]
#![no_main]

use bulkhead_arch_aarch64::{CpuDigest, Machine, Relax, entry_points};
use bulkhead_image::{Image, ImageError};
use bulkhead_kernel::{AnyPolicy, Hooks, Shared, boot};

static SHARED: Shared<'static, Relax> = Shared::new();

entry_points!(primary, secondary);

fn primary(machine: Machine, image: Result<Image<'static>, ImageError>) -> ! {
    let hooks = Hooks {
        digest: CpuDigest,
        version: env!("CARGO_PKG_VERSION"),
    };
    boot::primary::<AnyPolicy, _, _>(machine, &SHARED, image, &hooks)
}

fn secondary(machine: Machine) -> ! {
    boot::secondary::<AnyPolicy, _>(machine, &SHARED)
}

#[panic_handler]
fn panic(info: &core::panic::PanicInfo<'_>) -> ! {
    boot::abandon(&SHARED);
    bulkhead_arch_aarch64::panic(info)
}
