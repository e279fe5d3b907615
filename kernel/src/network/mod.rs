// SPDX-License-Identifier: Apache-2.0
//! Interfaces of VMs to networks, as the switch knows them.
//!
//! A network connects VMs with each other. Network 0 connects them with the board's own interface, too. The
//! manifest says which address is where. The switch learns nothing, so nothing that a guest sends changes
//! where the frames of others go. Frames wait in memory that the system image sets aside for their receiver.
//! A receiver that does not take its frames loses its own frames, and no frames of others.

mod switch;

use crate::parts::{FRAME_RING, Part, entries};
use crate::table::{Id, Table};
use crate::time::Timebase;
use bulkhead_arch_api::{FrameWords, HostPhys, PartitionId, Stored, Ticks, VirtualDevice, Window};
use bulkhead_devices::nic::{Adapter, FrameMemory, is_counter};
use bulkhead_image::layout::{BoardRecord, NIC_FRAME_RING, NicRecord};
use spin::RelaxStrategy;
use spin::mutex::TicketMutex;

/// The number of an interface, which is the number of its record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NicId(pub u8);

impl Id for NicId {
    fn index(self) -> usize {
        usize::from(self.0)
    }
}

/// Entries of a table of interfaces.
pub(crate) const NIC_ENTRIES: usize = entries(Part::Networks, bulkhead_image::MAX_NICS);

/// One entry per interface.
pub(crate) type PerNic<T> = Table<NicId, T, NIC_ENTRIES>;

/// The network that the board's interface is on.
pub(crate) const OUTSIDE: u8 = 0;

/// A MAC address.
pub(crate) type Address = [u8; 6];

/// The facts that the manifest states about an interface.
#[derive(Clone, Copy, Debug)]
pub struct NicFacts {
    /// The partition that owns the interface.
    pub partition: PartitionId,
    /// The network of the interface.
    pub network: u8,
    /// True if the partition sees the memory.
    pub is_seen: bool,
    /// The address of the interface on its network.
    pub address: Address,
    /// The memory for the frames of the interface.
    pub memory: HostPhys,
    /// The registers of the interface, and its interrupt.
    pub device: VirtualDevice,
}

impl NicFacts {
    pub(crate) const NOTHING: Self = Self {
        partition: PartitionId(0),
        network: u8::MAX,
        is_seen: false,
        address: [0; 6],
        memory: HostPhys(0),
        device: VirtualDevice::NOTHING,
    };

    /// Makes the facts of an interface that has the registers of `device`.
    pub(crate) fn new(record: &NicRecord, device: VirtualDevice) -> Self {
        let [a0, a1, a2, a3, a4, a5, _, _] = record.address;
        let network = record.network.get();
        Self {
            partition: PartitionId(record.partition.get() as u8),
            network: network as u8,
            is_seen: FRAME_RING && network & NIC_FRAME_RING != 0,
            address: [a0, a1, a2, a3, a4, a5],
            memory: HostPhys(record.memory.get()),
            device,
        }
    }

    /// Returns the address at which the partition sees the memory, 0 if it does not.
    const fn seen_at(&self) -> u32 {
        if self.is_seen { self.memory.0 as u32 } else { 0 }
    }
}

/// The nanoseconds that an interrupt for a frame costs besides the measured time: the way out of a guest, the
/// decision which vCPU runs, and the way back. The number is an estimate, from traces of the boards that have
/// a network (docs/devices.md).
const BESIDES_NS: u64 = 2000;

/// The time that frames from outside take, their interrupts included: a budget in each period. A partition
/// that is on no network, or not on that one, loses no more than the budget by these frames.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Intake {
    budget: Ticks,
    period: Ticks,
    /// The time that a frame costs besides the measured time.
    besides: Ticks,
    /// The time at which the period began. The field `used` is the part of the period's budget that has been
    /// used.
    since: Ticks,
    used: u64,
    /// The time at which frames are taken again. `NEVER` if frames are taken now.
    pub due: Ticks,
}

impl Intake {
    /// An intake of any number of frames.
    pub(crate) const UNLIMITED: Self = Self::of(Ticks(0), Ticks(0), Ticks(0));

    /// Makes the intake that the manifest gives to frames from outside.
    pub(crate) fn given(board: &BoardRecord, time: &Timebase) -> Self {
        let microseconds = |value: u32| time.duration(u64::from(value).saturating_mul(1000));
        Self::of(
            microseconds(board.network_budget_us.get()),
            microseconds(board.network_period_us.get()),
            time.duration(BESIDES_NS),
        )
    }

    /// Makes an intake with a budget in each period. A budget of 0 means that there is no limit.
    const fn of(budget: Ticks, period: Ticks, besides: Ticks) -> Self {
        Self {
            budget,
            period,
            besides,
            since: Ticks(0),
            used: 0,
            due: Ticks::NEVER,
        }
    }

