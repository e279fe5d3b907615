// SPDX-License-Identifier: Apache-2.0
//! The guest of a system image, which does what the checks say on a board.
//!
//! The system image has one partition. The partitions of the checks share the memory of that partition, but
//! for the one that must have some of its own. On a class that translates, the code of the guest is copied
//! into the RAM of each. On a class that runs code in place, all of them execute it where it is.

use crate::{At, Bench, PAGE, PROGRAM, RAM_SIZE, Role, Space, ram_region};
use bulkhead_arch_api::{
    AddressSpace, ClassFacts, EntryState, GuestPhys, Region, Spaces, VcpuReset, VirtualDevice,
};
use bulkhead_image::Image;
use bulkhead_image::layout::{MEMORY_EXECUTE, MEMORY_WRITE};

/// Memory of a partition.
const SLICE: u64 = 0x8000;
/// The addresses at which a partition of a class that translates sees its RAM, memory that it may only read,
/// and nothing.
const RAM: u64 = 0x4000_0000;
const CONSTANT: u64 = 0x5000_0000;
const NOWHERE: u64 = 0x6000_0000;
/// Where the memory that may only be read is in the slice of a class that runs code in place: not beside RAM.
const CONSTANT_IN_PLACE: u64 = 0x6000;
/// An address of such a class where a board has no memory, and no partition has a device.
const NOWHERE_IN_PLACE: u64 = 0x7000_0000;

/// The guest's code.
#[derive(Clone, Copy, Debug)]
enum Code {
    /// It is copied to where a partition's program is: the bytes from the entry on, a page at most.
    Copied(&'static [u8]),
    /// It is executed where it is, from this entry on.
    InPlace(Region, u64),
}

/// The guest, as the system image has it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Guest {
    memory: u64,
    code: Code,
}

impl Guest {
    /// Returns the guest of the system image, or `None` if it is not there.
    pub(crate) fn find(image: &Image<'static>, class: &ClassFacts) -> Option<Self> {
        let code = if class.translates {
            copied(image)
        } else {
            in_place(image)
        };
        let is_ram = |flags: u32| class.translates || flags & MEMORY_WRITE != 0;
        let mut memory = image.memory_of(0);
        let memory = memory.find(|record| is_ram(record.flags.get()) && record.size.get() >= 2 * SLICE)?;
        Some(Self {
            memory: memory.host.get(),
            code: code?,
        })
    }

    /// Returns the space of a partition of the checks.
    pub(crate) fn space(&self, role: Role) -> Space {
        let slice = self
            .memory
            .wrapping_add(if role == Role::Other { SLICE } else { 0 });
        match self.code {
            Code::Copied(_) => Space {
                ram: ram_region(RAM, slice, RAM_SIZE, true, true),
                constant: ram_region(CONSTANT, slice.wrapping_add(RAM_SIZE), PAGE, false, false),
                program: None,
            },
            Code::InPlace(program, _) => {
                let constant = slice.wrapping_add(CONSTANT_IN_PLACE);
                Space {
                    ram: ram_region(slice, slice, RAM_SIZE, true, false),
                    constant: ram_region(constant, constant, PAGE, false, false),
                    program: Some(program),
                }
            }
        }
    }

    /// Returns an address where no partition has anything.
    pub(crate) const fn nowhere(&self) -> GuestPhys {
        match self.code {
            Code::Copied(_) => GuestPhys(NOWHERE),
            Code::InPlace(..) => GuestPhys(NOWHERE_IN_PLACE),
        }
    }

    /// Gives a role's partition the code. Returns the state in which it interprets the records at `records`.
    pub(crate) fn start<B: Bench>(&self, bench: &mut B, role: Role, records: GuestPhys) -> VcpuReset {
        let (entry, argument, stack) = match self.code {
            Code::Copied(code) => {
                let start = bench.address(role, At::Ram(PROGRAM));
                // Without its program the guest does what it did in an earlier check, which this one then
                // sees.
                let _is_seen = bench.machine().copy_out(role.partition(), start, code);
                (start, records.0, start.0)
            }
            Code::InPlace(program, entry) => (GuestPhys(entry), program.guest.0, records.0),
        };
        VcpuReset {
            state: EntryState::USUAL,
            entry,
            argument,
            stack,
        }
    }
}

/// Returns the code of the guest as bytes that are copied.
fn copied(image: &Image<'static>) -> Option<Code> {
    let entry = image.partitions().first()?.entry.get();
    let load = image.loads_of(0, 0).find(|load| {
        let start = load.guest.get();
        (start..start.wrapping_add(load.size.get())).contains(&entry)
    })?;
    let skipped = entry.checked_sub(load.guest.get())?;
    let from = load.offset.get().checked_add(skipped)? as usize;
    let end = load.offset.get().checked_add(load.size.get())? as usize;
    let code = image.payload(load.payload.get()).get(from..end)?;
    Some(Code::Copied(code.get(..(PAGE as usize).min(code.len()))?))
}

/// Returns the code of the guest as the memory that it is executed from.
fn in_place(image: &Image<'_>) -> Option<Code> {
    let mut memory = image.memory_of(0);
    let kinds = MEMORY_EXECUTE | MEMORY_WRITE;
    let code = memory.find(|record| record.flags.get() & kinds == MEMORY_EXECUTE)?;
    let (first, size) = (code.host.get(), code.size.get());
    Some(Code::InPlace(
        ram_region(first, first, size, false, true),
        image.partitions().first()?.entry.get(),
    ))
}

/// Returns the windows of the virtual interrupt controller of the system image's partition, which is of one
/// of these kinds, and its lines.
pub(crate) fn controller(image: &Image<'_>, kinds: &[u32]) -> Option<([VirtualDevice; 2], u32)> {
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
