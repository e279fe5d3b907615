// SPDX-License-Identifier: Apache-2.0
//! Frames by the ring in memory that Bulkhead's virtual LAN9118 can have (docs/devices.md). The datasheet has
//! no such thing: a driver that uses it knows Bulkhead, and finds no ring on the bare board.

use crate::ethernet as chip;
pub use chip::{Adapter, FRAME_WORDS, Frame};
use core::ptr::{with_exposed_provenance, with_exposed_provenance_mut};
use cortex_m::peripheral::CPUID;

/// A load gives the address of the memory, 0 on the bare board; a store of 1 begins.
const RING: usize = 0xC0;
/// With the ring: takes the length of the frame to send.
const TX_DATA: usize = 0x20;
/// Words of the ring, which the frame to send follows; then the indices at the end of the memory.
const RING_WORDS: usize = 1664;
const PRODUCED: usize = 2046;
const CONSUMED: usize = 2047;
const WORDS: usize = 2048;

/// The memory that the program shares with the hypervisor. No part of it is the program's own: the linker
/// knows nothing of it.
#[derive(Clone, Copy, Debug)]
struct Memory {
    at: usize,
}

impl Memory {
    fn read(self, index: usize) -> u32 {
        let place = with_exposed_provenance::<u32>(self.at + 4 * (index % WORDS));
        // SAFETY: the place is one of the words that the controller has named (`Ethernet::open`), where no
        // variable of Rust's is. The hypervisor changes them only while the program is interrupted.
        unsafe { place.read_volatile() }
    }

    fn write(self, index: usize, value: u32) {
        let place = with_exposed_provenance_mut::<u32>(self.at + 4 * (index % WORDS));
        // SAFETY: as for `read`.
        unsafe { place.write_volatile(value) }
    }
}

/// A controller with a ring.
#[derive(Clone, Copy, Debug)]
pub struct Ethernet {
    chip: chip::Ethernet,
    memory: Memory,
    /// Its MAC address.
    pub address: [u8; 6],
}

impl Ethernet {
    /// Finds the controller, sets it up, and takes the ring; what is wrong if that fails.
    ///
    /// # Errors
    /// A sentence.
    pub fn open(cpu: &CPUID) -> Result<Self, &'static str> {
        let chip = chip::Ethernet::open(cpu)?;
        let at = chip.read(RING) as usize;
        if at == 0 {
            return Err("no ring of frames");
        }
        let memory = Memory { at };
        memory.write(PRODUCED, 0);
        memory.write(CONSUMED, 0);
        chip.write(RING, 1);
        Ok(Self {
            chip,
            memory,
            address: chip.address,
        })
    }

    /// Address of its first register.
    #[must_use]
    pub const fn base(&self) -> usize {
        self.chip.base()
    }

    /// Writes any word of the memory, against all rules.
    pub fn spoil(&self, index: usize, value: u32) {
        self.memory.write(index, value);
    }
}

impl Adapter for Ethernet {
    fn address(&self) -> [u8; 6] {
        self.address
    }

    fn has_frame(&self) -> bool {
        self.memory.read(CONSUMED) != self.memory.read(PRODUCED)
    }

    fn receive(&self, frame: &mut Frame) -> bool {
        if !self.has_frame() {
            return false;
        }
        let memory = self.memory;
        let mut at = memory.read(CONSUMED) as usize;
        let mut bytes = memory.read(at) as usize;
        if bytes == 0 {
            at = 0;
            bytes = memory.read(at) as usize;
        }
        let words = bytes.div_ceil(4);
        for (place, index) in frame.words_mut().iter_mut().zip(at + 1..at + 1 + words) {
            *place = memory.read(index);
        }
        // The last four bytes are the check sum.
        frame.length = bytes.min(4 * FRAME_WORDS).saturating_sub(4);
        memory.write(CONSUMED, (at + 1 + words) as u32);
        true
    }

    /// Sends a frame. There is always room: the frame has left its place when the store is done.
    fn send(&self, frame: &Frame) -> bool {
        let words = frame.words().iter().take(frame.length.div_ceil(4));
        for (word, index) in words.zip(RING_WORDS..) {
            self.memory.write(index, *word);
        }
        self.chip.write(TX_DATA, frame.length as u32);
        true
    }
}
