// SPDX-License-Identifier: Apache-2.0
//! The interface of a back end: everything that is different between a disk and a console.

use crate::broken::Broken;
use crate::chain::Chain;
use crate::memory::Memory;

/// A device with its window and its queues.
pub trait Device {
    /// The kind of the device (Virtio 1.2, section 5).
    const KIND: u32;

    /// Returns the features of its own that the device offers.
    fn features(&self) -> u64;

    /// Takes the features that are agreed on.
    fn agree(&mut self, _features: u64) {}

    /// Returns the configuration from `offset` on. Bytes after its end are 0.
    fn configuration(&self, offset: u32, into: &mut [u8]);

    /// Tells whether the device can serve a chain of this queue now. A device that has nothing to say takes
    /// no buffer to say it in.
    fn is_ready(&self, _queue: u16) -> bool {
        true
    }

    /// Serves a chain. Returns the number of bytes it has written, from the first writable one on.
    ///
    /// # Errors
    /// [`Broken`] if the driver has broken a rule.
    fn serve(&mut self, queue: u16, chain: &Chain, memory: &mut impl Memory) -> Result<u32, Broken>;

    /// Forgets what the driver has done.
    fn reset(&mut self) {}
}

/// Fills `into` with the part of a configuration from `offset` on.
pub(crate) fn part(configuration: &[u8], offset: u32, into: &mut [u8]) {
    into.fill(0);
    let rest = configuration.get(offset as usize..).unwrap_or(&[]);
    for (to, from) in into.iter_mut().zip(rest) {
        *to = *from;
    }
}
