// SPDX-License-Identifier: Apache-2.0
//! Frames in a ring that the guest sees. A guest that keeps to the rules gets whole frames in their order. A
//! guest that writes anything anywhere moves no access out of the memory, and no frame out of its part.
#![forbid(unsafe_code)]

use bulkhead_devices::lan9118::{CONSUMED, FRAME_MAX, FrameMemory, Lan9118, MEMORY_WORDS, PRODUCED};
use proptest::prelude::*;
use std::collections::VecDeque;

const OWN: [u8; 6] = [2, 0, 0, 0, 0, 7];
const HEAD: [u32; 2] = [0x0000_0002, 0x0700];
/// Where the guest sees the memory.
const AT: u32 = 0x2000_2000;
const TX_DATA: u64 = 0x20;
const RX_CFG: u64 = 0x6C;
const TX_CFG: u64 = 0x70;
const HW_CFG: u64 = 0x74;
const MAC_CSR_CMD: u64 = 0xA4;
const MAC_CSR_DATA: u64 = 0xA8;
const RING: u64 = 0xC0;

struct Memory(Vec<u32>);

impl FrameMemory for Memory {
    fn word(&mut self, index: u32) -> u32 {
        self.0[index as usize]
    }

    fn set_word(&mut self, index: u32, value: u32) {
        self.0[index as usize] = value;
    }
}

/// A controller whose driver uses the ring.
struct Chip {
    device: Lan9118,
    memory: Memory,
}

impl Chip {
    fn new() -> Self {
        let mut chip = Self {
            device: Lan9118::new(OWN, AT),
            memory: Memory(vec![0xFFFF_FFFF; MEMORY_WORDS as usize]),
        };
        assert_eq!(chip.device.read(RING, 4, &mut chip.memory), AT);
        chip.start();
        chip
    }

    fn start(&mut self) {
        self.write(MAC_CSR_DATA, 1 << 18 | 1 << 2);
        self.write(MAC_CSR_CMD, 1 << 31 | 1);
        self.memory.set_word(CONSUMED, 0);
        self.memory.set_word(PRODUCED, 0);
        self.write(RING, 1);
    }

    fn write(&mut self, offset: u64, value: u32) -> Option<u32> {
        let sent = self.device.write(offset, 4, value, &mut self.memory)?;
        Some(sent.bytes)
    }

    /// Does what the switch does with a frame: words `number`, `number` + 1 and so on. False if there is no
    /// room.
    fn deliver(&mut self, bytes: u32, number: u32) -> bool {
        let Some(arrival) = self.device.offer(HEAD, bytes, &mut self.memory) else {
            return false;
        };
        let [piece, rest] = arrival.pieces;
        let places = piece.at..piece.at + piece.words;
        assert!(
            places.start > 0 && places.end <= Lan9118::TRANSMIT_AT,
            "{places:?}"
        );
        assert_eq!(rest.words, 0);
        for (place, index) in places.zip(0..) {
            self.memory.set_word(place, number + index);
        }
        // A guest that writes anything may have enabled the interrupt.
        let _interrupts = self.device.arrived(&arrival, &mut self.memory);
        true
    }

    /// Takes the oldest frame as the documentation says (docs/devices.md).
    fn take(&mut self) -> Option<Vec<u32>> {
        let mut at = self.memory.word(CONSUMED);
        if at == self.memory.word(PRODUCED) {
            return None;
        }
        let mut bytes = self.memory.word(at);
        if bytes == 0 {
            at = 0;
            bytes = self.memory.word(at);
        }
        let end = at + 1 + bytes.div_ceil(4);
        let words = (at + 1..end).map(|index| self.memory.word(index)).collect();
        self.memory
            .set_word(CONSUMED, if end == Lan9118::TRANSMIT_AT { 0 } else { end });
        Some(words)
    }
}

/// Lengths that end at each alignment, and those that fill the ring in few steps.
fn bytes() -> impl Strategy<Value = u32> {
    prop_oneof![4 => 18_u32..=FRAME_MAX + 4, 2 => 64_u32..80, 1 => Just(FRAME_MAX + 4)]
}

#[derive(Clone, Debug)]
enum Event {
    Arrive(u32),
    Take,
    /// The guest writes a word.
    Write(u32, u32),
    Store(u64, u32),
}

