// SPDX-License-Identifier: Apache-2.0
//! One test per register, and what the drivers of the field rely on.

use super::*;
use std::vec::Vec;

const DR: u64 = 0x000;
const RSR: u64 = 0x004;
const FR: u64 = 0x018;
const ILPR: u64 = 0x020;
const IBRD: u64 = 0x024;
const FBRD: u64 = 0x028;
const LCR_H: u64 = 0x02C;
const CR: u64 = 0x030;
const IFLS: u64 = 0x034;
const IMSC: u64 = 0x038;
const RIS: u64 = 0x03C;
const MIS: u64 = 0x040;
const ICR: u64 = 0x044;
const DMACR: u64 = 0x048;

const TXFE: u64 = FLAG_TXFE as u64;
const TXFF: u64 = FLAG_TXFF as u64;
const RXFE: u64 = FLAG_RXFE as u64;
const RXFF: u64 = FLAG_RXFF as u64;
const BUSY: u64 = FLAG_BUSY as u64;
const TX: u64 = INT_TX as u64;
const RX: u64 = INT_RX as u64;
const RT: u64 = INT_RX_TIMEOUT as u64;
const OE: u64 = INT_OVERRUN as u64;

fn with_fifos() -> Pl011 {
    let mut uart = Pl011::new();
    uart.write(LCR_H, 4, 0x70);
    uart
}

#[test]
fn reset_values() {
    let mut uart = Pl011::new();
    let expected = [
        (DR, 0),
        (RSR, 0),
        (FR, 0x90),
        (ILPR, 0),
        (IBRD, 0),
        (FBRD, 0),
        (LCR_H, 0),
        (CR, 0x300),
        (IFLS, 0x12),
        (IMSC, 0),
        (RIS, 0),
        (MIS, 0),
        (ICR, 0),
        (DMACR, 0),
    ];
    for (offset, value) in expected {
        assert_eq!(uart.read(offset, 4), value, "register {offset:#x}");
    }
    assert!(!uart.level());
}

#[test]
fn identification_is_that_of_r1p5() {
    let mut uart = Pl011::new();
    let id: Vec<u64> = (0..8).map(|index| uart.read(0xFE0 + 4 * index, 4)).collect();
    assert_eq!(id, [0x11, 0x10, 0x34, 0x00, 0x0D, 0xF0, 0x05, 0xB1]);
}

#[test]
fn configuration_registers_keep_their_bits_only() {
    let kept = [
        (ILPR, 0xFF),
        (IBRD, 0xFFFF),
        (FBRD, 0x3F),
        (LCR_H, 0xFF),
        (CR, 0xFFFF),
        (IFLS, 0x3F),
        (IMSC, 0x7FF),
        (DMACR, 0x7),
    ];
    for (offset, bits) in kept {
        let mut uart = Pl011::new();
        assert_eq!(uart.write(offset, 4, 0xFFFF_FFFF), None);
        assert_eq!(uart.read(offset, 4), bits, "register {offset:#x}");
        uart.reset();
        assert_eq!(
            uart.read(offset, 4),
            Pl011::new().read(offset, 4),
            "register {offset:#x}"
        );
    }
}

#[test]
fn read_only_registers_and_holes_ignore_stores() {
    for offset in [
        FR,
        RIS,
        MIS,
        0xFE0,
        0xFFC,
        0x008,
        0x04C,
        0x080,
        0x800,
        0x1000,
        u64::MAX - 3,
    ] {
        let mut uart = Pl011::new();
        let before = uart.read(offset, 4);
        assert_eq!(uart.write(offset, 4, 0xFFFF_FFFF), None, "offset {offset:#x}");
        assert_eq!(uart.read(offset, 4), before, "offset {offset:#x}");
    }
}

#[test]
fn narrow_accesses_see_their_part() {
    let mut uart = Pl011::new();
    uart.write(IBRD, 2, 0x1234);
    assert_eq!(uart.read(IBRD, 1), 0x34);
    assert_eq!(uart.read(IBRD + 1, 1), 0x12);
    assert_eq!(uart.read(IBRD + 2, 2), 0);
    assert_eq!(uart.read(IBRD, 2), 0x1234);
    assert_eq!(uart.read(IBRD, 8), 0, "no register is that wide");
    assert_eq!(uart.read(IBRD + 3, 2), 0, "crosses the register");
    assert_eq!(uart.write(DR, 8, 0x41), None);
    assert_eq!(uart.write(DR + 1, 1, 0x41), None);
    for size in [1, 2, 4] {
        assert_eq!(uart.write(DR, size, 0xFFFF_FF41), Some(0x41));
    }
}

