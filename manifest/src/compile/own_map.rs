// SPDX-License-Identifier: Apache-2.0
//! The tables of the hypervisor's own translation, for a class binary that is built for one system.
//!
//! The hypervisor maps its own parts, the RAM and the devices that it drives, each at its own address. A
//! table is needed for each block that a range covers in part. Two ranges that end in the same block share
//! the table. The memory that a range covers whole takes no table.

use std::collections::BTreeSet;

use bulkhead_image::ImageBuilder;
use bulkhead_image::layout::{MAP_DEVICE, MAP_RAM};

use crate::class;
use crate::system::System;
use crate::units::{PAGE, align_up};

/// The sizes that an entry of a table can have, as powers of two: levels 0, 1 and 2 with pages of 4 KiB (Arm
/// DDI 0487, section D8.2; Intel SDM, volume 3, section 4.5). A table of the next level has the rest.
const LEVELS: [u32; 3] = [39, 30, 21];
/// The level whose entries can only lead to tables.
const WITHOUT_BLOCKS: u32 = LEVELS[0];
/// Tables for the end of the system image, which is not known before there is a class binary: one of a level.
const END_OF_IMAGE: usize = LEVELS.len();

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
        at = at.saturating_add(1 << LEVELS[2]);
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
    let below_root = LEVELS.map(|level| {
        let partly = ranges.iter().flat_map(|(from, to)| entries(*from, *to, level));
        partly.collect::<BTreeSet<u64>>().len()
    });
    below_root.into_iter().fold(1, usize::saturating_add)
}

/// Returns the numbers of the entries of a level that lead to a table for a range.
fn entries(from: u64, to: u64, level: u32) -> Vec<u64> {
    if from >= to {
        return Vec::new();
    }
    let (first, last) = (from >> level, to.saturating_sub(1) >> level);
    if level == WITHOUT_BLOCKS {
        return (first..=last).collect();
    }
    let is_part = |address: u64| !address.is_multiple_of(1 << level);
    let ends = [(is_part(from), first), (is_part(to), last)];
    ends.into_iter()
        .filter(|(is_part, _)| *is_part)
        .map(|(_, entry)| entry)
        .collect()
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
