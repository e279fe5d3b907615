// SPDX-License-Identifier: Apache-2.0
//! Received bytes that the guest has not read: the receive FIFO and the backlog after it.

use bulkhead_abi::size::limit;

/// Bytes that can wait.
pub(crate) const CAPACITY: usize = limit(32, 256);

/// A ring of bytes.
#[derive(Clone, Debug)]
pub(crate) struct Receiver {
    bytes: [u8; CAPACITY],
    head: usize,
    length: usize,
}

impl Default for Receiver {
    fn default() -> Self {
        Self::new()
    }
}

impl Receiver {
    pub(crate) const fn new() -> Self {
        Self {
            bytes: [0; CAPACITY],
            head: 0,
            length: 0,
        }
    }

    /// Returns the number of bytes that wait.
    pub(crate) const fn length(&self) -> usize {
        self.length
    }

    /// Adds a byte; false if there is no place.
    #[expect(clippy::indexing_slicing, reason = "an index modulo the length is in bounds")]
    pub(crate) const fn push(&mut self, byte: u8) -> bool {
        if self.length == CAPACITY {
            return false;
        }
        self.bytes[self.head.wrapping_add(self.length) % CAPACITY] = byte;
        self.length = self.length.wrapping_add(1);
        true
    }

    /// Takes the oldest byte.
    #[expect(clippy::indexing_slicing, reason = "an index modulo the length is in bounds")]
    pub(crate) const fn pop(&mut self) -> Option<u8> {
        if self.length == 0 {
            return None;
        }
        let byte = self.bytes[self.head % CAPACITY];
        self.head = self.head.wrapping_add(1) % CAPACITY;
        self.length = self.length.wrapping_sub(1);
        Some(byte)
    }
}
