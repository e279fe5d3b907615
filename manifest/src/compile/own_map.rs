// SPDX-License-Identifier: Apache-2.0
//! The tables of the hypervisor's own translation, for a class binary that is built for one system.
//!
//! The hypervisor maps its own parts, the RAM and the devices that it drives, each at its own address. A
//! table is needed for each block that a range covers in part. Two ranges that end in the same block share
//! the table. The memory that a range covers whole takes no table.

use bulkhead_arch_api::{HostPhys, MemoryKind, Permissions};
use bulkhead_arch_paging::vmsa::HypervisorStage1;
use bulkhead_arch_paging::{Attributes, Geometry, Mapping, tables_needed};
use bulkhead_image::ImageBuilder;
use bulkhead_image::layout::{MAP_DEVICE, MAP_RAM};

use crate::class;
use crate::system::System;
use crate::units::{BLOCK, PAGE, align_up};

/// Tables for the end of the system image, which is not known before there is a class binary: one of each
/// level below the root.
const END_OF_IMAGE: usize = 3;
/// Addresses of the hypervisor, one root at level 0, as the classes that translate have them. Their formats
/// have blocks at the same levels, so the format of one of them counts for all.
const GEOMETRY: Geometry = match Geometry::single_root(48) {
    Ok(geometry) => geometry,
    Err(_) => panic!("48 bits are what four levels reach"),
};
/// Attributes, which no number of tables depends on.
const ANY: Attributes = Attributes {
    permissions: Permissions {
        read: true,
        write: false,
        execute: false,
    },
    kind: MemoryKind::Ram,
};

/// Returns the number of tables that the hypervisor of a system needs for its own translation at most.
pub(super) fn tables(system: &System, image: &ImageBuilder) -> usize {
    tables_of(&ranges(system, image)).saturating_add(END_OF_IMAGE)
}

/// Returns the ranges that are mapped, as first address and the address after the last one.
fn ranges(system: &System, image: &ImageBuilder) -> Vec<(u64, u64)> {
    let own = &system.plan;
    let binary = class::host(system.board.class).binary_reserve();
    // The other pCPUs of a PC start in a page below 1 MiB.
    let mut ranges = vec![(0, PAGE)];
    // The parts of the class binary have borders of their own, so each block around them needs a table.
    let (mut at, end) = (own.log.base, own.hypervisor.base.saturating_add(binary));
    while at < end {
        ranges.push((at, at.saturating_add(PAGE)));
        at = at.saturating_add(BLOCK);
    }
    ranges.push((end.saturating_sub(PAGE), end));
    let mut add = |base: u64, size: u64| {
        let end = align_up(base.saturating_add(size), PAGE).unwrap_or(u64::MAX);
        ranges.push((base & !(PAGE - 1), end));
    };
    for record in &image.map {
        if matches!(record.kind.get(), MAP_RAM | MAP_DEVICE) {
            add(record.base.get(), record.size.get());
        }
    }
    for record in &image.controllers {
        for (base, size) in record.base.iter().zip(&record.size) {
            if size.get() != 0 {
                add(base.get(), size.get());
            }
        }
    }
    for record in &image.registers {
        add(record.host.get(), record.size.get());
    }
    ranges
}

/// Returns the number of tables that map these ranges, the root included.
fn tables_of(ranges: &[(u64, u64)]) -> usize {
    let map = |&(from, to): &(u64, u64)| Mapping {
        input: from,
        output: HostPhys(from),
        size: to.saturating_sub(from),
        attributes: ANY,
    };
    let ranges = ranges.iter().filter(|(from, to)| from < to);
    let mappings: Vec<Mapping> = ranges.map(map).collect();
    let tables = tables_needed::<HypervisorStage1>(GEOMETRY, &mappings);
    usize::try_from(tables).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::tables_of;

    const GIB: u64 = 1 << 30;
    const BLOCK: u64 = 2 << 20;

    #[test]
    fn whole_blocks_take_no_table_and_ends_in_a_block_share_one() {
        // The root, and the table of level 1.
        assert_eq!(tables_of(&[(GIB, 2 * GIB)]), 2);
        assert_eq!(tables_of(&[(GIB, 2 * GIB + BLOCK)]), 3);
        assert_eq!(tables_of(&[(GIB, GIB + 0x1000), (GIB + 0x3000, GIB + 0x4000)]), 4);
        assert_eq!(tables_of(&[(GIB + 0x1000, GIB + BLOCK + 0x1000)]), 5);
        assert_eq!(tables_of(&[(0, 0x1000), (1 << 40, (1 << 40) + 0x1000)]), 7);
        assert_eq!(tables_of(&[(5, 5)]), 1);
    }
}
