// SPDX-License-Identifier: Apache-2.0
//! The firmware's map of memory against the memory of the system.

use crate::Refusal;
use bulkhead_loader_plan::{Plan, Range, covered};
use uefi::boot::{self, PAGE_SIZE};
use uefi::mem::memory_map::{MemoryDescriptor, MemoryMap, MemoryType};

/// Looks whether the system may have all the memory that it needs.
pub(crate) fn look(plan: &Plan<'_>) -> Result<(), Refusal> {
    let map = boot::memory_map(MemoryType::LOADER_DATA)
        .map_err(|error| Refusal::Firmware("say which memory there is", error.status()))?;
    let map = map.entries().map(|entry| (of(entry), entry.ty));
    let pieces = plan.pieces().map(|piece| piece.memory);
    let mut needed = plan.ranges().chain(pieces);
    needed
        .try_for_each(|range| covered(range, map.clone(), is_free))
        .map_err(Refusal::Memory)
}

fn of(entry: &MemoryDescriptor) -> Range {
    Range {
        base: entry.phys_start,
        length: entry.page_count * PAGE_SIZE as u64,
    }
}

/// Tells whether memory is the system's once the firmware's boot services have ended. The hypervisor calls no
/// runtime service and reads no table of ACPI, so their memory is free as well (UEFI 2.10, 7.2).
fn is_free(kind: MemoryType) -> bool {
    [
        MemoryType::CONVENTIONAL,
        MemoryType::LOADER_CODE,
        MemoryType::LOADER_DATA,
        MemoryType::BOOT_SERVICES_CODE,
        MemoryType::BOOT_SERVICES_DATA,
        MemoryType::RUNTIME_SERVICES_CODE,
        MemoryType::RUNTIME_SERVICES_DATA,
        MemoryType::ACPI_RECLAIM,
    ]
    .contains(&kind)
}
