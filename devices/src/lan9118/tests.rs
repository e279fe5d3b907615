// SPDX-License-Identifier: Apache-2.0
//! Registers of the LAN9118 as its drivers use them.

use super::*;
use std::vec;
use std::vec::Vec;

const OWN: [u8; 6] = [2, 0, 0, 0, 0, 7];

struct Ram(Vec<u32>);

impl FrameMemory for Ram {
    fn word(&mut self, index: u32) -> u32 {
        self.0[index as usize]
    }
    fn set_word(&mut self, index: u32, value: u32) {
        self.0[index as usize] = value;
    }
}

struct Chip {
    device: Lan9118,
    ram: Ram,
}

impl Chip {
    fn new() -> Self {
        let mut chip = Self {
            device: Lan9118::new(OWN, 0),
            ram: Ram(vec![0; MEMORY_WORDS as usize]),
        };
        chip.mac_write(MAC_CR, 0x0000_080C);
        chip.write(IRQ_CFG, IRQ_EN | IRQ_POL | IRQ_TYPE);
        chip
    }

    fn read(&mut self, register: u64) -> u32 {
        self.device.read(register, 4, &mut self.ram)
    }

    fn write(&mut self, register: u64, value: u32) -> Option<Sent> {
        self.device.write(register, 4, value, &mut self.ram)
    }

    fn mac_write(&mut self, register: u32, value: u32) {
        self.write(MAC_CSR_DATA, value);
        self.write(MAC_CSR_CMD, 1 << 31 | register);
        assert_eq!(self.read(MAC_CSR_CMD) >> 31, 0, "done");
    }

    fn mac_read(&mut self, register: u32) -> u32 {
        self.write(MAC_CSR_CMD, 1 << 31 | 1 << 30 | register);
        self.read(MAC_CSR_DATA)
    }

    /// Does what the switch does with a frame for this device.
    fn deliver(&mut self, frame: &[u8]) -> bool {
        let mut words: Vec<u32> = frame
            .chunks(4)
            .map(|chunk| {
                let mut bytes = [0; 4];
                bytes[..chunk.len()].copy_from_slice(chunk);
                u32::from_le_bytes(bytes)
            })
            .collect();
        words.push(0);
        let head = [words[0], words[1]];
        let bytes = frame.len() as u32 + 4;
        let Some(arrival) = self.device.offer(head, bytes, &mut self.ram) else {
            return false;
        };
        let mut words = words.into_iter();
        for piece in arrival.pieces {
            for index in piece.at..piece.at + piece.words {
                self.ram.set_word(index, words.next().unwrap());
            }
        }
        assert!(!self.device.arrived(&arrival, &mut self.ram));
        true
    }

    fn sent(&self, sent: Sent) -> Vec<u8> {
        let words = &self.ram.0[Lan9118::TRANSMIT_AT as usize..];
        let bytes = words.iter().flat_map(|word| word.to_le_bytes());
        bytes.take(sent.bytes as usize).collect()
    }
}

const MAC_CR: u32 = 1;

fn frame(length: usize) -> Vec<u8> {
    let rest = (6..length).map(|byte| byte as u8);
    OWN.into_iter().chain(rest).collect()
}

#[test]
fn the_chip_is_found_and_has_its_address() {
    let mut chip = Chip::new();
    assert_eq!(chip.read(ID_REV) >> 16, 0x0118);
    assert_eq!(chip.read(BYTE_TEST), 0x8765_4321);
    assert_eq!(chip.read(PMT_CTRL) & 1, 1);
    assert_eq!(chip.mac_read(3), 0x0000_0002);
    assert_eq!(chip.mac_read(2), 0x0700);
    // The PHY's identity and its link.
    chip.mac_write(6, 1 << 11 | 2 << 6);
    assert_eq!(chip.mac_read(7), 0x0007);
    chip.mac_write(6, 1 << 11 | 1 << 6);
    assert_eq!(chip.mac_read(7) & 0x24, 0x24);
    // No PHY at another address.
    chip.mac_write(6, 2 << 11 | 2 << 6);
    assert_eq!(chip.mac_read(7), 0xFFFF);
}

