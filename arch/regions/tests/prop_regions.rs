// SPDX-License-Identifier: Apache-2.0
//! Covers and combinations against the definition, address by address.

use bulkhead_arch_regions::{
    Combination, GuestRegion, GuestView, Memory, Region, Request, Rights, cover, in_one_region, plan,
    rights_at,
};
use proptest::prelude::*;

const READ_WRITE: Rights = Rights {
    read: true,
    write: true,
    execute: false,
};
/// Returns the combination in a unit with `available` regions, and whether all of it fits.
fn combine(partition: &[Region], guest: &GuestView<'_>, available: u8) -> (Vec<Region>, bool) {
    let mut combination = Combination::NOTHING;
    combination.combine(partition, guest);
    let regions: Vec<Region> = combination.regions(available).copied().collect();
    assert!(regions.len() <= usize::from(available));
    (regions, combination.fits(available))
}

const BASE: u32 = 0x2000_0000;
const UNITS: u32 = 128;

/// Returns the fewest regions inside the range that cover it, by trying everything: `best[n]` for the first n
/// units.
fn fewest(start: u32, units: u32) -> u32 {
    let mut best = vec![u32::MAX; units as usize + 1];
    best[0] = 0;
    for to in 1..=units {
        for from in 0..to {
            if is_one_region(start + from * 32, (to - from) * 32) {
                let before = (0..=from).rev().map(|n| best[n as usize]).next().unwrap();
                best[to as usize] = best[to as usize].min(before.saturating_add(1));
            }
        }
        // A region may reach back over what others cover already.
        for from in 0..to {
            for back in 0..=from {
                if is_one_region(start + back * 32, (to - back) * 32) {
                    best[to as usize] = best[to as usize].min(best[from as usize].saturating_add(1));
                }
            }
        }
    }
    best[units as usize]
}

