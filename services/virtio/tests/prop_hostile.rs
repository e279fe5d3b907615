// SPDX-License-Identifier: Apache-2.0
//! A driver writes anything to the window and to its memory, at any time: the device stays bounded, reaches
//! nothing else, and a reset brings it back.
#![forbid(unsafe_code)]

#[path = "support/device.rs"]
mod device;
#[path = "support/hostile.rs"]
mod hostile;

use device::{BASE, BUFFERS, DRIVER, descriptor};
use hostile::{Act, exercise};
use proptest::prelude::*;

/// Returns an address that is worth trying.
fn address() -> impl Strategy<Value = u64> {
    prop_oneof![
        6 => (0_u64..0x8000).prop_map(|at| BASE + at),
        2 => (0_u64..16).prop_map(|at| BUFFERS + at * 0x200),
        1 => any::<u64>(),
    ]
}

fn length() -> impl Strategy<Value = u32> {
    prop_oneof![
        Just(16_u32),
        Just(512),
        Just(1),
        (0_u32..64).prop_map(|count| 16 * count),
        any::<u32>()
    ]
}

fn act() -> impl Strategy<Value = Act> {
    let flags =
        || prop_oneof![3 => 0_u16..8, 1 => any::<u16>(), 3 => (0_u16..8).prop_map(|flags| flags | 0x80)];
    let one = (0_u16..16, address(), length(), flags(), flags()).prop_map(
        |(slot, address, length, third, fourth)| {
            Act::Poke(slot * 16, descriptor(address, length, third, fourth).to_vec())
        },
    );
    let index =
        (0_u16..20).prop_map(|index| Act::Poke((DRIVER - BASE) as u16 + 2, index.to_le_bytes().to_vec()));
    let heads = prop::collection::vec(0_u16..9, 8).prop_map(|heads| {
        let bytes = heads.iter().flat_map(|head| head.to_le_bytes()).collect();
        Act::Poke((DRIVER - BASE) as u16 + 4, bytes)
    });
    let header = (0_u16..8, 0_u32..10, 0_u64..12).prop_map(|(place, kind, sector)| {
        let mut bytes = kind.to_le_bytes().to_vec();
        bytes.extend([0; 4]);
        bytes.extend(sector.to_le_bytes());
        Act::Poke((BUFFERS - BASE) as u16 + place * 0x200, bytes)
    });
    let register = || prop_oneof![4 => (0_u64..0x45).prop_map(|word| word * 4), 1 => any::<u64>()];
    prop_oneof![
        6 => one,
        3 => index,
        3 => heads,
        3 => header,
        2 => (register(), any::<u8>(), any::<u64>()).prop_map(|(at, size, value)| Act::Store(at, size, value)),
        2 => (register(), 0_u64..70).prop_map(|(at, value)| Act::Store(at, 4, value)),
        1 => (register(), any::<u8>()).prop_map(|(at, size)| Act::Load(at, size)),
        2 => (any::<u16>(), prop::collection::vec(any::<u8>(), 1..40)).prop_map(|(at, bytes)| Act::Poke(at, bytes)),
        2 => (0_u16..0x1200, any::<u8>()).prop_map(|(at, byte)| Act::Race(at, byte)),
        6 => (0_u32..20).prop_map(Act::Serve),
        2 => (any::<bool>(), prop_oneof![Just(8_u16), Just(4), 0_u16..140]).prop_map(|(packed, size)| {
            Act::Start(packed, size)
        }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1024, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn nothing_but_its_own_device_breaks(acts in prop::collection::vec(act(), 0..120)) {
        exercise(&acts);
    }
}
