// SPDX-License-Identifier: Apache-2.0
//! The short way to the registers of an NS 16550A does what the long way does.

use bulkhead_devices::ns16550::{FIFO_DEPTH, Ns16550};
use proptest::prelude::*;

/// Something that happens to a UART.
#[derive(Clone, Copy, Debug)]
enum Event {
    Read(u64, u8),
    Write(u64, u8, u64),
    Receive(u8),
    Room(usize),
    Reset,
}

fn size() -> impl Strategy<Value = u8> {
    prop_oneof![4 => Just(1_u8), 1 => Just(2), 1 => Just(4)]
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        (0_u64..9, size()).prop_map(|(offset, size)| Event::Read(offset, size)),
        (0_u64..9, size(), 0_u64..0x200).prop_map(|(offset, size, value)| Event::Write(offset, size, value)),
        any::<u8>().prop_map(Event::Receive),
        (0_usize..40).prop_map(Event::Room),
        Just(Event::Reset),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4096, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_short_way_does_what_the_long_way_does(
        before in prop::collection::vec(event(), 0..40),
        floods in any::<bool>(),
        room in FIFO_DEPTH..64,
        offset in 0_u64..9,
        size in size(),
        stored in prop::option::of(0_u64..0x200),
    ) {
        let mut uart = Ns16550::new();
        for byte in 0..if floods { 200 } else { 0 } {
            uart.receive(byte);
        }
        for event in &before {
            match *event {
                Event::Read(offset, size) => _ = uart.read(offset, size),
                Event::Write(offset, size, value) => _ = uart.write(offset, size, value),
                Event::Receive(byte) => uart.receive(byte),
                Event::Room(room) => uart.set_room(room),
                Event::Reset => uart.reset(),
            }
        }
        let (untouched, mut twin) = (uart.clone(), uart.clone());
        let Some(answer) = uart.touch(offset, size, stored) else {
            prop_assert_eq!(format!("{uart:?}"), format!("{untouched:?}"), "nothing was done");
            return Ok(());
        };
        // The long way tells the room first, which is a whole FIFO's at least.
        twin.set_room(room);
        let value = match stored {
            None => twin.read(offset, size),
            Some(value) => {
                prop_assert_eq!(twin.write(offset, size, value), None, "no byte leaves");
                0
            }
        };
        prop_assert_eq!(answer, value);
        prop_assert_eq!(uart.level(), untouched.level());
        prop_assert_eq!(twin.level(), untouched.level());
        uart.set_room(room);
        prop_assert_eq!(format!("{uart:?}"), format!("{twin:?}"));
    }
}
