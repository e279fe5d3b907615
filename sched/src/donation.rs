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
    Decision, MAX_SLOTS, Policy, PolicyError, ScheduleStatus, Signals, Slot, SlotSet, StopReason, Ticks,
};

/// A policy with donation.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Donating<P> {
    policy: P,
    all: u32,
    /// By slot that lends: to whom.
    target: Table<u8>,
    /// By slot: those whose places it can run beside its own.
    donors: Table<u32>,
    lending: u32,
    /// The slots that are ready themselves.
    ready: u32,
    /// The place that the decision in force runs.
    place: u8,
}

impl<P: Policy> Donating<P> {
    /// `policy`, which has the slots `all`, with donation.
    pub const fn new(policy: P, all: SlotSet) -> Self {
        Self {
            policy,
            all: all.0,
            target: Table::new(0),
            donors: Table::new(0),
            lending: 0,
            ready: 0,
            place: 0,
        }
    }

    /// Without any donation, and with these slots; the policy below, to be made anew.
    pub(crate) const fn restart(&mut self, all: SlotSet) -> &mut P {
        self.all = all.0;
        self.target = Table::new(0);
        self.donors = Table::new(0);
        self.lending = 0;
        self.ready = 0;
        self.place = 0;
        &mut self.policy
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

    fn stopped(&mut self, slot: Slot, why: StopReason, ran: Ticks, now: Ticks) {
        self.policy.stopped(Slot(self.place), why, ran, now);
        if why == StopReason::Blocked && self.has(slot) {
            self.ready &= !bit(slot.0);
            self.set(self.places(slot.0) & !bit(self.place), false, now);
        }
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
        match self.policy.next(now) {
            Decision::Run(place, until) => {
                self.place = place.0;
                Decision::Run(Slot(self.end(place.0)), until)
            }
            idle @ Decision::Idle(_) => idle,
        }
    }

    /// Without donations, every slot runs in its own place.
    #[inline]
    fn follow(&mut self, slot: Slot, why: StopReason, ran: Ticks, now: Ticks) -> Option<(Decision, SlotSet)> {
        if self.lending != 0 {
            return None;
        }
        let (decision, interested) = self.policy.follow(slot, why, ran, now)?;
        if why == StopReason::Blocked {
            self.ready &= !bit(slot.0);
        }
        if let Decision::Run(place, _) = decision {
            self.place = place.0;
        }
        Some((decision, interested))
    }

    fn interested(&self) -> SlotSet {
        let SlotSet(places) = self.policy.interested();
        let lent = places & self.lending;
        let ends = each(lent).fold(0, |ends, place| ends | bit(self.end(place)));
        SlotSet(places & !lent | ends)
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