#[test]
fn a_frame_is_put_together_from_its_buffers() {
    let mut chip = Chip::new();
    let bytes = frame(61);
    // 14 bytes with an offset of 2, then 47 with an offset of 1 and the end at a multiple of 16.
    chip.write(TX_DATA_FIRST, 2 << 16 | COMMAND_FIRST | 14);
    chip.write(TX_DATA_FIRST, 0xABCD << 16 | 61);
    let push = |chip: &mut Chip, offset: usize, part: &[u8], unit: usize| {
        let mut padded = vec![0xEE; offset];
        padded.extend_from_slice(part);
        padded.resize(padded.len().next_multiple_of(unit), 0xEE);
        let mut last = None;
        for word in padded.as_chunks::<4>().0 {
            assert_eq!(last, None, "not before the last word");
            last = chip.write(TX_DATA_FIRST + 4, u32::from_le_bytes(*word));
        }
        last
    };
    assert_eq!(push(&mut chip, 2, &bytes[..14], 4), None);
    chip.write(TX_DATA_FIRST, 1 << 31 | 1 << 24 | 1 << 16 | COMMAND_LAST | 47);
    chip.write(TX_DATA_FIRST, 0xABCD << 16 | 61);
    let sent = push(&mut chip, 1, &bytes[14..], 16).unwrap();
    assert_eq!(chip.sent(sent), bytes);
    assert_eq!(
        chip.ram.0[Lan9118::TRANSMIT_AT as usize + 15] >> 8,
        0,
        "no leftovers"
    );
    assert_eq!(chip.read(TX_STATUS), 0xABCD_0000);
    assert_eq!(chip.read(TX_FIFO_INF), 4608);
    assert_eq!(chip.read(INT_STS) & TX_IOC_INT, TX_IOC_INT);
}

const COMMAND_FIRST: u32 = 1 << 13;
const COMMAND_LAST: u32 = 1 << 12;

#[test]
fn a_frame_that_is_too_long_is_an_error_and_stays_in_its_memory() {
    let mut chip = Chip::new();
    for (buffer, flags) in [(2047, COMMAND_FIRST), (2047, COMMAND_LAST)] {
        chip.write(TX_DATA_FIRST, flags | buffer);
        chip.write(TX_DATA_FIRST, 1 << 16);
        for _ in 0..512 {
            assert_eq!(chip.write(TX_DATA_FIRST, u32::MAX), None);
        }
    }
    assert_eq!(chip.read(TX_STATUS), 1 << 16 | 1 << 15);
    assert_eq!(chip.read(INT_STS) & TXE_INT, TXE_INT);
}

#[test]
fn a_frame_arrives_with_the_offset_and_the_alignment_that_were_asked_for() {
    for offset in 0..8_u32 {
        for (end, unit) in [(0, 4), (1, 16), (2, 32)] {
            let mut chip = Chip::new();
            chip.write(RX_CFG, end << 30 | offset << 8);
            assert!(chip.deliver(&frame(61)));
            assert!(chip.deliver(&frame(20)));
            assert_eq!(chip.read(RX_FIFO_INF) >> 16, 2);
            for length in [61, 20] {
                assert_eq!(chip.read(RX_STATUS_PEEK) >> 16, length + 4);
                assert_eq!(chip.read(RX_STATUS) >> 16, length + 4);
                // The chip pads to the end of what begins with the offset.
                let words = (offset / 4 + u32::from(offset % 4 != 0) + (length + 4).div_ceil(4))
                    .next_multiple_of(unit / 4);
                let data: Vec<u8> = (0..words).flat_map(|_| chip.read(0).to_le_bytes()).collect();
                let start = offset as usize;
                assert_eq!(data[start..start + length as usize], frame(length as usize));
            }
            assert_eq!(chip.read(RX_FIFO_INF), 0);
        }
    }
}

