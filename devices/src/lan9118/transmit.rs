// SPDX-License-Identifier: Apache-2.0
//! The frame that the guest is writing: commands, then data (3.12).
//!
//! A frame may consist of several buffers, each with an offset in its first word and an alignment of its end,
//! so its bytes are put together in an accumulator and stored a word at a time.

use super::ring::HAS_RINGS;
use super::{FRAME_MAX, FrameMemory, Lan9118};

/// Statuses that can wait.
const STATUSES: u8 = 4;
/// TX command A (3.12.2).
const COMMAND_INTERRUPT: u32 = 1 << 31;
const COMMAND_FIRST: u32 = 1 << 13;
const COMMAND_LAST: u32 = 1 << 12;
/// TX status (3.12.4): an error.
const STATUS_ERROR: u32 = 1 << 15;

/// The meaning of the next word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Expects {
    CommandA,
    CommandB,
    Data,
}

/// A frame, or an attempt at one, has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Done {
    /// Its length, if it can be sent.
    pub bytes: Option<u32>,
    /// The guest wants an interrupt.
    pub interrupts: bool,
    /// There was no room for its status.
    pub overflow: bool,
}

#[derive(Clone, Debug)]
pub(super) struct Transmit {
    expects: Expects,
    command: u32,
    tag: u16,
    /// Bytes in front of the buffer that are still to be ignored.
    skip: u8,
    /// Bytes of the buffer that are still to come.
    left: u16,
    /// Words that are still to come, those that fill it up included.
    words: u16,
    /// Bytes of the frame so far.
    length: u16,
    /// Those that do not make a word yet.
    part: u32,
    tags: [u32; STATUSES as usize],
    pushed: u8,
    taken: u8,
    /// The guest writes its frames to the memory itself. All that comes here are their lengths: a length is
    /// the last word of a frame that has no data.
    takes_lengths: bool,
    /// The last word with no byte of a buffer: such a length.
    unused: u32,
}

impl Transmit {
    pub(super) const fn new() -> Self {
        Self {
            expects: Expects::CommandA,
            command: 0,
            tag: 0,
            skip: 0,
            left: 0,
            words: 0,
            length: 0,
            part: 0,
            tags: [0; STATUSES as usize],
            pushed: 0,
            taken: 0,
            takes_lengths: false,
            unused: 0,
        }
    }

    /// Returns the state in which lengths of frames come, which are in the memory.
    pub(super) const fn of_lengths() -> Self {
        Self {
            expects: Expects::Data,
            command: COMMAND_LAST,
            words: 1,
            takes_lengths: true,
            ..Self::new()
        }
    }

    /// Statuses that wait.
    pub(super) const fn statuses(&self) -> u32 {
        self.pushed.wrapping_sub(self.taken) as u32
    }

    /// Returns TX_FIFO_INF (5.3.12).
    pub(super) const fn filling(&self, space: u32) -> u32 {
        let used = (self.length as u32).wrapping_add(3) & !3;
        self.statuses() << 16 | space.saturating_sub(used)
    }

    /// Returns the oldest status.
    pub(super) fn status(&self) -> u32 {
        let index = usize::from(self.taken % STATUSES);
        if self.statuses() == 0 {
            0
        } else {
            self.tags.get(index).copied().unwrap_or(0)
        }
    }

    pub(super) fn take_status(&mut self) -> u32 {
        let status = self.status();
        if self.statuses() != 0 {
            self.taken = self.taken.wrapping_add(1);
        }
        status
    }

    pub(super) const fn forget_statuses(&mut self) {
        self.taken = self.pushed;
    }

    pub(super) const fn forget_frame(&mut self) {
        self.expects = Expects::CommandA;
        self.length = 0;
        self.part = 0;
    }

    /// Tells whether the next word is the last one of a frame.
    pub(super) const fn would_complete(&self) -> bool {
        let is_last = match self.expects {
            Expects::CommandA => false,
            Expects::CommandB => self.words == 0,
            Expects::Data => self.words == 1,
        };
        is_last && self.command & COMMAND_LAST != 0
    }

