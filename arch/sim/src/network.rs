// SPDX-License-Identifier: Apache-2.0
//! The board's network interface: frames that a test puts there, and frames that the hypervisor has sent.

use crate::classes::SimClass;
use crate::machine::SimMachine;
use crate::uplink::NETWORK_LINE;
use bulkhead_arch_api::{FrameWords, Frames, HostPhys, Line, Network, Received};

/// Bytes of the CRC after a frame.
const CRC: u32 = 4;

impl<C: SimClass> SimMachine<C> {
    fn word_at(&self, at: HostPhys) -> u32 {
        let world = self.world();
        u32::from_le_bytes([0, 1, 2, 3].map(|index| world.memory.byte(at.0 + index)))
    }

    fn set_word_at(&self, at: HostPhys, value: u32) {
        let mut world = self.world();
        for (index, byte) in (0..).zip(value.to_le_bytes()) {
            world.memory.set_byte(at.0 + index, byte);
        }
    }
}

/// All memory for frames.
struct Words<C>(SimMachine<C>);

impl<C: SimClass> FrameWords for Words<C> {
    fn word(&mut self, at: HostPhys) -> u32 {
        self.0.word_at(at)
    }

    fn set_word(&mut self, at: HostPhys, value: u32) {
        self.0.set_word_at(at, value);
    }
}

impl<C: SimClass> Frames for SimMachine<C> {
    fn frame_words(&mut self) -> impl FrameWords + use<C> {
        Words(self.clone())
    }

    fn copy_frame(&mut self, from: HostPhys, to: HostPhys, words: u32) {
        for offset in (0..u64::from(words)).map(|index| 4 * index) {
            self.set_word_at(HostPhys(to.0 + offset), self.word_at(HostPhys(from.0 + offset)));
        }
    }
}

impl<C: SimClass> Network for SimMachine<C> {
    const HAS_NETWORK: bool = true;

    fn network_line(&self) -> Option<Line> {
        Some(NETWORK_LINE)
    }

    fn next_frame(&mut self) -> Option<Received> {
        let mut world = self.world();
        let bytes = world.uplink.arrived.front()?.len() as u32 + CRC;
        world.uplink.taken = 0;
        let head = [world.uplink.word(), world.uplink.word()];
        Some(Received { bytes, head })
    }

    fn take_frame(&mut self, to: HostPhys, words: u32, memory: &mut impl FrameWords) {
        self.spend(4 * u64::from(words));
        for offset in (0..u64::from(words)).map(|index| 4 * index) {
            let word = self.world().uplink.word();
            memory.set_word(HostPhys(to.0 + offset), word);
        }
    }

    fn end_frame(&mut self) {
        self.world().uplink.arrived.pop_front();
    }

    fn send_frame(&mut self, from: HostPhys, bytes: u32, memory: &mut impl FrameWords) -> bool {
        if self.world().uplink.is_full {
            return false;
        }
        let words = (0..u64::from(bytes.div_ceil(4))).map(|index| memory.word(HostPhys(from.0 + 4 * index)));
        let mut frame: Vec<u8> = words.flat_map(u32::to_le_bytes).collect();
        frame.truncate(bytes as usize);
        self.world().uplink.sent.push(frame);
        true
    }
}
