// SPDX-License-Identifier: Apache-2.0
//! Donation around a policy: who waits for another lends it its place.
//!
//! **Model.** The policy below schedules *places*: a slot's priority, budget, deadline, windows or domain. Who has no
//! donation runs in its own place. After `donate(from, to)`, `from` waits and its place is run by `to`, or by whom `to`
//! lends to in turn: the end of the chain. A place is ready exactly if the end of its chain is. So the end runs at the highest
//! of all priorities that wait for it, and uses the time of the one who waits: priority inheritance (Sha, Rajkumar and
//! Lehoczky, "Priority Inheritance Protocols", 1990), bandwidth inheritance for servers (Lipari, Lamastra and Abeni, 2004), helping
//! as in Hohmuth and Haertig, "Pragmatic Nonblocking Synchronization for Real-Time Systems", 2001.
//!
//! **No cycles.** Every slot keeps the set of those whose places it may run, directly or through others. A donation from a to
//! b closes a cycle exactly if b is in the set of a, or is a: one bitmap test. Slots that lend form trees, so the
//! sets along a chain are kept by adding and taking out one subtree.
//!
//! **No lost wake-up.** A slot that lends is ready again when its donation is returned, whatever happened meanwhile; if the
//! one it lends to is withdrawn (its partition stops), the donation returns by itself.
//!
//! **Cost.** Without donations, one test per call. Otherwise a wake-up is a step per place that the slot can run, a donation
//! and its return a step per link of the chain and per place that moves: at most 31 of each.

use crate::table::{Table, bit, each};
use crate::{
    Decision, MAX_SLOTS, Outcome, Policy, PolicyError, ScheduleStatus, Signals, Slot, SlotSet, StopReason,
    Ticks,
};

/// A policy with donation; what every decision touches comes first.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[repr(C)]
pub struct Donating<P> {
    /// It is plain, and the policy has a short way.
    pub(crate) is_short: bool,
    /// Nobody lends, and nobody did when the decision in force was taken: whoever runs is in its own place.
    is_plain: bool,
    /// The place that the decision in force runs.
    pub(crate) place: u8,
    /// The slots that are ready themselves.
    pub(crate) ready: u32,
    pub(crate) all: u32,
    lending: u32,
    pub(crate) policy: P,
    /// By slot that lends: to whom.
    target: Table<u8>,
    /// By slot: those whose places it can run beside its own.
    donors: Table<u32>,
}

impl<P: Policy> Donating<P> {
    /// `policy`, which has the slots `all`, with donation.
    #[inline(always)]
    pub const fn new(policy: P, all: SlotSet) -> Self {
        Self {
            is_short: false,
            policy,
            all: all.0,
            target: Table::new(0),
            donors: Table::new(0),
            lending: 0,
            ready: 0,
            place: 0,
            is_plain: true,
        }
    }

    const fn has(&self, slot: Slot) -> bool {
        (slot.0 as usize) < MAX_SLOTS && self.all & bit(slot.0) != 0
    }

    const fn lends(&self, slot: u8) -> bool {
        self.lending & bit(slot) != 0
    }

    /// The places a slot can run, its own among them.
    const fn places(&self, slot: u8) -> u32 {
        *self.donors.at(slot) | bit(slot)
    }

    /// Who runs the place of `slot`. A chain has no cycle, so it ends.
    fn end(&self, slot: u8) -> u8 {
        let mut end = slot;
        while self.lends(end) {
            end = *self.target.at(end);
        }
        end
    }

    /// A decision is taken.
    fn note_lending(&mut self) {
        self.is_plain = self.lending == 0;
        self.is_short = self.is_plain && self.policy.has_short_way();
    }

    /// Those who run these places.
    fn ends(&self, SlotSet(places): SlotSet) -> SlotSet {
        let lent = places & self.lending;
        let ends = each(lent).fold(0, |ends, place| ends | bit(self.end(place)));
        SlotSet(places & !lent | ends)
    }

    /// Tells the policy about places that have become ready or are no longer.
    fn set(&mut self, places: u32, is_ready: bool, now: Ticks) {
        for place in each(places) {
            if is_ready {
                self.policy.ready(Slot(place), now);
            } else {
                self.policy.withdraw(Slot(place), now);
            }
        }
    }

    /// Ends the donation of `slot`, whose place is then its own again. Requires: it lends.
    fn detach(&mut self, slot: u8) {
        let places = self.places(slot);
        let mut link = slot;
        while self.lends(link) {
            link = *self.target.at(link);
            *self.donors.at_mut(link) &= !places;
        }
        self.lending &= !bit(slot);
    }

    fn make_ready(&mut self, slot: u8, now: Ticks) {
        self.ready |= bit(slot);
        if self.lending == 0 {
            return self.policy.ready(Slot(slot), now);
        }
        self.set(self.places(slot), true, now);
    }
}

impl<P: Policy> Policy for Donating<P> {
    fn ready(&mut self, slot: Slot, now: Ticks) {
        if self.has(slot) && !self.lends(slot.0) {
            self.make_ready(slot.0, now);
        }
    }

    fn critical(&mut self, slot: Slot, now: Ticks) {
        if self.has(slot) && !self.lends(slot.0) {
            self.make_ready(slot.0, now);
            self.policy.critical(slot, now);
        }
    }

