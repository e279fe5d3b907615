// SPDX-License-Identifier: Apache-2.0
//! A guest does anything with a flash: no panic, work stays in the bank, and nothing is erased that the
//! guest has not confirmed.
#![forbid(unsafe_code)]

use bulkhead_devices::flash::{BUFFER, Bank, ERASE_STEP, Loaded, SECTOR, Work};
use proptest::prelude::*;

const LENGTH: u32 = 2 * SECTOR;

#[derive(Clone, Debug)]
enum Event {
    Load(u64, u8),
    Store(u64, u8, u64),
    Reset,
}

fn event() -> impl Strategy<Value = Event> {
    let offset = prop_oneof![4 => 0_u64..0x200, 2 => 0_u64..LENGTH.into(), 1 => Just(u64::from(LENGTH) - 8)]
        .prop_map(|offset| offset & !7);
    let size = prop_oneof![6 => Just(4_u8), 1 => Just(1), 1 => Just(2), 1 => Just(8)];
    let commands = [
        0x10, 0x20, 0x40, 0x50, 0x60, 0x70, 0x90, 0x98, 0xD0, 0xE8, 0xFF, 0x01, 0x00, 0x03,
    ];
    let value = prop_oneof![
        6 => prop::sample::select(commands.to_vec()).prop_map(|command: u64| command << 16 | command),
        1 => any::<u64>(),
    ];
    prop_oneof![
        3 => (offset.clone(), size.clone()).prop_map(|(offset, size)| Event::Load(offset, size)),
        8 => (offset, size, value).prop_map(|(offset, size, value)| Event::Store(offset, size, value)),
        1 => Just(Event::Reset),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2048, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn work_stays_inside_and_follows_commands(events in prop::collection::vec(event(), 0..300)) {
        let mut bank = Bank::new();
        let mut last_two = [0_u8; 2];
        // The sectors whose erasure was confirmed, and the next step of the one that is under way.
        let mut confirmed = Vec::new();
        let mut under_way: Option<u32> = None;
        for event in events {
            let work = match event {
                Event::Reset => {
                    bank.reset();
                    prop_assert!(bank.is_array());
                    (under_way, last_two) = (None, [0; 2]);
                    confirmed.clear();
                    Work::Nothing
                }
                Event::Load(offset, size) => {
                    let is_array = bank.is_array();
                    let loaded = bank.load(offset, size, LENGTH);
                    prop_assert_eq!(is_array, loaded == Loaded::Array);
                    match loaded {
                        Loaded::Array => Work::Nothing,
                        Loaded::Value(value, work) => {
                            prop_assert!(size == 8 || value < 1 << (u32::from(size) * 8));
                            prop_assert!(!matches!(work, Work::Program { .. }), "a load programs nothing");
                            work
                        }
                    }
                }
                Event::Store(offset, size, value) => {
                    last_two = [last_two[1], value as u8];
                    let work = bank.store(offset, size, value, LENGTH);
                    prop_assert!(!matches!(work, Work::Erase { .. }), "a store erases nothing");
                    if let Work::Program { offset } = work {
                        prop_assert!(under_way.is_none(), "a bank that erases programs nothing");
                        prop_assert!(!bank.data().is_empty() && bank.data().len() <= BUFFER);
                        prop_assert!(offset as usize + bank.data().len() <= LENGTH as usize);
                    }
                    if last_two == [0x20, 0xD0] {
                        confirmed.push(offset as u32 & !(SECTOR - 1));
                    }
                    work
                }
            };
            if let Work::Erase { offset, length } = work {
                // Step by step through a sector that was confirmed.
                match under_way {
                    Some(next) => prop_assert_eq!(offset, next),
                    None => prop_assert!(confirmed.contains(&offset), "nothing is erased without two commands"),
                }
                prop_assert!(length == ERASE_STEP && offset + length <= LENGTH);
                let next = offset + length;
                under_way = (!next.is_multiple_of(SECTOR)).then_some(next);
            }
        }
    }
}
