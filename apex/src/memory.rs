// SPDX-License-Identifier: Apache-2.0
//! The memory for messages: given out once, during initialisation, and never taken back.

use crate::limits::POOL;
use crate::types::{Answer, ReturnCode};

/// Bytes before a message in a queue: its length.
const HEAD: usize = 2;

/// The memory of all queues and blackboards of a partition.
#[derive(Debug)]
pub(crate) struct Pool {
    bytes: [u8; POOL],
    used: usize,
}

/// A queue of messages in the pool.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Queue {
    first: usize,
    size: usize,
    depth: usize,
    head: usize,
    pub(crate) count: usize,
}

impl Pool {
    pub(crate) const fn new() -> Self {
        Self {
            bytes: [0; POOL],
            used: 0,
        }
    }

    /// Makes an empty queue.
    pub(crate) fn queue(&mut self, size: usize, depth: usize) -> Answer<Queue> {
        let bytes = (size + HEAD)
            .checked_mul(depth)
            .ok_or(ReturnCode::InvalidConfig)?;
        if bytes > POOL - self.used {
            return Err(ReturnCode::InvalidConfig);
        }
        let first = self.used;
        self.used += bytes;
        Ok(Queue {
            first,
            size,
            depth,
            head: 0,
            count: 0,
        })
    }

    fn entry(&mut self, queue: &Queue, position: usize) -> (&mut [u8], &mut [u8]) {
        let length = queue.size + HEAD;
        let at = queue.first + position % queue.depth.max(1) * length;
        let entry = self.bytes.get_mut(at..at + length).unwrap_or(&mut []);
        entry.split_at_mut_checked(HEAD).unwrap_or((&mut [], &mut []))
    }

    /// Appends a message. Returns false if there is no room.
    pub(crate) fn push(&mut self, queue: &mut Queue, message: &[u8]) -> bool {
        if queue.is_full() || message.len() > queue.size {
            return false;
        }
        let (head, body) = self.entry(queue, queue.head + queue.count);
        head.copy_from_slice(&(message.len() as u16).to_ne_bytes());
        body[..message.len()].copy_from_slice(message);
        queue.count += 1;
        true
    }

    /// Copies the oldest message into `to` and leaves it in the queue. Returns its length.
    pub(crate) fn peek(&mut self, queue: &Queue, to: &mut [u8]) -> Option<usize> {
        if queue.count == 0 {
            return None;
        }
        let (head, body) = self.entry(queue, queue.head);
        let length = usize::from(u16::from_ne_bytes(*head.first_chunk()?));
        let length = length.min(to.len());
        to[..length].copy_from_slice(body.get(..length)?);
        Some(length)
    }

    /// Moves the oldest message into `to`. Returns its length.
    pub(crate) fn pop(&mut self, queue: &mut Queue, to: &mut [u8]) -> Option<usize> {
        let length = self.peek(queue, to)?;
        queue.head = (queue.head + 1) % queue.depth.max(1);
        queue.count -= 1;
        Some(length)
    }
}

impl Queue {
    pub(crate) const fn is_full(&self) -> bool {
        self.count >= self.depth
    }

    pub(crate) const fn size(&self) -> usize {
        self.size
    }

    pub(crate) const fn depth(&self) -> usize {
        self.depth
    }

    pub(crate) const fn clear(&mut self) {
        self.count = 0;
    }
}
