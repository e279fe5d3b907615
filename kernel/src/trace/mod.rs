// SPDX-License-Identifier: Apache-2.0
//! The trace of one pCPU: a ring of records in RAM that only this pCPU writes.
//!
//! The build of the image decides whether anything is traced. This never changes afterwards. A pCPU that does
//! not trace has a ring without entries. Such a pCPU runs another loop
//! ([`crate::dispatch::Pcpu::run_forever`]). In the few places that both loops share, the pCPU pays one
//! branch that always goes the same way.
//!
//! The newest record overwrites the oldest. The number of records ever stored is kept beside the ring, so a
//! reader loses no record without knowing it. Entries are stored before they are counted. So every entry that
//! the count covers is whole.

mod records;

use crate::parts::TRACE;
use bulkhead_abi::log::Pcpu;
use bulkhead_abi::size::IS_SMALL;
use bulkhead_abi::trace::{BlockReason, Entry, Event, ExitCause, Record, SwitchReason};
use bulkhead_arch_api::{PcpuId, Ticks, VcpuId};
use bulkhead_sched::Slot;
use core::sync::atomic::Ordering;

/// The place where a pCPU's records go.
#[derive(Debug)]
pub struct Tracer {
    /// The ring of records. Its length is a power of two, or 0.
    ring: &'static [Entry],
    /// The counters of the pCPU, with the number of records stored.
    counters: &'static Pcpu,
    pcpu: PcpuId,
    /// The vCPU that runs, as far as the trace tells.
    shown: Option<(Slot, VcpuId)>,
}

impl Tracer {
    /// Makes the tracer of a pCPU. Nothing is traced if `ring` is empty or its length is no power of two.
    #[must_use]
    pub const fn new(ring: &'static [Entry], counters: &'static Pcpu, pcpu: PcpuId) -> Self {
        Self {
            ring: if ring.len().is_power_of_two() { ring } else { &[] },
            counters,
            pcpu,
            shown: None,
        }
    }

    /// Tells whether anything is traced.
    #[inline]
    #[must_use]
    pub const fn is_on(&self) -> bool {
        TRACE && !self.ring.is_empty()
    }

    /// Returns the vCPU that runs, as far as the trace tells.
    #[inline]
    #[must_use]
    pub const fn shown(&self) -> Option<(Slot, VcpuId)> {
        self.shown
    }

    /// Stores a record, if anything is traced. The function is inlined, because the kind of event is known
    /// where the event is recorded. So little is left to be encoded.
    #[inline(always)]
    pub fn record(&self, now: Ticks, event: Event) {
        if !self.is_on() {
            return;
        }
        if IS_SMALL {
            self.store_once(now, event);
        } else {
            self.store(now, event);
        }
    }

    /// Stores a record. Where size counts, all callers share this function.
    #[inline(never)]
    fn store_once(&self, now: Ticks, event: Event) {
        self.store(now, event);
    }

    #[inline(always)]
    fn store(&self, now: Ticks, event: Event) {
        if !self.is_on() {
            return;
        }
        let stored = self.counters.traced.load(Ordering::Relaxed);
        self.put(stored, now, event);
        self.counters
            .traced
            .store(stored.wrapping_add(1), Ordering::Release);
    }

    /// Stores a record after `stored` others, and does not count it.
    #[inline(always)]
    fn put(&self, stored: u64, now: Ticks, event: Event) {
        let index = stored as usize & self.ring.len().wrapping_sub(1);
        let Some(entry) = self.ring.get(index) else { return };
        let record = Record {
            time: now.0,
            pcpu: self.pcpu.0,
            event,
        };
        entry.store(record.encode());
    }

