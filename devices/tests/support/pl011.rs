// SPDX-License-Identifier: Apache-2.0
//! The acts of a guest and of the line on a UART, as data, and the properties that hold after each act: for
//! the property test and the fuzz target.

use bulkhead_devices::pl011::{FIFO_DEPTH, Pl011};

const IMSC: u64 = 0x038;
const RIS: u64 = 0x03C;
const MIS: u64 = 0x040;

/// One thing that happens.
#[derive(Clone, Debug)]
pub enum Event {
    Read(u64, u8),
    Write(u64, u8, u64),
    Receive(u8),
    Room(usize),
    Reset,
}

/// Checks that the line is raw status and mask, in any case.
pub fn exercise(events: &[Event]) {
    let mut uart = Pl011::new();
    let mut room = FIFO_DEPTH;
    for event in events {
        match *event {
            Event::Read(offset, size) => {
                let value = uart.read(offset, size);
                assert!(value <= 0xFFFF);
            }
            Event::Write(offset, size, value) => {
                if uart.write(offset, size, value).is_some() {
                    assert!(room > 0);
                    room -= 1;
                }
            }
            Event::Receive(byte) => uart.receive(byte),
            Event::Room(now) => {
                room = now;
                uart.set_room(now);
            }
            Event::Reset => uart.reset(),
        }
        let (raw, mask) = (uart.read(RIS, 4), uart.read(IMSC, 4));
        assert_eq!(uart.read(MIS, 4), raw & mask);
        assert_eq!(uart.level(), raw & mask != 0);
    }
}