fn event() -> impl Strategy<Value = Event> {
    let index = prop_oneof![Just(CONSUMED), Just(PRODUCED), 0..MEMORY_WORDS];
    let value = prop_oneof![
        2 => any::<u32>(),
        4 => 0..MEMORY_WORDS,
        1 => Just(Lan9118::TRANSMIT_AT),
        1 => Just(Lan9118::TRANSMIT_AT - 1),
    ];
    let offset = prop_oneof![
        8 => Just(TX_DATA),
        1 => Just(RING),
        1 => Just(RX_CFG),
        1 => Just(TX_CFG),
        1 => Just(HW_CFG),
        1 => Just(MAC_CSR_CMD),
        1 => (0_u64..64).prop_map(|word| word * 4),
    ];
    prop_oneof![
        6 => bytes().prop_map(Event::Arrive),
        1 => any::<u32>().prop_map(Event::Arrive),
        2 => Just(Event::Take),
        4 => (index, value.clone()).prop_map(|(index, value)| Event::Write(index, value)),
        4 => (offset, value).prop_map(|(offset, value)| Event::Store(offset, value)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn frames_are_whole_and_in_their_order(steps in prop::collection::vec((bytes(), 0_usize..4), 1..200)) {
        let mut chip = Chip::new();
        let mut waiting = VecDeque::new();
        for ((bytes, takes), number) in steps.into_iter().zip((0_u32..).step_by(1 << 12)) {
            let is_empty = waiting.is_empty();
            if chip.deliver(bytes, number) {
                waiting.push_back((bytes, number));
            } else {
                prop_assert!(!is_empty, "an empty ring has room for each frame");
            }
            for _ in 0..takes {
                let expected = waiting.pop_front().map(|(bytes, number)| {
                    (0..bytes.div_ceil(4)).map(|index| number + index).collect::<Vec<u32>>()
                });
                prop_assert_eq!(chip.take(), expected);
            }
        }
        while let Some((bytes, number)) = waiting.pop_front() {
            let words = chip.take().unwrap();
            prop_assert_eq!(words.len() as u32, bytes.div_ceil(4));
            prop_assert_eq!(words[0], number);
        }
        prop_assert_eq!(chip.take(), None);
    }

    #[test]
    fn nothing_leaves_its_part_of_the_memory(events in prop::collection::vec(event(), 0..400)) {
        let mut chip = Chip::new();
        for event in events {
            match event {
                Event::Arrive(bytes) if chip.device.has_ring() => {
                    chip.deliver(bytes, 0);
                }
                Event::Arrive(_) => chip.start(),
                // A guest whose words are wrong goes on reading, and gets anything. It stays in the memory.
                Event::Take => {
                    let at = chip.memory.word(CONSUMED) % Lan9118::TRANSMIT_AT;
                    chip.memory.set_word(CONSUMED, at);
                }
                Event::Write(index, value) => chip.memory.set_word(index, value),
                Event::Store(offset, value) => {
                    if let Some(bytes) = chip.write(offset, value) {
                        prop_assert!((1..=FRAME_MAX).contains(&bytes));
                    }
                }
            }
        }
    }

    #[test]
    fn a_length_sends_the_frame_that_is_there_and_nothing_after_it(bytes in any::<u32>(), near in 0_u32..1600) {
        let mut chip = Chip::new();
        for length in [near, bytes, FRAME_MAX, FRAME_MAX + 1, 0] {
            let transmit = Lan9118::TRANSMIT_AT as usize;
            chip.memory.0[transmit..PRODUCED as usize].fill(u32::MAX);
            prop_assert!(chip.device.would_complete(TX_DATA));
            let sent = chip.write(TX_DATA, length);
            prop_assert_eq!(sent, Some(length).filter(|length| (1..=FRAME_MAX).contains(length)));
            if let Some(bytes) = sent {
                Lan9118::close(bytes, &mut chip.memory);
            }
            let words = &chip.memory.0[transmit..];
            let whole: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
            if let Some(bytes) = sent {
                let (frame, after) = whole.split_at(bytes as usize);
                prop_assert!(frame.iter().all(|byte| *byte == 0xFF));
                prop_assert!(after.iter().take(4).all(|byte| *byte == 0));
            }
        }
    }
}