    /// Records that the vCPU which ran waits for an interrupt: its exit, and that it is blocked. Both records
    /// are counted at once.
    #[inline(always)]
    pub fn idle(&self, now: Ticks, vcpu: VcpuId) {
        let exit = Event::Exit {
            vcpu: Some(vcpu.0),
            cause: ExitCause::Idle,
            argument: 0,
        };
        let block = Event::Block {
            vcpu: vcpu.0,
            why: BlockReason::Idle,
        };
        let stored = self.counters.traced.load(Ordering::Relaxed);
        self.put(stored, now, exit);
        self.put(stored.wrapping_add(1), now, block);
        self.counters
            .traced
            .store(stored.wrapping_add(2), Ordering::Release);
    }

    /// Records that `to` runs, because `from`, which ran, is blocked.
    #[inline(always)]
    pub fn pass_on(&mut self, now: Ticks, from: VcpuId, slot: Slot, to: VcpuId) {
        self.shown = Some((slot, to));
        let event = Event::Switch {
            from: Some(from.0),
            to: Some(to.0),
            why: SwitchReason::Blocked,
        };
        self.store(now, event);
    }

    /// Records that `to` runs from `now` on and did not run before. `is_ready` says whether the vCPU that ran
    /// could run on.
    #[inline]
    pub fn switch(&mut self, now: Ticks, to: Option<(Slot, VcpuId)>, is_ready: bool) {
        let from = core::mem::replace(&mut self.shown, to);
        let why = match from {
            None => SwitchReason::Idle,
            Some(_) if is_ready => SwitchReason::Preempted,
            Some(_) => SwitchReason::Blocked,
        };
        let event = Event::Switch {
            from: from.map(|(_, vcpu)| vcpu.0),
            to: to.map(|(_, vcpu)| vcpu.0),
            why,
        };
        self.record(now, event);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::boxed::Box;
    use std::vec::Vec;

    fn tracer(length: usize) -> Tracer {
        let ring = (0..length).map(|_| Entry::new()).collect::<Vec<_>>();
        let area = Box::leak(Box::new(bulkhead_abi::log::Area::new()));
        Tracer::new(ring.leak(), &area.pcpus[3], PcpuId(3))
    }

    #[test]
    fn the_newest_overwrites_the_oldest_and_all_are_counted() {
        let tracer = tracer(4);
        for vcpu in 0..6 {
            tracer.record(Ticks(u64::from(vcpu)), Event::Wake { vcpu, late: 0 });
        }
        assert_eq!(tracer.counters.traced.load(Ordering::Relaxed), 6);
        let times: Vec<u64> = tracer
            .ring
            .iter()
            .map(|entry| Record::decode(entry.load()).unwrap().time)
            .collect();
        assert_eq!(times, [4, 5, 2, 3]);
    }

    #[test]
    fn without_a_ring_nothing_is_traced() {
        for length in [0, 3] {
            let mut tracer = tracer(length);
            assert!(!tracer.is_on());
            tracer.switch(Ticks(1), Some((Slot(0), VcpuId(0))), true);
            assert_eq!(tracer.counters.traced.load(Ordering::Relaxed), 0);
        }
    }

    #[test]
    fn switches_say_why() {
        let mut tracer = tracer(8);
        let steps = [(Some(1), true), (Some(2), true), (None, false), (Some(1), true)];
        for (now, (to, ready)) in (10..).zip(steps) {
            tracer.switch(Ticks(now), to.map(|vcpu| (Slot(vcpu), VcpuId(vcpu))), ready);
        }
        let count = tracer.counters.traced.load(Ordering::Relaxed) as usize;
        let seen: Vec<(u64, Event)> = tracer.ring[..count]
            .iter()
            .map(|entry| Record::decode(entry.load()).unwrap())
            .map(|record| (record.time, record.event))
            .collect();
        let switch = |from, to, why| Event::Switch { from, to, why };
        let expected = [
            (10, switch(None, Some(1), SwitchReason::Idle)),
            (11, switch(Some(1), Some(2), SwitchReason::Preempted)),
            (12, switch(Some(2), None, SwitchReason::Blocked)),
            (13, switch(None, Some(1), SwitchReason::Idle)),
        ];
        assert_eq!(seen, expected);
    }
}
