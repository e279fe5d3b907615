// SPDX-License-Identifier: Apache-2.0
//! A console with one port (Virtio 1.2, section 5.3): a queue for input, a queue for output, and the size of
//! the terminal.

use crate::broken::Broken;
use crate::chain::Chain;
use crate::device::{Device, part};
use crate::memory::Memory;
use crate::numbers::DEVICE_CONSOLE;

/// The queue of buffers for input.
pub const RECEIVE: u16 = 0;
/// The queue of output.
pub const TRANSMIT: u16 = 1;

/// Feature: the configuration has the size of the terminal.
const FEATURE_SIZE: u64 = virtio::console::F::SIZE.bits().to_ne() as u64;
const PIECE: usize = 64;
/// Bytes that one buffer prints at most, so that no driver holds the device. Linux' buffers are shorter.
const MOST: u32 = 4096;
/// Bytes of input that wait for the driver.
const BACKLOG: usize = 256;

/// The other end of a console.
pub trait Terminal {
    /// Takes output.
    fn print(&mut self, bytes: &[u8]);
}

/// A console over a terminal.
#[derive(Clone, Debug)]
pub struct Console<T> {
    terminal: T,
    columns: u16,
    rows: u16,
    input: [u8; BACKLOG],
    /// The first byte of the input, and the number of bytes.
    first: usize,
    waiting: usize,
}

impl<T: Terminal> Console<T> {
    /// Makes the device for a terminal of this size.
    pub const fn new(terminal: T, columns: u16, rows: u16) -> Self {
        Self {
            terminal,
            columns,
            rows,
            input: [0; BACKLOG],
            first: 0,
            waiting: 0,
        }
    }

    /// Takes input for the driver. Returns whether there was room.
    pub fn receive(&mut self, byte: u8) -> bool {
        let at = self.first.wrapping_add(self.waiting) % BACKLOG;
        match self.input.get_mut(at).filter(|_| self.waiting < BACKLOG) {
            Some(place) => {
                *place = byte;
                self.waiting = self.waiting.saturating_add(1);
                true
            }
            None => false,
        }
    }

    /// Changes the size. The caller tells the window that the configuration has changed.
    pub const fn resize(&mut self, columns: u16, rows: u16) {
        (self.columns, self.rows) = (columns, rows);
    }

    fn print(&mut self, chain: &Chain, memory: &mut impl Memory) -> Result<u32, Broken> {
        let length = chain.readable().min(MOST);
        for at in (0..length).step_by(PIECE) {
            let mut bytes = [0; PIECE];
            let (now, _) = bytes.split_at_mut(PIECE.min(length.saturating_sub(at) as usize));
            chain.read(memory, at, now)?;
            self.terminal.print(now);
        }
        Ok(0)
    }

    fn hand_over(&mut self, chain: &Chain, memory: &mut impl Memory) -> Result<u32, Broken> {
        let length = chain.writable().min(self.waiting as u32);
        for at in 0..length {
            let byte = self.input.get(self.first).copied().unwrap_or(0);
            chain.write(memory, at, &[byte])?;
            self.first = self.first.wrapping_add(1) % BACKLOG;
            self.waiting = self.waiting.saturating_sub(1);
        }
        Ok(length)
    }
}

impl<T: Terminal> Device for Console<T> {
    const KIND: u32 = DEVICE_CONSOLE;

    fn features(&self) -> u64 {
        FEATURE_SIZE
    }

    fn configuration(&self, offset: u32, into: &mut [u8]) {
        let ([c0, c1], [r0, r1]) = (self.columns.to_le_bytes(), self.rows.to_le_bytes());
        part(&[c0, c1, r0, r1, 1, 0, 0, 0], offset, into);
    }

    fn is_ready(&self, queue: u16) -> bool {
        queue != RECEIVE || self.waiting != 0
    }

    fn serve(&mut self, queue: u16, chain: &Chain, memory: &mut impl Memory) -> Result<u32, Broken> {
        if queue == RECEIVE {
            self.hand_over(chain, memory)
        } else {
            self.print(chain, memory)
        }
    }

    fn reset(&mut self) {
        (self.first, self.waiting) = (0, 0);
    }
}
