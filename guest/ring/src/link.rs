// SPDX-License-Identifier: Apache-2.0
//! A virtual serial link: two streams of bytes in the memory of one channel, one for each direction.
//!
//! Side 0 sends through the ring in the first half of the words, side 1 through the ring in the second half.
//! A message carries up to [`PIECE`] bytes of the stream. `guest/c/link.h` is the same in C, on the same
//! layout.

use super::{AtomicU32, Broken, Consumer, Producer, ReceiveError, SendError};

/// Bytes that a message carries at most.
pub const PIECE: usize = 64;

/// One end of a link.
#[derive(Debug)]
pub struct Link<'a> {
    sender: Producer<'a>,
    receiver: Consumer<'a>,
    /// The bytes of the last message. Those from `from` to `end` have not been read.
    rest: [u8; PIECE],
    from: usize,
    end: usize,
}

impl<'a> Link<'a> {
    /// Takes one side of the link, in new memory or where an earlier life of this side left off. `None` if
    /// there are too few words.
    #[must_use]
    pub fn attach(words: &'a [AtomicU32], is_first: bool) -> Option<Self> {
        let (first, second) = words.split_at_checked(words.len() / 2)?;
        let second = second.get(..first.len())?;
        let (own, others) = if is_first {
            (first, second)
        } else {
            (second, first)
        };
        Some(Self {
            sender: Producer::attach(own)?,
            receiver: Consumer::attach(others)?,
            rest: [0; PIECE],
            from: 0,
            end: 0,
        })
    }

    /// Sends as many of these bytes as there is room for. Returns their number.
    ///
    /// # Errors
    /// [`Broken`].
    pub fn write(&mut self, bytes: &[u8]) -> Result<usize, Broken> {
        let mut sent = 0_usize;
        for piece in bytes.chunks(PIECE) {
            match self.sender.send(piece) {
                Ok(()) => sent = sent.saturating_add(piece.len()),
                Err(SendError::Full | SendError::TooLong) => break,
                Err(SendError::Broken) => return Err(Broken),
            }
        }
        Ok(sent)
    }

    /// Reads bytes into `buffer`. Returns their number, 0 if there are none.
    ///
    /// # Errors
    /// [`Broken`], also if a message is longer than a peer makes it that keeps to the rules.
    pub fn read(&mut self, buffer: &mut [u8]) -> Result<usize, Broken> {
        if self.from == self.end {
            (self.from, self.end) = match self.receiver.receive(&mut self.rest) {
                Ok(length) => (0, length),
                Err(ReceiveError::Empty) => return Ok(0),
                Err(error) => {
                    if error != ReceiveError::Broken {
                        self.receiver.broken();
                    }
                    return Err(Broken);
                }
            };
        }
        let waiting = self.rest.get(self.from..self.end).unwrap_or(&[]);
        let length = waiting.len().min(buffer.len());
        for (to, from) in buffer.iter_mut().zip(waiting) {
            *to = *from;
        }
        self.from = self.from.saturating_add(length);
        Ok(length)
    }
}
