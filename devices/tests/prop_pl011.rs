// SPDX-License-Identifier: Apache-2.0
//! A guest and the line do anything: no panic, the line follows RIS and IMSC, bytes keep their order.
#![forbid(unsafe_code)]

#[path = "support/pl011.rs"]
mod support;

use bulkhead_devices::pl011::Pl011;
use proptest::prelude::*;
use support::{Event, exercise};

const DR: u64 = 0x000;
const FR: u64 = 0x018;
const LCR_H: u64 = 0x02C;

fn event() -> impl Strategy<Value = Event> {
    let offset =
        prop_oneof![8 => (0_u64..0x14).prop_map(|word| word * 4), 1 => 0_u64..0x1004, 1 => any::<u64>()];
    let size = prop_oneof![Just(1_u8), Just(2), Just(4), Just(8), any::<u8>()];
    prop_oneof![
        4 => (offset.clone(), size.clone()).prop_map(|(offset, size)| Event::Read(offset, size)),
        4 => (offset, size, any::<u64>()).prop_map(|(offset, size, value)| Event::Write(offset, size, value)),
        2 => any::<u8>().prop_map(Event::Receive),
        2 => (0_usize..600).prop_map(Event::Room),
        1 => Just(Event::Reset),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_line_is_raw_status_and_mask(events in prop::collection::vec(event(), 0..200)) {
        exercise(&events);
    }

    #[test]
    fn the_short_way_does_what_the_long_way_does(
        before in prop::collection::vec(event(), 0..40),
        offset in (0_u64..0x14).prop_map(|word| word * 4),
        lane in 0_u64..4,
        size in prop_oneof![Just(1_u8), Just(2), Just(4)],
        stored in prop::option::of(any::<u32>().prop_map(u64::from)),
    ) {
        let mut uart = Pl011::new();
        for event in &before {
            match *event {
                Event::Read(offset, size) => _ = uart.read(offset, size),
                Event::Write(offset, size, value) => _ = uart.write(offset, size, value),
                Event::Receive(byte) => uart.receive(byte),
                Event::Room(room) => uart.set_room(room),
                Event::Reset => uart.reset(),
            }
        }
        let offset = offset + lane / u64::from(size) * u64::from(size);
        let (untouched, mut twin) = (uart.clone(), uart.clone());
        let answer = uart.touch(offset, size, stored);
        let Some(answer) = answer else {
            prop_assert_eq!(format!("{uart:?}"), format!("{untouched:?}"), "nothing was done");
            return Ok(());
        };
        let value = match stored {
            None => twin.read(offset, size),
            Some(value) => {
                prop_assert_eq!(twin.write(offset, size, value), None, "no byte leaves");
                0
            }
        };
        prop_assert_eq!(answer, value);
        prop_assert_eq!(uart.level(), untouched.level());
        prop_assert_eq!(format!("{uart:?}"), format!("{twin:?}"));
    }

    #[test]
    fn input_keeps_its_order(
        fifos in any::<bool>(),
        steps in prop::collection::vec(prop_oneof![any::<u8>().prop_map(Some), Just(None)], 0..250),
    ) {
        let mut uart = Pl011::new();
        uart.write(LCR_H, 4, if fifos { 0x10 } else { 0 });
        let mut waiting = std::collections::VecDeque::new();
        for step in steps {
            match step {
                Some(byte) => {
                    uart.receive(byte);
                    waiting.push_back(byte);
                }
                None => {
                    let empty = uart.read(FR, 4) & 0x10 != 0;
                    prop_assert_eq!(empty, waiting.is_empty());
                    prop_assert_eq!(uart.read(DR, 4), u64::from(waiting.pop_front().unwrap_or(0)));
                }
            }
        }
    }
}
