// SPDX-License-Identifier: Apache-2.0
//! A queue, split or packed.

use crate::broken::Broken;
use crate::chain::Chain;
use crate::memory::Memory;
use crate::numbers::{FEATURE_EVENT_INDEX, FEATURE_PACKED};
use crate::packed::Packed;
use crate::split::Split;
use bulkhead_devices::virtio_mmio::QueuePlace;

/// The device's side of a queue.
#[derive(Clone, Debug)]
pub enum Queue {
    /// A split queue.
    Split(Split),
    /// A packed queue.
    Packed(Packed),
}

impl Queue {
    /// Makes the queue at a place that the window has checked, for the features agreed on.
    #[must_use]
    pub const fn new(place: QueuePlace, features: u64) -> Self {
        let has_event_index = features & FEATURE_EVENT_INDEX != 0;
        if features & FEATURE_PACKED != 0 {
            Self::Packed(Packed::new(place, has_event_index))
        } else {
            Self::Split(Split::new(place, has_event_index))
        }
    }

    /// Takes the next chain. `None`: the driver has made no other one available.
    ///
    /// # Errors
    /// [`Broken`].
    pub fn take(&mut self, memory: &mut impl Memory) -> Result<Option<Chain>, Broken> {
        match self {
            Self::Split(queue) => queue.take(memory),
            Self::Packed(queue) => queue.take(memory),
        }
    }

    /// Gives a chain back, with `written` bytes in it.
    ///
    /// # Errors
    /// [`Broken`].
    pub fn give_back(&mut self, memory: &mut impl Memory, chain: &Chain, written: u32) -> Result<(), Broken> {
        match self {
            Self::Split(queue) => queue.give_back(memory, chain, written),
            Self::Packed(queue) => queue.give_back(memory, chain, written),
        }
    }

    /// Asks the driver to notify the device of the next chain. Returns whether there is one already.
    ///
    /// # Errors
    /// [`Broken`].
    pub fn listen(&mut self, memory: &mut impl Memory) -> Result<bool, Broken> {
        match self {
            Self::Split(queue) => queue.listen(memory),
            Self::Packed(queue) => queue.listen(memory),
        }
    }

    /// Tells whether the driver wants an interrupt for what was given back since the last call.
    ///
    /// # Errors
    /// [`Broken`].
    pub fn wants_interrupt(&mut self, memory: &mut impl Memory) -> Result<bool, Broken> {
        match self {
            Self::Split(queue) => queue.wants_interrupt(memory),
            Self::Packed(queue) => queue.wants_interrupt(memory),
        }
    }
}
