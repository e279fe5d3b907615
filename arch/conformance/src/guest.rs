// SPDX-License-Identifier: Apache-2.0
//! The guest of a system image, for classes that run the checks on their board with RAM for code.
//!
//! The system image has one partition: the guest that does what the checks say. Its code is copied into the
//! RAM of each partition of the checks. They share the memory of that partition, but for the one that must
//! have some of its own.

use crate::{PAGE, RAM_SIZE, Role, Space, ram_region};
use bulkhead_arch_api::{AddressSpace, GuestPhys, VirtualDevice};
use bulkhead_image::Image;

/// Memory of a partition.
const SLICE: u64 = 0x8000;
/// The addresses at which a partition sees its RAM, and memory that it may only read.
const RAM: u64 = 0x4000_0000;
const CONSTANT: u64 = 0x5000_0000;

/// The guest, as the system image has it.
#[derive(Clone, Copy, Debug)]
pub struct Guest {
    memory: u64,
    /// Its code, from the entry on, a page at most.
    pub code: &'static [u8],
}

impl Guest {
    /// An address where no partition has anything.
    pub const NOWHERE: GuestPhys = GuestPhys(0x6000_0000);

    /// Returns the guest of the system image, or `None` if it is not there.
    #[must_use]
    pub fn find(image: &Image<'static>) -> Option<Self> {
        let entry = image.partitions().first()?.entry.get();
        let load = image.loads_of(0, 0).find(|load| {
            let start = load.guest.get();
            (start..start.wrapping_add(load.size.get())).contains(&entry)
        })?;
        let skipped = entry.checked_sub(load.guest.get())?;
        let from = load.offset.get().checked_add(skipped)? as usize;
        let behind = load.offset.get().checked_add(load.size.get())? as usize;
        let code = image.payload(load.payload.get()).get(from..behind)?;
        let memory = image.memory_of(0).find(|record| record.size.get() >= 2 * SLICE)?;
        Some(Self {
            memory: memory.host.get(),
            code: code.get(..(PAGE as usize).min(code.len()))?,
        })
    }

    /// Returns the space of a partition of the checks.
    #[must_use]
    pub fn space(&self, role: Role) -> Space {
        let slice = self
            .memory
            .wrapping_add(if role == Role::Other { SLICE } else { 0 });
        Space {
            ram: ram_region(RAM, slice, RAM_SIZE, true, true),
            constant: ram_region(CONSTANT, slice.wrapping_add(RAM_SIZE), PAGE, false, false),
            program: None,
        }
    }
}

/// Returns the windows of the virtual interrupt controller of the system image's partition, which is of one
/// of these kinds, and its lines.
#[must_use]
pub fn controller(image: &Image<'_>, kinds: &[u32]) -> Option<([VirtualDevice; 2], u32)> {
    let lines = image.partitions().first()?.virtual_lines.get();
    let device = image
        .virtual_devices_of(0)
        .find(|device| kinds.contains(&device.kind.get()))?;
    let window = |number: u8| {
        let index = usize::from(number);
        let place = (device.base.get(index)?.get(), device.size.get(index)?.get());
        Some(VirtualDevice::new(
            device.kind.get(),
            (number, AddressSpace::Memory),
            place,
            None,
        ))
    };
    Some(([window(0)?, window(1)?], lines))
}
