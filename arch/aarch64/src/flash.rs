// SPDX-License-Identifier: Apache-2.0
//! The windows of virtual flashes: memory that a VM reads without an exit, and whose other accesses the
//! kernel answers.
//!
//! Everywhere else an access that stage 2 refuses although memory is mapped is a fault of the partition.

use bulkhead_arch_api::class::AARCH64;
use bulkhead_arch_api::class::DeviceRole;
use bulkhead_arch_api::{GuestPhys, MAX_PARTITIONS, PartitionId, VirtualDevice};
use core::sync::atomic::{AtomicU64, Ordering};

/// A window: its first address, and its bytes, 0 if there is none. Written at boot, before any vCPU runs.
struct Window {
    first: AtomicU64,
    size: AtomicU64,
}

static WINDOWS: [[Window; 2]; MAX_PARTITIONS] = [const {
    [const {
        Window {
            first: AtomicU64::new(0),
            size: AtomicU64::new(0),
        }
    }; 2]
}; MAX_PARTITIONS];

/// Tells whether a device is a flash.
pub(crate) fn is_flash(device: &VirtualDevice) -> bool {
    AARCH64
        .device(device.kind())
        .is_some_and(|facts| facts.role == DeviceRole::Flash)
}

/// Notes a window of a partition's flash.
pub(crate) fn add(partition: PartitionId, device: &VirtualDevice) {
    let windows = WINDOWS.get(usize::from(partition.0));
    if let Some(window) = windows.and_then(|windows| windows.get(usize::from(device.window()))) {
        window.first.store(device.base(), Ordering::Relaxed);
        window.size.store(device.size().into(), Ordering::Release);
    }
}

/// Tells whether an address is in a flash of the partition.
pub(crate) fn covers(partition: PartitionId, GuestPhys(address): GuestPhys) -> bool {
    let windows = WINDOWS.get(usize::from(partition.0)).into_iter().flatten();
    let mut inside = windows.map(|window| {
        let size = window.size.load(Ordering::Acquire);
        address.wrapping_sub(window.first.load(Ordering::Relaxed)) < size
    });
    inside.any(|inside| inside)
}
