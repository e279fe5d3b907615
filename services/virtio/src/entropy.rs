// SPDX-License-Identifier: Apache-2.0
//! A source of entropy (Virtio 1.2, section 5.4): one queue of buffers that the device fills.

use crate::broken::Broken;
use crate::chain::Chain;
use crate::device::Device;
use crate::memory::Memory;
use crate::numbers::DEVICE_ENTROPY;

/// Bytes that one buffer gets at most. A driver that wants more asks again.
const MOST: u32 = 256;
const PIECE: usize = 32;

/// A source of unpredictable bytes.
pub trait Source {
    /// Fills the bytes.
    fn fill(&mut self, bytes: &mut [u8]);
}

/// A device over a source.
#[derive(Clone, Debug)]
pub struct Entropy<S> {
    source: S,
}

impl<S: Source> Entropy<S> {
    /// Makes the device.
    pub const fn new(source: S) -> Self {
        Self { source }
    }
}

impl<S: Source> Device for Entropy<S> {
    const KIND: u32 = DEVICE_ENTROPY;

    fn features(&self) -> u64 {
        0
    }

    fn configuration(&self, _offset: u32, into: &mut [u8]) {
        into.fill(0);
    }

    fn serve(&mut self, _queue: u16, chain: &Chain, memory: &mut impl Memory) -> Result<u32, Broken> {
        // Section 5.4.6: each buffer is for the device to write.
        if chain.readable() != 0 {
            return Err(Broken::Request);
        }
        let length = chain.writable().min(MOST);
        for at in (0..length).step_by(PIECE) {
            let mut bytes = [0; PIECE];
            let (now, _) = bytes.split_at_mut(PIECE.min(length.saturating_sub(at) as usize));
            self.source.fill(now);
            chain.write(memory, at, now)?;
        }
        Ok(length)
    }
}