#[test]
fn only_the_data_lane_takes_a_byte_out() {
    let mut uart = with_fifos();
    uart.receive(b'x');
    assert_eq!(uart.read(DR + 1, 1), 0);
    assert_eq!(uart.read(DR, 8), 0);
    assert_eq!(uart.read(DR, 1), u64::from(b'x'));
    assert_eq!(uart.read(FR, 4) & RXFE, RXFE);
}

#[test]
fn bytes_come_out_in_order_and_raise_the_line() {
    let mut uart = with_fifos();
    uart.write(IMSC, 4, RX | RT);
    assert!(!uart.level());
    for byte in 0..40 {
        uart.receive(byte);
        assert!(uart.level());
    }
    assert_eq!(uart.read(FR, 4) & (RXFF | RXFE), RXFF);
    assert_eq!(uart.read(MIS, 4), RX | RT);
    for byte in 0..40 {
        assert!(uart.level());
        assert_eq!(uart.read(DR, 4), byte);
    }
    assert_eq!(uart.read(FR, 4) & (RXFF | RXFE), RXFE);
    assert_eq!(uart.read(RIS, 4), 0);
    assert!(!uart.level());
}

#[test]
fn without_fifos_one_byte_fills_the_receiver() {
    let mut uart = Pl011::new();
    uart.receive(1);
    assert_eq!(uart.read(FR, 4) & (RXFF | RXFE), RXFF);
    uart.receive(2);
    assert_eq!(uart.read(DR, 4), 1);
    assert_eq!(uart.read(FR, 4) & (RXFF | RXFE), RXFF, "the second byte moves up");
    assert_eq!(uart.read(DR, 4), 2);
}

#[test]
fn clearing_does_not_hide_unread_bytes() {
    let mut uart = with_fifos();
    uart.write(IMSC, 4, RT);
    uart.receive(b'a');
    uart.receive(b'b');
    uart.read(DR, 4);
    uart.write(ICR, 4, 0x7FF);
    assert_eq!(uart.read(RIS, 4), RT);
    assert!(uart.level());
    uart.read(DR, 4);
    assert!(!uart.level());
}

#[test]
fn overrun_only_when_the_backlog_is_full() {
    let mut uart = with_fifos();
    for _ in 0..crate::receiver::CAPACITY {
        uart.receive(b'.');
    }
    assert_eq!(uart.read(RIS, 4) & OE, 0);
    uart.receive(b'!');
    assert_eq!(uart.read(RIS, 4) & OE, OE);
    assert_eq!(uart.read(RSR, 4), 0x8);
    assert_eq!(
        uart.read(DR, 4),
        0x800 | u64::from(b'.'),
        "the first read after it shows it"
    );
    assert_eq!(uart.read(DR, 4), u64::from(b'.'));
    assert_eq!(uart.read(RSR, 4), 0x8, "until it is cleared");
    uart.write(RSR, 4, 0);
    assert_eq!(uart.read(RSR, 4), 0);
    uart.write(ICR, 4, OE);
    assert_eq!(uart.read(RIS, 4) & OE, 0);
}

#[test]
fn every_byte_that_leaves_raises_the_transmit_interrupt() {
    let mut uart = with_fifos();
    uart.write(IMSC, 4, TX);
    assert!(!uart.level(), "a transition, not a level (2.8.2)");
    assert_eq!(uart.write(DR, 4, u64::from(b'a')), Some(b'a'));
    assert_eq!(uart.read(MIS, 4), TX);
    uart.write(ICR, 4, TX);
    assert!(!uart.level());
}

