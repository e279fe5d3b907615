// SPDX-License-Identifier: Apache-2.0
//! Frames in memory that the guest sees, in the place of the FIFOs.
//!
//! The real chip has nothing like this: a driver has to know Bulkhead. The words of the FIFO for received
//! frames become a ring of entries. An entry is the length of a frame, CRC included, and then the words of
//! the frame. Each entry is in one piece. A length of 0 means that the next entry is at the start. Two words
//! at the end of the memory say where the next entry will begin ([`PRODUCED`]), and where the oldest one
//! begins that the guest has not taken ([`CONSUMED`]). The ring is empty when both are equal.
//!
//! Invariants: the guest can write every word of this memory, at any time. The device believes only its own
//! index. It reads the guest's one when a frame comes: an impossible number is "no room", and no number lets
//! an entry leave the ring.

use super::receive::{Arrival, Piece};
use super::{FrameMemory, MEMORY_WORDS, RECEIVE_WORDS};
use bulkhead_abi::parts::{PARTS, Part};

/// True if this build has rings.
pub(super) const HAS_RINGS: bool = PARTS.has(Part::FrameRing);
/// The index word that the device writes.
pub const PRODUCED: u32 = MEMORY_WORDS - 2;
/// The index word that the guest writes.
pub const CONSUMED: u32 = MEMORY_WORDS - 1;
/// No word of the ring.
const OFF: u32 = u32::MAX;
/// The length that stands for the start of the ring.
const AT_THE_START: u32 = 0;

/// The ring of a guest.
#[derive(Clone, Debug)]
pub(super) struct Ring {
    /// The address of the memory, 0 if the guest does not see it.
    at: u32,
    /// The word at which the next entry begins; [`OFF`] if frames are not handed over here.
    produced: u32,
}

impl Ring {
    /// Returns a ring that is not used yet.
    pub(super) const fn new(at: u32) -> Self {
        Self { at, produced: OFF }
    }

    /// Returns the address at which the guest sees the memory, 0 if it does not.
    pub(super) const fn address(&self) -> u32 {
        if HAS_RINGS { self.at } else { 0 }
    }

    /// Tells whether frames are handed over here.
    pub(super) const fn is_on(&self) -> bool {
        HAS_RINGS && self.produced != OFF
    }

    /// Begins at the start. The guest has cleared both indices. Returns false if the guest does not see the
    /// memory.
    pub(super) const fn start(&mut self) -> bool {
        let is_seen = self.address() != 0;
        if is_seen {
            self.produced = 0;
        }
        is_seen
    }

    /// Returns where a frame of `bytes` bytes goes; none if there is no room for it.
    pub(super) fn room(&self, bytes: u32, memory: &mut impl FrameMemory) -> Option<Arrival> {
        let consumed = memory.word(CONSUMED);
        let words = bytes.div_ceil(4);
        let ends = |at: u32| at.wrapping_add(words).wrapping_add(1);
        let (at, limit) = if self.produced < consumed {
            (self.produced, consumed)
        } else if ends(self.produced) < RECEIVE_WORDS {
            (self.produced, RECEIVE_WORDS)
        } else {
            (0, consumed)
        };
        // An entry that ends at the oldest one would make the ring look empty.
        let has_room = ends(at) < limit && limit <= RECEIVE_WORDS;
        has_room.then(|| Arrival::whole(at.wrapping_add(1), words, bytes))
    }

    /// Adds the entry, whose frame is there now.
    pub(super) fn commit(&mut self, arrival: &Arrival, memory: &mut impl FrameMemory) {
        let [Piece { at, words }, _] = arrival.pieces;
        if at == 1 && self.produced != 0 {
            memory.set_word(self.produced, AT_THE_START);
        }
        memory.set_word(at.wrapping_sub(1), arrival.bytes());
        self.produced = at.wrapping_add(words);
        memory.set_word(PRODUCED, self.produced);
    }
}
