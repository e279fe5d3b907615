// SPDX-License-Identifier: Apache-2.0
//! Received frames: a ring of words, and for each frame its status until the guest has taken both.

use super::{FrameMemory, RECEIVE_WORDS};

/// Frames that can wait.
const FRAMES: u8 = 16;
/// Words of the ring.
const RING: u16 = RECEIVE_WORDS as u16;
/// RX status (3.13.3): broadcast, multicast.
const BROADCAST: u32 = 1 << 13;
const MULTICAST: u32 = 1 << 10;

/// Whom a frame is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Destination {
    Own,
    Multicast,
    Broadcast,
}

/// Words of the memory that follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// The first.
    pub at: u32,
    /// The number of words.
    pub words: u32,
}

/// Where a frame goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// The second piece may be empty.
    pub pieces: [Piece; 2],
    entry: u16,
}

impl Arrival {
    /// Returns a place in one piece for a frame of `bytes` bytes.
    pub(super) const fn whole(at: u32, words: u32, bytes: u32) -> Self {
        let after = Piece { at: 0, words: 0 };
        Self {
            pieces: [Piece { at, words }, after],
            entry: bytes as u16,
        }
    }

    /// Returns the length of the frame, CRC included.
    pub(super) const fn bytes(&self) -> u32 {
        (self.entry & LENGTH) as u32
    }
}

/// All that wait. The counters count frames and wrap around.
#[derive(Clone, Debug)]
pub(super) struct Receive {
    /// Length of each, CRC included, and its kind in the upper bits.
    frames: [u16; FRAMES as usize],
    arrived: u8,
    /// Frames whose status has been read.
    status_taken: u8,
    /// Frames whose data have been read.
    data_taken: u8,
    /// First word of the oldest frame.
    head: u16,
    /// Words in the ring.
    used: u16,
    /// Words of the oldest frame that the guest has read, those in front of it included.
    position: u16,
}

/// Bits of an entry that are the length.
const LENGTH: u16 = 0x3FFF;
/// The others.
const IS_GROUP: u16 = 1 << 14;
const IS_BROADCAST: u16 = 1 << 15;

/// Returns the number of words of a frame by its entry.
const fn words_of(entry: u16) -> u16 {
    (entry & LENGTH).wrapping_add(3) >> 2
}

/// Returns what the guest reads of it.
const fn status_of(entry: u16) -> u32 {
    let group = if entry & IS_GROUP == 0 { 0 } else { MULTICAST };
    let broadcast = if entry & IS_BROADCAST == 0 { 0 } else { BROADCAST };
    ((entry & LENGTH) as u32) << 16 | group | broadcast
}

const fn slot(frame: u8) -> usize {
    (frame % FRAMES) as usize
}

/// Returns a place in the ring, some words further.
const fn further(at: u16, words: u16) -> u16 {
    let sum = at.wrapping_add(words);
    if sum >= RING { sum.wrapping_sub(RING) } else { sum }
}

impl Receive {
    pub(super) const fn new() -> Self {
        Self {
            frames: [0; FRAMES as usize],
            arrived: 0,
            status_taken: 0,
            data_taken: 0,
            head: 0,
            used: 0,
            position: 0,
        }
    }

    /// Returns a FIFO whose memory is used otherwise: it has no room.
    pub(super) const fn shut() -> Self {
        Self {
            used: RING,
            ..Self::new()
        }
    }

    /// Statuses that wait.
    pub(super) const fn statuses(&self) -> u32 {
        self.arrived.wrapping_sub(self.status_taken) as u32
    }

    /// Returns RX_FIFO_INF (5.3.11).
    pub(super) const fn filling(&self) -> u32 {
        self.statuses() << 16 | (self.used as u32) << 2
    }

    fn entry(&self, frame: u8) -> u16 {
        self.frames.get(slot(frame)).copied().unwrap_or(0)
    }

    /// Returns the oldest status.
    pub(super) fn status(&self) -> u32 {
        if self.statuses() == 0 {
            0
        } else {
            status_of(self.entry(self.status_taken))
        }
    }

    pub(super) fn take_status(&mut self) -> u32 {
        let status = self.status();
        if self.statuses() != 0 {
            self.status_taken = self.status_taken.wrapping_add(1);
        }
        status
    }

    /// Takes the next word of data: those in front of the frame (RXDOFF, 5.3.7) and after it (RX end
    /// alignment) are zero.
    pub(super) fn take_word(&mut self, config: u32, memory: &mut impl FrameMemory) -> u32 {
        if self.data_taken == self.arrived {
            return 0;
        }
        let words = words_of(self.entry(self.data_taken));
        let offset = (config >> 8 & 0x1F) as u16;
        let (skipped, shift) = (offset >> 2, u32::from(offset & 3).wrapping_mul(8));
        let unit = match config >> 30 {
            0 => 0,
            1 => 3,
            _ => 7,
        };
        let shifted = u16::from(shift != 0);
        let all = words
            .wrapping_add(skipped)
            .wrapping_add(shifted)
            .wrapping_add(unit)
            & !unit;
        let index = self.position.checked_sub(skipped);
        let mut at = |index: Option<u16>| match index.filter(|index| *index < words) {
            Some(index) => memory.word(further(self.head, index).into()),
            None => 0,
        };
        let value = if shift == 0 {
            at(index)
        } else {
            let before = at(index.and_then(|index| index.checked_sub(1)));
            at(index).wrapping_shl(shift) | before.wrapping_shr(32_u32.wrapping_sub(shift))
        };
        self.position = self.position.wrapping_add(1);
        if self.position >= all {
            self.skip();
        }
        value
    }

    /// Skips the rest of the oldest frame.
    pub(super) fn skip(&mut self) {
        if self.data_taken == self.arrived {
            return;
        }
        let words = words_of(self.entry(self.data_taken));
        self.head = further(self.head, words);
        self.used = self.used.saturating_sub(words);
        self.position = 0;
        self.data_taken = self.data_taken.wrapping_add(1);
    }

    /// Returns where a frame of `bytes` bytes, CRC included, goes.
    pub(super) fn room(&self, bytes: u32, kind: Destination) -> Option<Arrival> {
        let length = u16::try_from(bytes).ok().filter(|length| *length <= LENGTH)?;
        let entry = length
            | match kind {
                Destination::Own => 0,
                Destination::Multicast => IS_GROUP,
                Destination::Broadcast => IS_BROADCAST | IS_GROUP,
            };
        let words = words_of(entry);
        let waiting = self
            .arrived
            .wrapping_sub(self.data_taken)
            .max(self.arrived.wrapping_sub(self.status_taken));
        if waiting >= FRAMES || words > RING.saturating_sub(self.used) {
            return None;
        }
        let at = further(self.head, self.used);
        let first = words.min(RING.saturating_sub(at));
        let pieces = [(at, first), (0, words.saturating_sub(first))].map(|(at, words)| Piece {
            at: at.into(),
            words: words.into(),
        });
        Some(Arrival { pieces, entry })
    }

    /// Adds the frame, which is there now.
    pub(super) fn commit(&mut self, arrival: &Arrival) {
        if let Some(entry) = self.frames.get_mut(slot(self.arrived)) {
            *entry = arrival.entry;
        }
        self.arrived = self.arrived.wrapping_add(1);
        self.used = self.used.wrapping_add(words_of(arrival.entry));
    }
}
