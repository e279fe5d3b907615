// SPDX-License-Identifier: Apache-2.0
//! The pace at which a pCPU carries out the stops that other pCPUs order.
//!
//! A stop interrupts the vCPU that runs, however important that vCPU is. A partition on another pCPU that may
//! `control` one here could order stops and restarts without end, and so take this pCPU from all others. So
//! one such stop is carried out at once, and the next one not before [`ORDER_SPACE_NS`] have passed.
//! Meanwhile the stops wait here, as one bit for each partition. A partition that waits for its stop is
//! ordered no second time, so each partition adds at most one signal to that. Stops that this pCPU orders
//! itself do not wait.
//!
//! The stops that wait take turns by the number of their partition, and a stop that is new waits until they
//! have had their turn. So the last of n stops is carried out n spaces after its order at most, even if other
//! partitions go on to order stops.

use crate::mailbox::{bit, bits};
use bulkhead_abi::hypercall::ORDER_SPACE_NS;
use bulkhead_arch_api::{PartitionId, Ticks};

use crate::time::Timebase;

/// The stops that wait, and the time of the next one.
#[derive(Debug)]
pub(crate) struct Orders {
    /// The partitions whose stop this pCPU has ordered itself.
    own: u32,
    /// The partitions whose stop waits.
    held: u32,
    /// The partition whose stop was carried out last, of those that another pCPU ordered.
    last: u8,
    /// The time before which the next stop that another pCPU orders waits.
    from: Ticks,
}

impl Orders {
    pub(crate) const NONE: Self = Self {
        own: 0,
        held: 0,
        last: 0,
        from: Ticks(0),
    };

    /// Notes that this pCPU orders the stop itself.
    pub(crate) const fn order_here(&mut self, partition: PartitionId) {
        self.own |= bit(partition.0);
    }

    /// Tells whether a stop that was ordered is carried out now. Otherwise the stop waits.
    pub(crate) fn admit(&mut self, partition: PartitionId, now: Ticks, time: &Timebase) -> bool {
        let stop = bit(partition.0);
        if self.own & stop != 0 {
            self.own &= !stop;
            return true;
        }
        if now < self.from || self.held != 0 {
            self.held |= stop;
            return false;
        }
        self.carry_out(partition, now, time);
        true
    }

    /// Returns the time at which a stop that waits is carried out. `NEVER` if none waits.
    pub(crate) const fn due(&self) -> Ticks {
        if self.held == 0 { Ticks::NEVER } else { self.from }
    }

    /// Takes a stop that has waited long enough.
    pub(crate) fn take(&mut self, now: Ticks, time: &Timebase) -> Option<PartitionId> {
        if self.due() > now {
            return None;
        }
        // Those above the last one have their turn first.
        let up_to_last = bit(self.last) | bit(self.last).wrapping_sub(1);
        let next = bits(self.held & !up_to_last).chain(bits(self.held)).next()?;
        self.held &= !bit(next);
        self.carry_out(PartitionId(next), now, time);
        Some(PartitionId(next))
    }

    fn carry_out(&mut self, partition: PartitionId, now: Ticks, time: &Timebase) {
        self.last = partition.0;
        self.from = now.plus(time.duration(ORDER_SPACE_NS));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPACE: Ticks = Ticks(ORDER_SPACE_NS);

    fn time() -> Timebase {
        Timebase::new(Ticks(0), 1_000_000_000)
    }

    #[test]
    fn the_first_stop_does_not_wait_and_the_others_follow_one_by_one() {
        let (mut orders, time) = (Orders::NONE, time());
        assert!(orders.admit(PartitionId(0), Ticks(5), &time));
        assert_eq!(orders.due(), Ticks::NEVER);
        assert!(!orders.admit(PartitionId(2), Ticks(6), &time));
        assert!(!orders.admit(PartitionId(1), Ticks(7), &time));
        let first = Ticks(5).plus(SPACE);
        assert_eq!(orders.due(), first);
        assert_eq!(orders.take(Ticks(first.0 - 1), &time), None);
        assert_eq!(orders.take(first, &time), Some(PartitionId(1)));
        assert_eq!(orders.take(first, &time), None);
        assert_eq!(orders.take(first.plus(SPACE), &time), Some(PartitionId(2)));
        assert_eq!(orders.due(), Ticks::NEVER);
    }

    #[test]
    fn a_partition_that_is_ordered_again_and_again_keeps_no_other_waiting() {
        let (mut orders, time) = (Orders::NONE, time());
        assert!(orders.admit(PartitionId(0), Ticks(0), &time));
        assert!(!orders.admit(PartitionId(31), Ticks(1), &time));
        assert!(!orders.admit(PartitionId(5), Ticks(1), &time));
        let mut seen = std::vec::Vec::new();
        for round in 1..=4 {
            // The first partition is there again, before the time has come and after it.
            let now = Ticks(round * SPACE.0);
            assert!(!orders.admit(PartitionId(0), Ticks(now.0 - 1), &time));
            assert!(!orders.admit(PartitionId(0), now, &time), "others wait");
            seen.extend(orders.take(now, &time));
        }
        assert_eq!(seen, [5, 31, 0, 0].map(PartitionId));
    }

    #[test]
    fn a_stop_of_this_pcpu_does_not_wait_and_delays_no_other() {
        let (mut orders, time) = (Orders::NONE, time());
        assert!(orders.admit(PartitionId(0), Ticks(5), &time));
        orders.order_here(PartitionId(1));
        assert!(orders.admit(PartitionId(1), Ticks(6), &time));
        assert!(!orders.admit(PartitionId(1), Ticks(7), &time));
        assert_eq!(orders.due(), Ticks(5).plus(SPACE));
    }
}