#[test]
fn the_ring_goes_round_and_is_never_overfilled() {
    let mut chip = Chip::new();
    let long = frame(1514);
    for round in 0..20 {
        let mut taken = 0;
        while chip.deliver(&long) {
            taken += 1;
        }
        assert_eq!(taken, 4, "round {round}");
        assert_eq!(chip.read(RX_DROP), 1);
        for _ in 0..taken {
            assert_eq!(chip.read(RX_STATUS) >> 16, 1518);
            let data: Vec<u8> = (0..380).flat_map(|_| chip.read(0).to_le_bytes()).collect();
            assert_eq!(data[..1514], long[..]);
        }
    }
    // Small ones are limited by their statuses.
    let mut taken = 0;
    while chip.deliver(&frame(20)) {
        taken += 1;
    }
    assert_eq!(taken, 16);
    chip.write(RX_DP_CTRL, 1 << 31);
    assert!(!chip.deliver(&frame(20)), "its status is still there");
    chip.read(RX_STATUS);
    assert!(chip.deliver(&frame(20)));
    chip.write(RX_CFG, 1 << 15);
    assert_eq!(chip.read(RX_FIFO_INF), 0);
}

#[test]
fn the_filter_lets_through_what_the_guest_asked_for() {
    let mut chip = Chip::new();
    let to = |destination: [u8; 6]| {
        let mut bytes = frame(60);
        bytes[..6].copy_from_slice(&destination);
        bytes
    };
    let group = [1, 0, 0x5E, 0, 0, 1];
    assert!(chip.deliver(&to(OWN)));
    assert!(!chip.deliver(&to([2, 0, 0, 0, 0, 8])));
    assert!(!chip.deliver(&to([0xFF; 6])), "broadcast is disabled");
    assert!(!chip.deliver(&to(group)));
    chip.mac_write(MAC_CR, 0xC);
    assert!(chip.deliver(&to([0xFF; 6])));
    chip.mac_write(MAC_CR, 1 << 13 | 0xC);
    assert!(!chip.deliver(&to(group)));
    // The upper six bits of the CRC of this address, most significant bit first, are 31.
    chip.mac_write(5, 1 << 31);
    assert!(chip.deliver(&to(group)));
    chip.mac_write(MAC_CR, 1 << 18 | 4);
    assert!(chip.deliver(&to([2, 0, 0, 0, 0, 8])));
    chip.mac_write(MAC_CR, 1 << 18);
    assert!(!chip.deliver(&to(OWN)), "the receiver is off");
}

#[test]
fn the_interrupt_follows_levels_enables_and_polarity() {
    let mut chip = Chip::new();
    assert!(!chip.device.level());
    chip.write(INT_EN, RSFL_INT);
    assert!(chip.deliver(&frame(60)));
    assert!(chip.device.level());
    // Acknowledged while the frame is there: it is raised again.
    chip.write(INT_STS, u32::MAX);
    assert!(chip.device.level());
    chip.read(RX_STATUS);
    chip.write(INT_STS, u32::MAX);
    assert!(!chip.device.level());
    chip.write(INT_EN, SW_INT);
    assert!(chip.device.level());
    chip.write(IRQ_CFG, IRQ_EN);
    assert!(!chip.device.level(), "active low");
    chip.write(HW_CFG, 1);
    assert_eq!((chip.read(INT_STS), chip.read(INT_EN)), (0, 0));
    assert_eq!(chip.mac_read(2), 0x0700, "the address is loaded anew");
}

