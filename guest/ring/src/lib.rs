// SPDX-License-Identifier: Apache-2.0
//! A ring of messages for one producer and one consumer, in memory that both can write: a channel of the
//! hypervisor. Neither trusts the other.
//!
//! The memory is a slice of 32-bit words: the producer's index, the consumer's index in a cache line of its
//! own, and after them the places, a power of two. An index counts the words that were ever written or
//! taken, and wraps at 2^32. A message is a word with its length in bytes and the words that it fills; it
//! wraps at the end of the places like everything else.
//!
//! **A hostile peer** may write any word of the memory at any time. So each side
//!
//! - keeps its own index to itself, and only tells it to the other side. Nothing changes here by the use that
//!   the other side makes of that word;
//! - reads the index of the peer once per operation, and believes only a distance that is possible;
//! - reads each word of a message once, into memory of its own, and checks the length that it has read, not
//!   the
//!   one that is there. A message that the peer changes meanwhile is a message that the peer might have sent.
//!
//! With anything in the memory, no operation panics, loops more often than a message has words, or touches a
//! word twice. An impossible index or length is [`Broken`], for good, until [`Producer::attach`] or
//! [`Consumer::attach`] starts anew.
//!
//! **Memory ordering.** The producer writes a message with relaxed stores, then its index with a release
//! store. The consumer reads that index with an acquire load, then the message. It tells its own index with a
//! release store, which the producer reads with an acquire load before it overwrites. A model checker has
//! tried the orders that this allows (`tests/loom.rs`).
//!
//! `guest/c/ring.h` is the same in C, on the same layout.
#![no_std]
#![forbid(unsafe_code)]

mod link;

pub use link::{Link, PIECE};

#[cfg(not(loom))]
use core::sync::atomic::{AtomicU32, Ordering};
#[cfg(loom)]
use loom::sync::atomic::{AtomicU32, Ordering};

/// Words before the places: each index has a cache line of 64 bytes to itself.
pub const HEAD_WORDS: usize = 32;
/// The word with the producer's index.
const WRITTEN: usize = 0;
/// The word with the consumer's index.
const TAKEN: usize = 16;
/// The fewest places.
const MIN_PLACES: usize = 2;
/// The most places: half of what an index counts, so that a distance beyond is always impossible.
const MAX_PLACES: usize = 1 << 31;

/// The ring cannot be used any longer: its memory holds what no peer that keeps to the rules writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Broken;

/// Why a message was not sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SendError {
    /// There is no room now.
    Full,
    /// It is longer than the whole ring.
    TooLong,
    /// See [`Broken`].
    Broken,
}

/// Why no message was received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReceiveError {
    /// There is none.
    Empty,
    /// It has more bytes than the buffer: this many. It is still in the ring.
    TooLong(usize),
    /// See [`Broken`].
    Broken,
}

/// The memory of a ring.
#[derive(Clone, Copy, Debug)]
struct Memory<'a> {
    written: &'a AtomicU32,
    taken: &'a AtomicU32,
    places: &'a [AtomicU32],
}

impl<'a> Memory<'a> {
    /// Returns the ring in these words: as many places as are a power of two. `None` if there are too few.
    fn new(words: &'a [AtomicU32]) -> Option<Self> {
        let places = words.get(HEAD_WORDS..)?;
        let count = match places.len().min(MAX_PLACES) {
            0 => 0,
            room => 1 << room.ilog2(),
        };
        if count < MIN_PLACES {
            return None;
        }
        Some(Self {
            written: words.get(WRITTEN)?,
            taken: words.get(TAKEN)?,
            places: places.get(..count)?,
        })
    }

    /// Returns the number of places.
    fn count(&self) -> u32 {
        self.places.len() as u32
    }

    /// Returns the place with this index.
    fn place(&self, index: u32) -> Option<&'a AtomicU32> {
        self.places
            .get(index as usize & self.places.len().wrapping_sub(1))
    }

    /// Returns the words between two indices, if a ring can have so many.
    fn distance(&self, written: u32, taken: u32) -> Option<u32> {
        let words = written.wrapping_sub(taken);
        (words <= self.count()).then_some(words)
    }
}

/// Returns the words that the bytes of a message fill.
const fn words_of(length: usize) -> usize {
    length.div_ceil(4)
}

/// The side that sends.
#[derive(Debug)]
pub struct Producer<'a> {
    memory: Memory<'a>,
    written: u32,
    is_broken: bool,
}

