// SPDX-License-Identifier: Apache-2.0
//! Holds: memory of a channel that a side sees only while the side holds a capability for the channel.
//!
//! **Model.** The manifest gives such a side a window: an address, and the most that the side may do
//! there. At first nothing is mapped in the window. A hold maps the memory there, with the rights of one
//! capability that the holder names. The hold stands as long as that slot has that capability. So the
//! partition that takes the capability away takes the memory away, too. A side has one hold at most.
//!
//! **Order.** A hold looks at its slot under the lock of the holds. A revocation empties slots first, and
//! then looks for holds without their capabilities under the same lock. So no hold is left that a revocation
//! should have found, on any pCPU.
//!
//! **Work bounds.** A hold or its end changes the pages of one window, at most
//! [`MAX_HELD`](bulkhead_image::MAX_HELD) bytes. A look for holds without their capabilities is a step for
//! each side, and ends one hold at most.

use crate::cap::Capability;
use crate::lent::counted::Counted;
use crate::parts::{Part, entries};

/// Entries of the table: the sides of all channels.
const SIDES: usize = entries(Part::Lent, bulkhead_image::MAX_SIDES);

/// The reason why a window is mapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hold {
    /// The slot of the holder.
    pub index: u8,
    /// The capability that was in the slot.
    pub capability: Capability,
}

/// All holds, by the number of the side in the system image. A change takes no other lock but the backend's
/// own.
pub type Holds<R> = Counted<Hold, SIDES, R>;