fn is_one_region(start: u32, bytes: u32) -> bool {
    (5..=31).any(|log2| {
        let size = 1_u32 << log2;
        let granule = if log2 >= 8 { size / 8 } else { size };
        let base = start & !(size - 1);
        start.is_multiple_of(granule) && bytes.is_multiple_of(granule) && start + bytes <= base + size
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1024, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_cover_is_exactly_the_range_and_the_smallest(first in 0..UNITS, units in 1..48_u32) {
        let (start, bytes) = (BASE + first * 32, units * 32);
        let cover = cover(start, bytes.into(), READ_WRITE, Memory::NORMAL).unwrap();
        prop_assert_eq!(cover.needed(), fewest(start, units));
        if cover.needed() as usize == cover.regions().len() {
            for unit in 0..UNITS + 64 {
                let address = BASE + unit * 32;
                let inside = unit >= first && unit < first + units;
                let covered = cover.regions().iter().any(|region| region.covers(address) && region.covers(address + 31));
                prop_assert_eq!(covered, inside, "{:#x}", address);
            }
        }
    }

    #[test]
    fn one_region_around_a_range_is_one_region_and_contains_it(start in any::<u32>(), bytes in 1..0x10_0000_u64) {
        if let Some((first, length)) = in_one_region(start, bytes) {
            prop_assert!(first <= start);
            prop_assert!(u64::from(first) + length >= u64::from(start) + bytes);
            prop_assert_eq!(cover(first, length, READ_WRITE, Memory::NORMAL).unwrap().needed(), 1);
        } else {
            prop_assert!(u64::from(start) + bytes > 1 << 32);
        }
    }

    #[test]
    fn a_plan_gives_what_was_asked_for_and_nothing_else(
        ranges in proptest::collection::vec((0..UNITS * 4, 1..64_u32, any::<bool>()), 1..4)
    ) {
        let requests: Vec<Request> = ranges.iter().map(|(first, units, write)| Request {
            start: BASE + first * 32,
            bytes: u64::from(units * 32),
            rights: Rights { read: true, write: *write, execute: false },
            memory: Memory::NORMAL,
        }).collect();
        if let Ok(plan) = plan(&requests, 8) {
            prop_assert!(plan.regions().len() <= 8);
            for unit in 0..UNITS * 5 {
                let address = BASE + unit * 32;
                let wanted = requests.iter()
                    .find(|request| address >= request.start && u64::from(address - request.start) < request.bytes)
                    .map_or(Rights::NONE, |request| request.rights);
                prop_assert_eq!(rights_at(plan.regions(), address), wanted);
            }
        }
    }

    #[test]
    fn pages_that_share_regions_are_all_that_is_given(
        pages in proptest::collection::btree_map(0..48_u32, 0..3_u8, 1..12), size_log2 in 5..13_u32,
    ) {
        let requests: Vec<Request> = pages.iter().map(|(page, kind)| Request {
            start: BASE + (page << size_log2),
            bytes: 1 << size_log2,
            rights: Rights { read: true, write: *kind > 0, execute: false },
            memory: if *kind > 1 { Memory::DEVICE } else { Memory::NORMAL },
        }).collect();
        if let Ok(plan) = plan(&requests, 8) {
            prop_assert!(plan.regions().len() <= requests.len());
            for unit in 0..(48 << size_log2 >> 5) {
                let address = BASE + unit * 32;
                let wanted = pages.get(&((address - BASE) >> size_log2));
                let of_region = plan.regions().iter().rev().find(|region| region.covers(address));
                let given = of_region.map(|region| match (region.rights.write, region.memory == Memory::DEVICE) {
                    (false, _) => 0,
                    (true, false) => 1,
                    (true, true) => 2,
                });
                prop_assert_eq!(given, wanted.copied(), "{:#x}", address);
            }
        }
    }

    #[test]
    fn a_combination_allows_what_both_allow(
        own in proptest::collection::vec((5..11_u8, 0..64_u32, any::<u8>(), 0..3_u8), 1..3),
        guest in proptest::collection::vec((0..12_u32, 0..128_u32, any::<u32>()), 0..5),
        background in any::<bool>(),
        privileged in any::<bool>(),
    ) {
        // The partition's own regions never overlap with different rights, as a plan's do not.
        let partition: Vec<Region> = own.iter().enumerate().map(|(index, (size_log2, position, disabled, kind))| {
            let slice = BASE + (index as u32) * 0x800;
            Region {
                base: slice + (position << size_log2) % 0x800,
                size_log2: *size_log2,
                disabled: if *size_log2 >= 8 { *disabled } else { 0 },
                rights: Rights { read: true, write: *kind > 0, execute: *kind > 1 },
                memory: Memory::NORMAL,
            }
        }).collect();
        let regions: Vec<GuestRegion> = guest.iter().map(|(size, position, bits)| GuestRegion {
            base: BASE + position * 32,
            attributes: bits & 0x173F_FF00 | size << 1 | u32::from(bits & 7 != 0),
        }).collect();
        let view = GuestView { regions: &regions, background, privileged };
        let (plan, fits) = combine(&partition, &view, 8);
        // With too few regions for that it is never more, but for the background of privileged code.
        if !background {
            let (less, _) = combine(&partition, &view, 3);
            for unit in 0..160 {
                let address = BASE + unit * 32;
                let (all, some) = (rights_at(&plan, address), rights_at(&less, address));
                prop_assert_eq!(all.and(some), some, "{:#x}", address);
            }
        }
        let (cut, _) = combine(&partition, &view, 3);
        for unit in 0..160 {
            let address = BASE + unit * 32;
            let wanted = regions.iter().rev()
                .filter_map(|region| region.decode(privileged))
                .find(|region| region.covers(address))
                .map(|region| region.rights)
                .or(background.then_some(Rights { read: true, write: true, execute: true }))
                .unwrap_or(Rights::NONE);
            let expected = rights_at(&partition, address).and(wanted);
            if background {
                // A region that is left out leaves the background, as where the guest's unit says nothing.
                let (given, own) = (rights_at(&cut, address), rights_at(&partition, address));
                prop_assert!(given == expected || given == own, "{:#x} {:?}", address, cut);
            }
            let given = rights_at(&plan, address);
            if fits {
                prop_assert_eq!(given, expected, "{:#x} {:?}", address, plan);
            } else if !background {
                prop_assert_eq!(given.and(expected), given, "{:#x} {:?}", address, plan);
            } else {
                prop_assert!(given == expected || given == rights_at(&partition, address), "{:#x}", address);
            }
        }
    }
}

#[test]
fn a_combination_that_does_not_fit_is_refused() {
    let region = |index: u32| Region {
        base: BASE + index * 0x1000,
        size_log2: 12,
        disabled: 0,
        rights: READ_WRITE,
        memory: Memory::NORMAL,
    };
    let partition: Vec<Region> = (0..4).map(region).collect();
    let everything = GuestRegion {
        base: 0,
        attributes: 0x0300_0000 | 31 << 1 | 1,
    };
    let small = |index: u32| GuestRegion {
        base: BASE + index * 0x1000,
        attributes: 0x0600_0000 | 5 << 1 | 1,
    };
    let fits = [everything, small(0), small(1), small(2), small(3)];
    let view = |regions| GuestView {
        regions,
        background: false,
        privileged: true,
    };
    let all = combine(&partition, &view(&fits), 8);
    assert_eq!((all.0.len(), all.1), (8, true));
    // Without the one that has the lowest number: only the small ones are left.
    let (less, fits_whole) = combine(&partition, &view(&fits), 7);
    assert_eq!((less.len(), fits_whole), (4, false));
    assert!(!rights_at(&less, BASE).write);
    assert!(rights_at(&less, BASE).read);
    assert_eq!(rights_at(&less, BASE + 0x800), Rights::NONE);
    let (none, _) = combine(&partition, &view(&fits), 0);
    assert!(none.is_empty());
}
