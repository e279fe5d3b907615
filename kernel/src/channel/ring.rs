// SPDX-License-Identifier: Apache-2.0
//! Channels: the doorbell, and where a partition sees the memory.
//!
//! A channel has no state in the kernel. Its memory is part of the spaces of its sides from boot on, so no
//! side makes a call to read or to write. The doorbell makes the agreed line of a VM pending, or raises the
//! agreed event at the gate. Both are one bit: rings that come before the other side looks are one ring. So a
//! side that rings all the time costs the others no more than one interrupt at a time, which they mask and
//! end as any other.

use crate::channel::MAY_WRITE;
use crate::channel::command::{ChannelCommand, ChannelId};
use crate::dispatch::Pcpu;
use crate::mailbox::bit;
use crate::parts::{PartOf, each_part};
use bulkhead_abi::Error;
use bulkhead_arch_api::{Arch, Drivers, PartitionId, VirtualLine};
use bulkhead_image::layout::{NONE, SIDE_FUNCTION, SIDE_WRITES, SideRecord};
use bulkhead_sched::PcpuPolicy;

/// The channels, on a pCPU.
pub(crate) struct Ringing<'p, 's, 'i, A: Arch, D, P> {
    pub(super) pcpu: &'p mut Pcpu<'s, 'i, A, D, P>,
}

impl<'s, 'i, A: Arch, D: Drivers, P: PcpuPolicy> Pcpu<'s, 'i, A, D, P> {
    /// Returns the part with its pCPU.
    #[inline(always)]
    pub(crate) const fn channels(&mut self) -> Ringing<'_, 's, 'i, A, D, P> {
        Ringing { pcpu: self }
    }
}

impl<A: Arch, D: Drivers, P: PcpuPolicy> Ringing<'_, '_, '_, A, D, P> {
    /// Carries out a hypercall about a channel.
    #[inline(never)]
    pub(crate) fn call_at_channel(
        &mut self,
        caller: PartitionId,
        channel: ChannelId,
        command: ChannelCommand,
    ) -> Result<[u64; 4], Error> {
        match command {
            ChannelCommand::Place => self.place_of_channel(caller, channel),
            ChannelCommand::Doorbell(sides) => {
                self.ring(caller, channel, sides);
                Ok([0; 4])
            }
        }
    }

    /// Rings at the sides in this bitmap, at all if it is empty, and never at the caller's own. The work is
    /// bounded by the number of sides.
    pub(crate) fn ring(&mut self, caller: PartitionId, channel: ChannelId, wanted: u64) {
        let sides = self.pcpu.system.image.sides_of(channel.0.into());
        for (side, number) in sides.iter().zip(0_u8..) {
            let partition = PartitionId(side.partition.get() as u8);
            let is_wanted = wanted == 0 || wanted as u32 & bit(number) != 0;
            if partition != caller && is_wanted {
                self.ring_at(partition, channel, side);
            }
        }
    }

    fn ring_at(&mut self, partition: PartitionId, channel: ChannelId, side: &SideRecord) {
        let mut has_rung = false;
        if side.flags.get() & SIDE_FUNCTION != 0 {
            each_part!(self.pcpu, part => has_rung = has_rung || part.rings(partition, channel));
        }
        if !has_rung && side.virtual_line.get() != NONE {
            let due = self
                .pcpu
                .machine
                .pulse(partition, VirtualLine(side.virtual_line.get()));
            self.pcpu.wake_all(due);
        }
        if side.event.get() != NONE {
            self.pcpu.raise(partition, 1_u64.wrapping_shl(side.event.get()));
        }
    }

    /// Returns the results of `ChannelPlace`.
    pub(crate) fn place_of_channel(
        &self,
        caller: PartitionId,
        channel: ChannelId,
    ) -> Result<[u64; 4], Error> {
        let image = &self.pcpu.system.image;
        let sides = image.sides_of(channel.0.into());
        let mut numbered = sides.iter().zip(0_u64..);
        let own = numbered.find(|(side, _)| side.partition.get() == u32::from(caller.0));
        let (side, number) = own.ok_or(Error::WrongState)?;
        let record = image.channels().get(usize::from(channel.0));
        let size = record.map_or(0, |record| record.size.get());
        let writes = if side.flags.get() & SIDE_WRITES != 0 {
            MAY_WRITE
        } else {
            0
        };
        let shape = number | (sides.len() as u64).wrapping_shl(8) | writes;
        Ok([side.guest.get(), size, shape, 0])
    }
}