/// Acts as the driver of FreeRTOS+TCP for these boards: its handler acknowledges everything, and a task takes
/// what waits.
#[test]
fn a_handler_that_only_acknowledges_comes_to_an_end() {
    let mut chip = Chip::new();
    chip.write(INT_EN, RSFL_INT | TSFL_INT);
    assert!(chip.deliver(&frame(64)));
    chip.write(TX_DATA_FIRST, COMMAND_FIRST | COMMAND_LAST | 4);
    chip.write(TX_DATA_FIRST, 4);
    assert!(chip.write(TX_DATA_FIRST, 0).is_some());
    assert!(chip.device.level());
    chip.write(INT_STS, u32::MAX);
    chip.write(INT_STS, u32::MAX);
    assert!(!chip.device.level(), "its task gets to run");
    // A frame that comes now interrupts, and so do those that a driver leaves which takes one at a time.
    assert!(chip.deliver(&frame(64)));
    assert!(chip.device.level());
    chip.write(INT_STS, TXE_INT);
    chip.write(INT_STS, u32::MAX);
    assert!(chip.device.level(), "another interrupt was acknowledged");
    chip.read(TX_STATUS);
    chip.read(RX_STATUS);
    chip.write(INT_STS, u32::MAX);
    assert!(chip.device.level());
    chip.read(RX_STATUS);
    chip.write(INT_STS, u32::MAX);
    assert!(!chip.device.level());
}

#[test]
fn a_frame_that_came_before_the_ring_keeps_no_interrupt_up() {
    let mut chip = Chip::new();
    chip.device = Lan9118::new(OWN, 0x2000_4000);
    chip.mac_write(MAC_CR, 0x0000_080C);
    chip.write(IRQ_CFG, IRQ_EN | IRQ_POL | IRQ_TYPE);
    chip.write(INT_EN, RSFL_INT);
    assert!(chip.deliver(&frame(60)));
    assert!(chip.device.level());
    chip.write(RING, RING_ON);
    assert!(!chip.device.level());
    chip.write(INT_STS, 0);
    assert!(!chip.device.level());
}

#[test]
fn a_driver_that_knows_the_ring_needs_no_fifo() {
    const AT: u32 = 0x2000_4000;
    let mut chip = Chip::new();
    assert_eq!(chip.read(RING), 0, "as on the chip");
    chip.write(RING, RING_ON);
    assert!(!chip.device.has_ring());
    chip.device = Lan9118::new(OWN, AT);
    chip.mac_write(MAC_CR, 0x0000_080C);
    chip.write(IRQ_CFG, IRQ_EN | IRQ_POL | IRQ_TYPE);
    assert_eq!(chip.read(RING), AT);
    chip.write(RING, RING_ON);
    chip.write(RX_CFG, RX_CFG_DUMP);
    chip.write(TX_CFG, TX_CFG_TXD_DUMP | TX_CFG_TXS_DUMP);
    assert!(chip.device.has_ring(), "its memory is no FIFO's to dump");
    let head = [u32::from_le_bytes([2, 0, 0, 0]), u32::from_le_bytes([0, 7, 0, 0])];
    let arrive = |chip: &mut Chip, head| {
        let arrival = chip.device.offer(head, 64, &mut chip.ram)?;
        Some((arrival.pieces[0].at, chip.device.arrived(&arrival, &mut chip.ram)))
    };
    assert_eq!(
        arrive(&mut chip, head),
        Some((1, false)),
        "its interrupt is not enabled"
    );
    chip.write(INT_EN, RSFL_INT);
    assert_eq!(arrive(&mut chip, head), Some((18, true)));
    assert!(!chip.device.level(), "there is nothing to acknowledge");
    assert_eq!(
        arrive(&mut chip, [0x0000_0002, 0x0800]),
        None,
        "for another station"
    );
    chip.ram.set_word(CONSUMED, u32::MAX);
    assert_eq!(arrive(&mut chip, head), None);
    assert_eq!(chip.read(RX_DROP), 1);
    assert_eq!(chip.write(TX_DATA_FIRST, 60), Some(Sent { bytes: 60 }));
    assert_eq!(chip.write(TX_DATA_FIRST, FRAME_MAX + 1), None);
    assert_eq!(chip.read(INT_STS) & TXE_INT, TXE_INT);
    assert_eq!(
        chip.read(TX_FIFO_INF),
        1 << 16 | TX_SPACE,
        "the status of the last one"
    );
    chip.write(HW_CFG, HW_SRST);
    assert!(!chip.device.has_ring());
    assert_eq!(chip.read(RING), AT);
}
