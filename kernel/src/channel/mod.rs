// SPDX-License-Identifier: Apache-2.0
//! Bells: channels whose doorbell is one interrupt line of one VM.
//!
//! Most channels have two sides that are VMs with a line each. Such a doorbell needs no look at the records
//! of the image. All other channels have no bell, and their doorbells go the long way
//! ([`crate::dispatch`]).

pub(crate) mod command;
mod ring;

use crate::channel::command::ChannelId;
use crate::parts::{Part, entries};
use crate::table::Table;
use bulkhead_abi::size::limit;
use bulkhead_arch_api::{PartitionId, VirtualLine};
use bulkhead_image::MAX_CHANNELS;
use bulkhead_image::layout::{NONE, SIDE_FUNCTION, SideRecord};

/// The bit in the third result of `ChannelPlace`: the caller may write the memory.
pub(crate) const MAY_WRITE: u64 = 1 << 16;

/// Entries of the table of bells. A class with small tables answers no call the short way.
const BELLS: usize = entries(Part::Channels, limit(1, MAX_CHANNELS));

/// One side of a bell: a VM, and its line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Side {
    partition: u8,
    line: u16,
}

/// The sides of a channel, in their order. Both are the same partition if the channel has no bell.
#[derive(Clone, Copy, Debug)]
pub struct Bell([Side; 2]);

/// The bells of all channels.
pub type Bells = Table<ChannelId, Bell, BELLS>;

impl Bell {
    /// No bell.
    pub const NONE: Self = Self(
        [Side {
            partition: 0,
            line: 0,
        }; 2],
    );

    /// No bells.
    pub const NOWHERE: Bells = Table::new([Self::NONE; BELLS]);

    /// Returns the bell of a channel with these sides.
    #[must_use]
    pub fn of(sides: &[SideRecord]) -> Self {
        let [first, second] = sides else { return Self::NONE };
        match (side(first), side(second)) {
            (Some(first), Some(second)) => Self([first, second]),
            _ => Self::NONE,
        }
    }

    /// Returns the one who is rung at when `caller` rings at the sides in the bitmap `wanted`, or at all if
    /// it is empty, and the line. Returns `None` if that is not exactly one.
    #[inline(always)]
    #[must_use]
    pub fn other(&self, caller: PartitionId, wanted: u64) -> Option<(PartitionId, VirtualLine)> {
        let Self([first, second]) = *self;
        let (other, mask) = if first.partition == caller.0 {
            (second, 2)
        } else {
            (first, 1)
        };
        let is_bell = first.partition != second.partition;
        let is_rung = is_bell && (wanted == 0 || wanted & mask != 0);
        is_rung.then_some((PartitionId(other.partition), VirtualLine(other.line.into())))
    }
}

fn side(record: &SideRecord) -> Option<Side> {
    if record.flags.get() & SIDE_FUNCTION != 0 || record.event.get() != NONE {
        return None;
    }
    Some(Side {
        partition: record.partition.get() as u8,
        line: u16::try_from(record.virtual_line.get()).ok()?,
    })
}