impl<'a> Producer<'a> {
    /// Takes the place of the producer, in new memory or where an earlier life of this side left off. If the
    /// indices there are impossible, it goes on where the consumer is. `None` if there are too few words.
    #[must_use]
    pub fn attach(words: &'a [AtomicU32]) -> Option<Self> {
        let memory = Memory::new(words)?;
        let (written, taken) = (
            memory.written.load(Ordering::Relaxed),
            memory.taken.load(Ordering::Acquire),
        );
        let written = if memory.distance(written, taken).is_some() {
            written
        } else {
            memory.written.store(taken, Ordering::Release);
            taken
        };
        Some(Self {
            memory,
            written,
            is_broken: false,
        })
    }

    /// Returns the bytes of the longest message.
    #[must_use]
    pub fn longest(&self) -> usize {
        (self.memory.places.len().saturating_sub(1)).saturating_mul(4)
    }

    /// Sends a message. It is then in the ring, whole.
    ///
    /// # Errors
    /// [`SendError`]; nothing was sent.
    pub fn send(&mut self, message: &[u8]) -> Result<(), SendError> {
        if self.is_broken {
            return Err(SendError::Broken);
        }
        if message.len() > self.longest() {
            return Err(SendError::TooLong);
        }
        let taken = self.memory.taken.load(Ordering::Acquire);
        let Some(used) = self.memory.distance(self.written, taken) else {
            self.is_broken = true;
            return Err(SendError::Broken);
        };
        let needed = words_of(message.len()).saturating_add(1) as u32;
        if needed > self.memory.count().saturating_sub(used) {
            return Err(SendError::Full);
        }
        let mut next = self.written;
        self.put(&mut next, message.len() as u32);
        for bytes in message.chunks(4) {
            let mut word = [0; 4];
            for (to, from) in word.iter_mut().zip(bytes) {
                *to = *from;
            }
            self.put(&mut next, u32::from_le_bytes(word));
        }
        self.written = next;
        self.memory.written.store(next, Ordering::Release);
        Ok(())
    }

    fn put(&self, next: &mut u32, word: u32) {
        if let Some(place) = self.memory.place(*next) {
            place.store(word, Ordering::Relaxed);
        }
        *next = next.wrapping_add(1);
    }
}

/// The side that receives.
#[derive(Debug)]
pub struct Consumer<'a> {
    memory: Memory<'a>,
    taken: u32,
    is_broken: bool,
}

impl<'a> Consumer<'a> {
    /// Takes the place of the consumer, in new memory or where an earlier life of this side left off. If the
    /// indices there are impossible, it skips what is there. `None` if there are too few words.
    #[must_use]
    pub fn attach(words: &'a [AtomicU32]) -> Option<Self> {
        let memory = Memory::new(words)?;
        let (written, taken) = (
            memory.written.load(Ordering::Acquire),
            memory.taken.load(Ordering::Relaxed),
        );
        let taken = if memory.distance(written, taken).is_some() {
            taken
        } else {
            memory.taken.store(written, Ordering::Release);
            written
        };
        Some(Self {
            memory,
            taken,
            is_broken: false,
        })
    }

    /// Takes the oldest message into `buffer`. Returns the number of its bytes.
    ///
    /// # Errors
    /// [`ReceiveError`]; nothing was taken.
    pub fn receive(&mut self, buffer: &mut [u8]) -> Result<usize, ReceiveError> {
        if self.is_broken {
            return Err(ReceiveError::Broken);
        }
        let written = self.memory.written.load(Ordering::Acquire);
        let waiting = match self.memory.distance(written, self.taken) {
            Some(0) => return Err(ReceiveError::Empty),
            Some(waiting) => waiting,
            None => return Err(self.broken()),
        };
        let mut next = self.taken;
        let length = self.get(&mut next) as usize;
        if words_of(length) >= waiting as usize {
            return Err(self.broken());
        }
        let Some(buffer) = buffer.get_mut(..length) else {
            return Err(ReceiveError::TooLong(length));
        };
        for bytes in buffer.chunks_mut(4) {
            let word = self.get(&mut next).to_le_bytes();
            for (to, from) in bytes.iter_mut().zip(word) {
                *to = from;
            }
        }
        self.taken = next;
        self.memory.taken.store(next, Ordering::Release);
        Ok(length)
    }

    fn broken(&mut self) -> ReceiveError {
        self.is_broken = true;
        ReceiveError::Broken
    }

    fn get(&self, next: &mut u32) -> u32 {
        let place = self.memory.place(*next);
        *next = next.wrapping_add(1);
        place.map_or(0, |place| place.load(Ordering::Relaxed))
    }
}