    /// Charges a frame that was taken from `began` to `ended`. Returns true if there is time for another
    /// frame. If there is no time, this sets `due`.
    pub(crate) fn charge(&mut self, began: Ticks, ended: Ticks) -> bool {
        if self.budget == Ticks(0) {
            return true;
        }
        if self.since.plus(self.period) <= began {
            (self.since, self.used) = (began, 0);
        }
        let took = ended.0.saturating_sub(began.0).saturating_add(self.besides.0);
        self.used = self.used.saturating_add(took);
        let has_more = self.used < self.budget.0;
        if !has_more {
            self.due = self.since.plus(self.period);
        }
        has_more
    }
}

/// An interface.
#[derive(Debug)]
pub(crate) struct Nic {
    /// The registers of the interface.
    pub device: Adapter,
    /// The number of frames that the partition wanted to send in vain: the address is not the interface's, or
    /// they are no frames.
    pub refused: u32,
}

impl Nic {
    /// An interface that no partition has yet.
    pub(crate) const NOTHING: Self = Self {
        device: Adapter::new([0; 6], 0),
        refused: 0,
    };

    /// Puts the interface into its state after a reset.
    pub(crate) const fn reset(&mut self, facts: &NicFacts) {
        self.device.reset(facts.address, facts.seen_at());
        self.refused = 0;
    }
}

/// The memory of an interface, as its device sees it.
pub(crate) struct Frames<'m, M> {
    /// All memory for frames.
    pub words: &'m mut M,
    /// The place where the memory of the interface begins.
    pub base: HostPhys,
}

/// Returns the address that is `index` words after `base`.
pub(crate) const fn word_at(base: HostPhys, index: u32) -> HostPhys {
    HostPhys(base.0.wrapping_add((index as u64) << 2))
}

impl<M: FrameWords> FrameMemory for Frames<'_, M> {
    #[inline]
    fn word(&mut self, index: u32) -> u32 {
        self.words.word(word_at(self.base, index))
    }

    #[inline]
    fn set_word(&mut self, index: u32, value: u32) {
        self.words.set_word(word_at(self.base, index), value);
    }
}

/// The registers of an interface, lent to the backend while the vCPU of the interface runs. A store that
/// completes a frame is an exit, because the switch deals with the frame.
pub(crate) struct NicWindow<'s, R> {
    pub nic: &'s TicketMutex<Nic, R>,
    pub memory: HostPhys,
}

impl<R: RelaxStrategy> Window for NicWindow<'_, R> {
    #[inline]
    fn load(&mut self, offset: u32, memory: &mut impl FrameWords) -> Option<u32> {
        let offset = u64::from(offset);
        // The counter belongs to the clock. No load changes the line.
        if is_counter(offset) {
            return None;
        }
        let mut memory = Frames {
            words: memory,
            base: self.memory,
        };
        Some(self.nic.lock().device.read(offset, 4, &mut memory))
    }

    #[inline]
    fn store(&mut self, offset: u32, value: u32, memory: &mut impl FrameWords) -> Stored {
        let offset = u64::from(offset);
        let mut nic = self.nic.lock();
        if nic.device.would_complete(offset) {
            return Stored::Exit;
        }
        let mut memory = Frames {
            words: memory,
            base: self.memory,
        };
        let before = nic.device.level();
        let _nothing = nic.device.write(offset, 4, value, &mut memory);
        let after = nic.device.level();
        if before == after {
            Stored::Done
        } else {
            Stored::Level(after)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_is_for_a_period_and_begins_anew_with_the_next() {
        let mut intake = Intake::of(Ticks(20), Ticks(100), Ticks(0));
        assert!(intake.charge(Ticks(1000), Ticks(1010)));
        assert_eq!(intake.due, Ticks::NEVER);
        assert!(!intake.charge(Ticks(1030), Ticks(1040)), "all of it");
        assert_eq!(intake.due, Ticks(1100));
        intake.due = Ticks::NEVER;
        assert!(intake.charge(Ticks(1100), Ticks(1119)));
        assert!(intake.charge(Ticks(1250), Ticks(1269)), "in another period");
    }

    #[test]
    fn an_interrupt_costs_its_frame_something_besides() {
        let mut intake = Intake::of(Ticks(20), Ticks(100), Ticks(5));
        assert!(intake.charge(Ticks(1000), Ticks(1010)));
        assert!(!intake.charge(Ticks(1030), Ticks(1031)), "10 + 5 and 1 + 5");
    }

    #[test]
    fn no_budget_is_no_limit() {
        let mut intake = Intake::UNLIMITED;
        assert!((0..1000).all(|time| intake.charge(Ticks(time), Ticks(time + 1))));
        assert_eq!(intake.due, Ticks::NEVER);
    }
}
