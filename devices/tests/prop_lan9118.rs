// SPDX-License-Identifier: Apache-2.0
//! A guest does anything to its Ethernet controller and any frames arrive: no access outside the memory lent
//! to it, the parts for received frames and for the frame being sent never mix, and a frame that arrived is
//! read as it came.
#![forbid(unsafe_code)]

use bulkhead_devices::lan9118::{FRAME_MAX, FrameMemory, Lan9118, MEMORY_WORDS};
use proptest::prelude::*;

const OWN: [u8; 6] = [2, 0, 0, 0, 0, 7];
const MAC_CSR_CMD: u64 = 0xA4;
const MAC_CSR_DATA: u64 = 0xA8;

/// Memory that notices who writes where: the device writes only the frame being sent, the switch only
/// received frames.
struct Guarded(Vec<u32>);

impl FrameMemory for Guarded {
    fn word(&mut self, index: u32) -> u32 {
        assert!(index < Lan9118::TRANSMIT_AT, "only received words are read");
        self.0[index as usize]
    }

    fn set_word(&mut self, index: u32, value: u32) {
        assert!((Lan9118::TRANSMIT_AT..MEMORY_WORDS).contains(&index));
        self.0[index as usize] = value;
    }
}

#[derive(Clone, Debug)]
enum Event {
    Read(u64, u8),
    Write(u64, u8, u32),
    /// A frame of so many bytes, CRC included.
    Arrive(u32),
}

fn event() -> impl Strategy<Value = Event> {
    let offset = prop_oneof![4 => (0_u64..0x40).prop_map(|word| word * 4), 1 => any::<u64>()];
    let size = prop_oneof![8 => Just(4_u8), 1 => Just(1), 1 => Just(2)];
    // Commands and lengths are what has effects; random words rarely are commands.
    let value = prop_oneof![
        2 => any::<u32>(),
        2 => (0_u32..0x800, any::<u8>()).prop_map(|(bytes, offsets)| 0x3000 | u32::from(offsets) << 16 | bytes),
        1 => (0_u32..16).prop_map(|register| 1 << 31 | register),
    ];
    prop_oneof![
        3 => (offset.clone(), size.clone()).prop_map(|(offset, size)| Event::Read(offset, size)),
        4 => (offset, size, value.clone()).prop_map(|(offset, size, value)| Event::Write(offset, size, value)),
        4 => value.prop_map(|value| Event::Write(0x20, 4, value)),
        2 => (8_u32..20_000).prop_map(Event::Arrive),
        2 => (64_u32..128).prop_map(Event::Arrive),
    ]
}

fn receive_all(device: &mut Lan9118, memory: &mut Guarded) {
    device.write(MAC_CSR_DATA, 4, 1 << 18 | 1 << 2, memory);
    device.write(MAC_CSR_CMD, 4, 1 << 31 | 1, memory);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn nothing_leaves_its_part_of_the_memory(events in prop::collection::vec(event(), 0..400)) {
        let mut device = Lan9118::new(OWN, 0);
        let mut memory = Guarded(vec![0; MEMORY_WORDS as usize]);
        receive_all(&mut device, &mut memory);
        for event in events {
            match event {
                Event::Read(offset, size) => {
                    device.read(offset, size, &mut memory);
                }
                Event::Write(offset, size, value) => {
                    if let Some(sent) = device.write(offset, size, value, &mut memory) {
                        prop_assert!((1..=FRAME_MAX).contains(&sent.bytes));
                    }
                }
                Event::Arrive(bytes) => {
                    if let Some(arrival) = device.offer([0x0000_0002, 0x0700], bytes, &mut memory) {
                        let words: u32 = arrival.pieces.iter().map(|piece| piece.words).sum();
                        prop_assert_eq!(words, bytes.div_ceil(4));
                        for piece in arrival.pieces {
                            prop_assert!(piece.at + piece.words <= Lan9118::TRANSMIT_AT);
                        }
                        device.arrived(&arrival, &mut memory);
                    }
                }
            }
        }
    }

    #[test]
    fn frames_are_read_in_the_order_they_came(lengths in prop::collection::vec(64_u32..1519, 1..60), batch in 1_usize..6) {
        let mut device = Lan9118::new(OWN, 0);
        let mut memory = Guarded(vec![0; MEMORY_WORDS as usize]);
        receive_all(&mut device, &mut memory);
        let mut waiting = std::collections::VecDeque::new();
        for (number, length) in (1_u32..).zip(lengths) {
            if let Some(arrival) = device.offer([2, 0x0700], length, &mut memory) {
                let places = arrival.pieces.iter().flat_map(|piece| piece.at..piece.at + piece.words);
                for (place, index) in places.zip(0_u32..) {
                    memory.0[place as usize] = number << 16 | index;
                }
                device.arrived(&arrival, &mut memory);
                waiting.push_back((number, length));
            }
            if waiting.len() >= batch {
                while let Some((number, length)) = waiting.pop_front() {
                    prop_assert_eq!(device.read(0x40, 4, &mut memory) >> 16, length);
                    for index in 0..length.div_ceil(4) {
                        prop_assert_eq!(device.read(0, 4, &mut memory), number << 16 | index);
                    }
                }
            }
        }
    }
}