#[test]
fn a_slow_line_shows_as_a_filling_fifo() {
    let mut uart = with_fifos();
    assert_eq!(uart.read(FR, 4) & (TXFE | TXFF | BUSY), TXFE);
    for left in (0..FIFO_DEPTH as u64).rev() {
        assert!(uart.write(DR, 4, 0).is_some());
        let flags = uart.read(FR, 4) & (TXFE | TXFF | BUSY);
        assert_eq!(flags, if left == 0 { TXFF | BUSY } else { BUSY });
        let raised = uart.read(RIS, 4) & TX != 0;
        assert_eq!(raised, left >= 16, "raised at or below one half, room {left}");
    }
    assert_eq!(uart.write(DR, 4, 0), None, "data for a full FIFO is lost");
    uart.set_room(15);
    assert_eq!(uart.read(RIS, 4) & TX, 0);
    uart.set_room(16);
    assert_eq!(uart.read(RIS, 4) & TX, TX);
    uart.write(ICR, 4, TX);
    uart.set_room(40);
    assert_eq!(uart.read(RIS, 4) & TX, 0, "it passes the level once");
    assert_eq!(uart.read(FR, 4) & (TXFE | TXFF | BUSY), TXFE);
}

#[test]
fn the_transmit_trigger_level_is_the_guests_choice() {
    for (select, level) in [(0, 4), (1, 8), (2, 16), (3, 24), (4, 28)] {
        let mut uart = with_fifos();
        uart.write(IFLS, 4, select);
        uart.set_room(0);
        uart.set_room(FIFO_DEPTH - level - 1);
        assert_eq!(uart.read(RIS, 4) & TX, 0, "select {select}");
        uart.set_room(FIFO_DEPTH - level);
        assert_eq!(uart.read(RIS, 4) & TX, TX, "select {select}");
    }
}

#[test]
fn without_fifos_one_place_is_enough() {
    let mut uart = Pl011::new();
    uart.set_room(1);
    assert_eq!(uart.read(FR, 4) & TXFE, TXFE);
    uart.write(DR, 4, 0);
    assert_eq!(uart.read(FR, 4) & TXFF, TXFF);
    assert_eq!(uart.read(RIS, 4) & TX, 0);
    uart.set_room(1);
    assert_eq!(uart.read(RIS, 4) & TX, TX);
}

/// Acts as Linux `drivers/tty/serial/amba-pl011.c`: fills until TXFF, then half a FIFO per interrupt without
/// looking.
#[test]
fn the_linux_transmit_path_loses_nothing() {
    let mut uart = with_fifos();
    let text: Vec<u8> = (0..200).collect();
    let mut left = text.iter().copied();
    let mut carried = Vec::new();
    let mut room = 20;
    uart.set_room(room);
    while uart.read(FR, 4) & TXFF == 0 {
        carried.extend(uart.write(DR, 2, u64::from(left.next().unwrap())));
    }
    uart.write(IMSC, 2, TX);
    room = 0;
    while carried.len() < text.len() {
        room += 7;
        uart.set_room(room);
        if uart.level() {
            for _ in 0..FIFO_DEPTH / 2 {
                if let Some(byte) = left.next() {
                    let taken = uart.write(DR, 2, u64::from(byte));
                    assert_eq!(taken, Some(byte), "an interrupt means half a FIFO of room");
                    carried.extend(taken);
                    room -= 1;
                }
            }
        }
    }
    assert_eq!(carried, text);
}

#[test]
fn loopback_returns_data_and_modem_signals() {
    let mut uart = with_fifos();
    uart.write(CR, 4, 0x381);
    assert_eq!(uart.write(DR, 4, u64::from(b'q')), None, "nothing leaves");
    assert_eq!(uart.read(DR, 4), u64::from(b'q'));
    for (output, input, interrupt) in [
        (11, MODEM_CTS, INT_CTS),
        (10, MODEM_DSR, INT_DSR),
        (12, MODEM_DCD, INT_DCD),
        (13, MODEM_RI, INT_RI),
    ] {
        uart.write(ICR, 4, 0x7FF);
        uart.write(CR, 4, 0x381 | 1 << output);
        assert_eq!(
            uart.read(FR, 4) & u64::from(MODEM_CTS | MODEM_DSR | MODEM_DCD | MODEM_RI),
            u64::from(input)
        );
        assert_eq!(uart.read(RIS, 4), u64::from(interrupt));
        uart.write(CR, 4, 0x381);
    }
    uart.write(CR, 4, 0x301);
    assert_eq!(uart.write(DR, 4, u64::from(b'q')), Some(b'q'));
}

#[test]
fn reset_drops_input_and_keeps_the_carriers_room() {
    let mut uart = with_fifos();
    uart.write(IMSC, 4, 0x7FF);
    uart.receive(b'a');
    uart.set_room(0);
    uart.reset();
    assert!(!uart.level());
    assert_eq!(uart.read(FR, 4) & (RXFE | TXFF), RXFE | TXFF);
}