    /// Takes a word for the FIFO.
    pub(super) fn push(&mut self, value: u32, memory: &mut impl FrameMemory) -> Option<Done> {
        match self.expects {
            Expects::CommandA => {
                self.begin(value);
                None
            }
            Expects::CommandB => {
                self.tag = (value >> 16) as u16;
                if self.words != 0 {
                    self.expects = Expects::Data;
                    return None;
                }
                self.end_of_buffer(memory)
            }
            Expects::Data => {
                self.add(value, memory);
                self.words = self.words.saturating_sub(1);
                if self.words != 0 {
                    return None;
                }
                self.end_of_buffer(memory)
            }
        }
    }

    /// Takes command A: a buffer, its place in the words to come, and whether it is the first or last of a
    /// frame.
    const fn begin(&mut self, command: u32) {
        self.command = command;
        if command & COMMAND_FIRST != 0 {
            self.length = 0;
            self.part = 0;
        }
        self.skip = (command >> 16 & 0x1F) as u8;
        self.left = (command & 0x7FF) as u16;
        let unit = match command >> 24 & 3 {
            0 => 0,
            1 => 3,
            _ => 7,
        };
        let words = (self.skip as u16).wrapping_add(self.left).wrapping_add(3) >> 2;
        self.words = words.wrapping_add(unit) & !unit;
        self.expects = Expects::CommandB;
    }

    /// Adds the bytes of a word that belong to the buffer.
    fn add(&mut self, value: u32, memory: &mut impl FrameMemory) {
        let unwanted = self.skip.min(4);
        self.skip = self.skip.wrapping_sub(unwanted);
        let count = self.left.min(4_u16.wrapping_sub(unwanted.into()));
        self.left = self.left.wrapping_sub(count);
        if count == 0 {
            if HAS_RINGS {
                self.unused = value;
            }
            return;
        }
        let all = u64::from(value) >> u32::from(unwanted).wrapping_mul(8);
        let bytes = all
            & 1_u64
                .wrapping_shl(u32::from(count).wrapping_mul(8))
                .wrapping_sub(1);
        let filled = self.length & 3;
        let joined = u64::from(self.part) | bytes.wrapping_shl(u32::from(filled).wrapping_mul(8));
        let index = u32::from(self.length >> 2);
        // A frame that is too long stays too long.
        self.length = self.length.saturating_add(count);
        if filled.wrapping_add(count) >= 4 {
            // A frame that is too long is not stored, and not sent.
            if index <= FRAME_MAX >> 2 {
                memory.set_word(Lan9118::TRANSMIT_AT.wrapping_add(index), joined as u32);
            }
            self.part = (joined >> 32) as u32;
        } else {
            self.part = joined as u32;
        }
    }

    fn end_of_buffer(&mut self, memory: &mut impl FrameMemory) -> Option<Done> {
        self.expects = Expects::CommandA;
        if self.command & COMMAND_LAST == 0 {
            return None;
        }
        let mut bytes = Some(u32::from(self.length)).filter(is_frame);
        if let Some(bytes) = bytes {
            self.close(bytes, memory);
        } else if HAS_RINGS && self.takes_lengths {
            self.expect_length();
            bytes = Some(self.unused).filter(is_frame);
        }
        self.length = 0;
        self.part = 0;
        let error = if bytes.is_none() { STATUS_ERROR } else { 0 };
        let has_room = self.statuses() < u32::from(STATUSES);
        let index = usize::from(self.pushed % STATUSES);
        if let Some(status) = self.tags.get_mut(index).filter(|_| has_room) {
            *status = u32::from(self.tag) << 16 | error;
            self.pushed = self.pushed.wrapping_add(1);
        }
        Some(Done {
            bytes,
            interrupts: self.command & COMMAND_INTERRUPT != 0,
            overflow: !has_room,
        })
    }

    /// Expects another length. The status of the last frame is forgotten.
    #[cold]
    #[inline(never)]
    const fn expect_length(&mut self) {
        self.expects = Expects::Data;
        self.words = 1;
        self.taken = self.pushed;
    }

    /// Stores the last bytes, and zeros where receivers find the CRC: nothing of an earlier frame leaves with
    /// this one.
    fn close(&self, bytes: u32, memory: &mut impl FrameMemory) {
        let index = Lan9118::TRANSMIT_AT.wrapping_add(bytes >> 2);
        memory.set_word(index, if bytes & 3 == 0 { 0 } else { self.part });
        memory.set_word(index.wrapping_add(1), 0);
    }
}

/// Tells whether a frame can have this length.
fn is_frame(length: &u32) -> bool {
    (1..=FRAME_MAX).contains(length)
}
