// SPDX-License-Identifier: Apache-2.0
//! The answer about memory is the one of a look at each address.

use bulkhead_loader_plan::{Fault, Range, covered};
use proptest::prelude::*;

/// Stretches one after the other, with gaps between some; not in the order of their addresses.
fn maps() -> impl Strategy<Value = Vec<(Range, u8)>> {
    let stretch = (0_u64..3, 1_u64..20, 0_u8..3);
    prop::collection::vec(stretch, 0..8).prop_map(|stretches| {
        let mut at = 10;
        let mut map: Vec<(Range, u8)> = Vec::new();
        for (gap, length, kind) in stretches {
            let base = at + gap;
            at = base + length;
            map.push((Range { base, length }, kind));
        }
        map.reverse();
        map
    })
}

proptest! {
    #[test]
    fn each_address_is_free_or_the_first_other_one_is_named(map in maps(), base in 0_u64..60, length in 0_u64..60) {
        let kind_at = |address| {
            let mut map = map.iter();
            map.find(|(range, _)| range.base <= address && address < range.end()).map(|(_, kind)| *kind)
        };
        let first = (base..base + length).find(|address| kind_at(*address).is_none_or(|kind| kind == 0));
        let expected = first.map(|address| (address, kind_at(address)));
        let answer = covered(Range { base, length }, map.iter().copied(), |kind| kind != 0);
        let named = answer.err().map(|fault| match fault {
            Fault::Kept(range, kind) => (range.base, Some(kind)),
            Fault::Missing(range) => (range.base, None),
        });
        prop_assert_eq!(named, expected);
    }
}

#[test]
fn a_range_at_the_end_of_the_address_space_does_no_harm() {
    let all = Range {
        base: 0,
        length: u64::MAX,
    };
    let map = [(all, 1_u8)];
    let needed = Range {
        base: u64::MAX - 1,
        length: u64::MAX,
    };
    assert_eq!(covered(needed, map.iter().copied(), |_| true), Ok(()));
}