    /// A donation may have been returned since the decision: then the place is ready although the slot that ran is not.
    fn stopped(&mut self, slot: Slot, why: StopReason, ran: Ticks, now: Ticks) {
        let place = Slot(self.place);
        if why != StopReason::Blocked || !self.has(slot) {
            return self.policy.stopped(place, why, ran, now);
        }
        self.ready &= !bit(slot.0);
        let places = self.places(slot.0);
        if places & bit(place.0) != 0 {
            self.policy.stopped(place, why, ran, now);
        } else {
            self.policy.stopped(place, StopReason::Preempted, ran, now);
        }
        self.set(places & !bit(place.0), false, now);
    }

    fn withdraw(&mut self, slot: Slot, now: Ticks) {
        if !self.has(slot) {
            return;
        }
        self.ready &= !bit(slot.0);
        if self.lends(slot.0) {
            self.detach(slot.0);
        }
        self.set(self.places(slot.0), false, now);
        for donor in each(*self.donors.at(slot.0) & self.lending) {
            if *self.target.at(donor) == slot.0 {
                self.detach(donor);
                self.make_ready(donor, now);
            }
        }
    }

    fn next(&mut self, now: Ticks) -> Decision {
        self.note_lending();
        match self.policy.next(now) {
            Decision::Run(place, until) => {
                self.place = place.0;
                Decision::Run(Slot(self.end(place.0)), until)
            }
            idle @ Decision::Idle(_) => idle,
        }
    }

    fn decide(&mut self, now: Ticks) -> Outcome {
        self.note_lending();
        let mut outcome = self.policy.decide(now);
        if let Decision::Run(place, until) = outcome.decision {
            self.place = place.0;
            outcome.decision = Decision::Run(Slot(self.end(place.0)), until);
        }
        if !self.is_plain {
            outcome.interested = self.ends(outcome.interested);
        }
        outcome
    }

    /// Without donations, every slot runs in its own place.
    fn follow(&mut self, slot: Slot, why: StopReason, ran: Ticks, now: Ticks) -> Outcome {
        if !self.is_plain {
            self.stopped(slot, why, ran, now);
            return self.decide(now);
        }
        if why == StopReason::Blocked {
            self.ready &= !bit(slot.0);
        }
        let outcome = self.policy.follow(slot, why, ran, now);
        if let Decision::Run(place, _) = outcome.decision {
            self.place = place.0;
        }
        outcome
    }

    fn interested(&self) -> SlotSet {
        self.ends(self.policy.interested())
    }

    fn signals(&mut self) -> Signals {
        self.policy.signals()
    }

    fn donate(&mut self, from: Slot, to: Slot, now: Ticks) -> Result<(), PolicyError> {
        if !self.has(from) || !self.has(to) || self.lends(from.0) {
            return Err(PolicyError::BadParameter);
        }
        let places = self.places(from.0);
        if places & bit(to.0) != 0 {
            return Err(PolicyError::DonationCycle);
        }
        *self.target.at_mut(from.0) = to.0;
        self.lending |= bit(from.0);
        (self.is_plain, self.is_short) = (false, false);
        self.ready &= !bit(from.0);
        let mut link = from.0;
        while self.lends(link) {
            link = *self.target.at(link);
            *self.donors.at_mut(link) |= places;
        }
        self.set(places, self.ready & bit(link) != 0, now);
        Ok(())
    }

    fn return_donation(&mut self, from: Slot, now: Ticks) -> Result<(), PolicyError> {
        if !self.has(from) || !self.lends(from.0) {
            return Err(PolicyError::BadParameter);
        }
        self.detach(from.0);
        self.make_ready(from.0, now);
        Ok(())
    }

    fn change_schedule(&mut self, schedule: u8, now: Ticks) -> Result<(), PolicyError> {
        self.policy.change_schedule(schedule, now)
    }

    fn schedule(&self) -> ScheduleStatus {
        self.policy.schedule()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{AnyPolicy, FixedPriorityParameters, PcpuPolicy, VcpuParameters};

    /// A server that runs in its client's place gives it back, and blocks before anything is decided anew.
    #[test]
    fn who_gets_its_place_back_is_ready_although_the_one_that_ran_there_is_not() {
        let mut vcpus = [VcpuParameters::default(); 3];
        vcpus[0].priority = 9;
        let parameters = FixedPriorityParameters { quantum: 10 };
        let mut policy = AnyPolicy::fixed_priority(&vcpus, parameters).unwrap();
        policy.ready(Slot(0), 0);
        policy.ready(Slot(1), 0);
        assert_eq!(policy.next(0), Decision::Run(Slot(0), Ticks::MAX));
        policy.stopped(Slot(0), StopReason::Blocked, 1, 1);
        policy.donate(Slot(0), Slot(1), 1).unwrap();
        assert_eq!(policy.next(1), Decision::Run(Slot(1), Ticks::MAX));
        policy.return_donation(Slot(0), 2).unwrap();
        assert!(
            !policy.blocked(Slot(1), 1, 2).is_valid(),
            "it is not in its own place"
        );
        let outcome = policy.follow(Slot(1), StopReason::Blocked, 1, 2);
        assert_eq!(outcome.decision, Decision::Run(Slot(0), Ticks::MAX));
        // Now all run in their own places again.
        let next = policy.blocked(Slot(0), 1, 3);
        assert!(next.is_valid() && next.slot() == crate::Successor::NOBODY);
        assert_eq!(next.interested(), SlotSet(0b111));
    }
}
