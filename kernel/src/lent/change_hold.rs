// SPDX-License-Identifier: Apache-2.0
//! Carries out holds of channels ([`crate::lent::hold`]).

use crate::channel::command::ChannelId;
use crate::dispatch::Pcpu;
use crate::lent::hold::Hold;
use crate::parts::{LENT, PartOf, Rest};
use bulkhead_abi::{Error, ObjectKind, Rights};
use bulkhead_arch_api::{Arch, Drivers, GuestPhys, Line, PartitionId, Permissions};
use bulkhead_image::layout::{SIDE_HELD, SIDE_WRITES, SideRecord};
use bulkhead_sched::PcpuPolicy;

type Answer = Result<[u64; 4], Error>;

const NOTHING: Permissions = Permissions {
    read: false,
    write: false,
    execute: false,
};

/// The holds and the lines that are lent, on a pCPU.
pub(crate) struct Lending<'p, 's, 'i, A: Arch, D, P> {
    pub(super) pcpu: &'p mut Pcpu<'s, 'i, A, D, P>,
}

impl<'s, 'i, A: Arch, D: Drivers, P: PcpuPolicy> Pcpu<'s, 'i, A, D, P> {
    /// Returns the part with its pCPU.
    #[inline(always)]
    pub(crate) const fn lent(&mut self) -> Lending<'_, 's, 'i, A, D, P> {
        Lending { pcpu: self }
    }
}

impl<'i, A: Arch, D: Drivers, P: PcpuPolicy> Lending<'_, '_, 'i, A, D, P> {
    /// Maps the window of the caller's side with the rights of the capability in a slot, or ends the hold of
    /// the side if no slot is given.
    #[inline(never)]
    pub(crate) fn change_hold(
        &mut self,
        caller: PartitionId,
        channel: ChannelId,
        index: Option<u8>,
    ) -> Answer {
        let (number, side) = self.window(caller, channel).ok_or(Error::WrongState)?;
        let mut answer = self.pcpu.channels().place_of_channel(caller, channel)?;
        let shared = self.pcpu.shared;
        shared.holds.change(|table| {
            let entry = table.get_mut(number).ok_or(Error::WrongState)?;
            if entry.is_some() != index.is_none() {
                return Err(Error::WrongState);
            }
            let mut permissions = NOTHING;
            let mut hold = None;
            if let Some(index) = index {
                let capability = shared.capabilities.peek(caller, index.into())?;
                let is_memory = matches!(capability.kind, ObjectKind::Channel | ObjectKind::Device);
                if !is_memory || capability.object != channel.0 {
                    return Err(Error::WrongState);
                }
                permissions.read = true;
                permissions.write =
                    side.flags.get() & SIDE_WRITES != 0 && capability.rights.contains(Rights::WRITE);
                hold = Some(Hold { index, capability });
            }
            self.protect_window(side, permissions);
            *entry = hold;
            if !permissions.write
                && let [_, _, shape, _] = &mut answer
            {
                *shape &= !crate::channel::MAY_WRITE;
            }
            Ok(answer)
        })
    }

    /// Ends one hold that lacks its capability, or that belongs to this partition, which is about to be
    /// loaded, or the binding of a line likewise. Returns true if there is none. No CPU can use the memory of
    /// a hold that has ended.
    #[inline]
    fn are_holds_right(&mut self, loaded: Option<PartitionId>) -> bool {
        (self.pcpu.shared.holds.is_empty() || !self.end_wrong_hold(loaded)) && self.are_lines_right(loaded)
    }

    #[inline(never)]
    fn end_wrong_hold(&mut self, loaded: Option<PartitionId>) -> bool {
        let (system, shared) = (self.pcpu.system, self.pcpu.shared);
        shared.holds.change(|table| {
            let mut all = system.image.sides().iter().zip(table);
            let wrong = all.find(|(side, entry)| {
                let holder = PartitionId(side.partition.get() as u8);
                entry.is_some_and(|hold| {
                    let now = shared.capabilities.peek(holder, hold.index.into());
                    loaded == Some(holder) || now != Ok(hold.capability)
                })
            });
            let Some((side, entry)) = wrong else {
                return false;
            };
            self.protect_window(side, NOTHING);
            *entry = None;
            true
        })
    }

    /// Tells whether a stretch of memory, which the partition may access now, touches a window of this kind.
    /// Nothing that comes later may be stored there, because the memory may be taken away until then.
    #[inline]
    fn can_be_taken(&self, partition: PartitionId, guest: GuestPhys, length: u64) -> bool {
        !self.pcpu.shared.holds.is_empty() && self.touches_window(partition, guest, length)
    }

    #[inline(never)]
    fn touches_window(&self, partition: PartitionId, GuestPhys(guest): GuestPhys, length: u64) -> bool {
        let image = &self.pcpu.system.image;
        image.sides().iter().any(|side| {
            let channel = image.channels().get(side.channel.get() as usize);
            let (first, size) = (side.guest.get(), channel.map_or(0, |channel| channel.size.get()));
            side.flags.get() & SIDE_HELD != 0
                && side.partition.get() == u32::from(partition.0)
                && guest < first.saturating_add(size)
                && first < guest.saturating_add(length)
        })
    }

    /// Returns the number and the record of the caller's side, if it is one that is mapped while it is held.
    fn window(&self, caller: PartitionId, channel: ChannelId) -> Option<(usize, &'i SideRecord)> {
        let image = &self.pcpu.system.image;
        let first = image.channels().get(usize::from(channel.0))?.first_side.get() as usize;
        let mut sides = (first..).zip(image.sides_of(channel.0.into()));
        sides.find(|(_, side)| {
            side.partition.get() == u32::from(caller.0) && side.flags.get() & SIDE_HELD != 0
        })
    }

    fn protect_window(&mut self, side: &SideRecord, permissions: Permissions) {
        let channel = self.pcpu.system.image.channels().get(side.channel.get() as usize);
        let size = channel.map_or(0, |channel| channel.size.get());
        let partition = PartitionId(side.partition.get() as u8);
        self.pcpu
            .machine
            .protect(partition, GuestPhys(side.guest.get()), size, permissions);
    }
}

impl<A: Arch, D: Drivers, P: PcpuPolicy> PartOf for Lending<'_, '_, '_, A, D, P> {
    const IS_THERE: bool = LENT;

    #[inline(always)]
    fn ends_one_hold(&mut self, loaded: Option<PartitionId>) -> bool {
        !self.are_holds_right(loaded)
    }

    #[inline(always)]
    fn may_take(&mut self, partition: PartitionId, guest: GuestPhys, length: u64) -> bool {
        self.can_be_taken(partition, guest, length)
    }

    #[inline(always)]
    fn take_interrupt(&mut self, line: Line) -> Rest {
        if self.take_line(line) {
            Rest::Masked
        } else {
            Rest::Others
        }
    }
}
