// SPDX-License-Identifier: Apache-2.0
//! Donation around a policy: a vCPU that waits for another vCPU lends that vCPU its place.
//!
//! **Model.** The policy below schedules *places*: a slot's priority, budget, deadline, windows or domain. A
//! slot without donation runs in its own place. After `donate(from, to)`, `from` waits, and `to` runs the
//! place of `from`. If `to` lends its own place, the slot at the end of the chain runs the place. A place is
//! ready exactly if the end of its chain is. So the end runs at the highest of all priorities that wait for
//! it, and uses the time of the slot that waits. This is priority inheritance (Sha, Rajkumar and Lehoczky,
//! "Priority Inheritance Protocols", 1990). For servers it is bandwidth inheritance (Lipari, Lamastra and
//! Abeni, 2004). It is helping as in Hohmuth and Haertig, "Pragmatic Nonblocking Synchronization for
//! Real-Time Systems", 2001.
//!
//! **No cycles.** Every slot keeps the set of the slots whose places it may run, directly or through others.
//! A donation from a to b closes a cycle exactly if b is in the set of a, or is a. This is one test of a
//! bitmap. Slots that lend form trees, so the sets along a chain are kept by adding and taking out one
//! subtree.
//!
//! **No lost wake-up.** A slot that lends is ready again when its donation is returned, even if other things
//! happened meanwhile. If the slot that it lends to is withdrawn (its partition stops), the donation returns
//! by itself.
//!
//! **Hand-over.** The slot that runs can hand its place over to one that is not ready
//! ([`Policy::hand_over`]). The policy below is told nothing about that place: it was ready and ran, and it
//! still is and does. So the decision stands, with its end, and the time goes on to be the time of the place.
//! The policy below only learns that the other slot's own place is ready. The place comes back the same
//! way, if no decision has chosen another place meanwhile, and no other slot lends to the slot that gives it
//! back.
//!
//! **Cost.** A hand-over and its return take constant time beside one wake-up. Without donations, each call
//! costs one test. Otherwise a wake-up is a step per place that the slot can run. A donation and its return
//! are a step per link of the chain and per place that moves: at most 31 of each.

use crate::table::{Table, bit, each};
use crate::{
    Decision, InForce, MAX_SLOTS, Policy, PolicyError, ScheduleStatus, Signals, Slot, SlotSet, StopReason,
    Ticks,
};

/// The value of [`Donating::place`] for a decision whose slot is in its own place.
const OWN: u8 = u8::MAX;

/// A policy with donation. The fields that every decision touches come first.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[repr(C)]
pub struct Donating<P> {
    /// The slots that lend.
    lending: u32,
    /// The slots that lend, or did when the decision in force was taken. If there are none, every slot is in
    /// its own place.
    lent: u32,
    /// The slots that are ready themselves. The field counts only while `lent` has any slots.
    ready: u32,
    pub(crate) all: u32,
    /// The place that the decision in force runs. [`OWN`] is the place of the slot that runs.
    place: u8,
    /// The time that the place of the decision in force ran before it was handed over the last time.
    handed: Ticks,
    pub(crate) policy: P,
    /// By slot that lends: the slot that it lends to.
    target: Table<u8>,
    /// By slot: the slots whose places it can run beside its own.
    donors: Table<u32>,
}

impl<P: Policy> Donating<P> {
    /// Returns `policy`, which has the slots `all`, with donation.
    #[inline(always)]
    pub const fn new(policy: P, all: SlotSet) -> Self {
        Self {
            lending: 0,
            lent: 0,
            ready: 0,
            all: all.0,
            place: OWN,
            handed: 0,
            policy,
            target: Table::new(0),
            donors: Table::new(0),
        }
    }

    const fn has(&self, slot: Slot) -> bool {
        (slot.0 as usize) < MAX_SLOTS && self.all & bit(slot.0) != 0
    }

    const fn lends(&self, slot: u8) -> bool {
        self.lending & bit(slot) != 0
    }

    /// Returns the places that a slot can run, its own among them.
    const fn places(&self, slot: u8) -> u32 {
        *self.donors.at(slot) | bit(slot)
    }

    /// Returns the slot that runs the place of `slot`. A chain has no cycle, so it ends.
    fn end(&self, slot: u8) -> u8 {
        let mut end = slot;
        while self.lends(end) {
            end = *self.target.at(end);
        }
        end
    }

    /// Returns the slots that run these places.
    fn ends(&self, SlotSet(places): SlotSet) -> SlotSet {
        let lent = places & self.lending;
        let ends = each(lent).fold(0, |ends, place| ends | bit(self.end(place)));
        SlotSet(places & !lent | ends)
    }

    /// Returns the slots whose readiness would change a decision, if the readiness of these places would. A
    /// slot that lends is ready again when its donation is returned. It counts if its place does, or if its
    /// place runs.
    fn concerned(&self, SlotSet(places): SlotSet) -> SlotSet {
        let running = if self.place == OWN { 0 } else { bit(self.place) };
        SlotSet(self.ends(SlotSet(places)).0 | (places | running) & self.lending)
    }

    /// Tells the policy about places that have become ready, or are no longer ready.
    fn set(&mut self, places: u32, is_ready: bool, now: Ticks) {
        for place in each(places) {
            if is_ready {
                self.policy.ready(Slot(place), now);
            } else {
                self.policy.withdraw(Slot(place), now);
            }
        }
    }

    /// Ends the donation of `slot`. The place of `slot` is then its own again. Requires: `slot` lends.
    fn detach(&mut self, slot: u8) {
        let places = self.places(slot);
        let mut link = slot;
        while self.lends(link) {
            link = *self.target.at(link);
            *self.donors.at_mut(link) &= !places;
        }
        self.lending &= !bit(slot);
    }

    /// Takes note that a slot stops that lends, or that may run the place of another slot. A donation may
    /// have been returned since the decision. Then the place is ready although the slot that ran is not.
    #[inline(never)]
    fn stopped_in_place(&mut self, slot: Slot, why: StopReason, ran: Ticks, now: Ticks) {
        let ran = ran.saturating_add(core::mem::take(&mut self.handed));
        let place = if self.place == OWN { slot } else { Slot(self.place) };
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

    #[inline(never)]
    fn block_in_place(&mut self, slot: Slot, ran: Ticks, now: Ticks, in_force: &mut InForce) {
        self.stopped_in_place(slot, StopReason::Blocked, ran, now);
        self.policy.decide(now, in_force);
        self.lend(in_force);
    }

    /// Replaces the places of a decision by the slots that run them.
    #[inline(never)]
    fn lend(&mut self, in_force: &mut InForce) {
        (self.lent, self.place) = (self.lending, OWN);
        if self.lent != 0 && in_force.slot != InForce::NOBODY {
            self.place = in_force.slot.0;
            in_force.slot = Slot(self.end(self.place));
        }
        in_force.interested = self.concerned(in_force.interested);
    }

    #[inline(never)]
    fn make_ready(&mut self, slot: u8, now: Ticks) {
        self.ready |= bit(slot);
        self.set(self.places(slot), true, now);
    }
}

impl<P: Policy> Policy for Donating<P> {
    #[inline(always)]
    fn ready(&mut self, slot: Slot, now: Ticks) {
        if self.lent == 0 {
            self.policy.ready(slot, now);
        } else if self.has(slot) && !self.lends(slot.0) {
            self.make_ready(slot.0, now);
        }
    }

    fn critical(&mut self, slot: Slot, now: Ticks) {
        if self.has(slot) && !self.lends(slot.0) {
            self.ready(slot, now);
            self.policy.critical(slot, now);
        }
    }

    #[inline(always)]
    fn stopped(&mut self, slot: Slot, why: StopReason, ran: Ticks, now: Ticks) {
        if self.lent != 0 {
            return self.stopped_in_place(slot, why, ran, now);
        }
        self.policy.stopped(slot, why, ran, now);
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
        let mut in_force = InForce::NONE;
        self.decide(now, &mut in_force);
        in_force.decision()
    }

    #[inline(always)]
    fn decide(&mut self, now: Ticks, in_force: &mut InForce) {
        self.policy.decide(now, in_force);
        if self.lent != 0 {
            self.lend(in_force);
        }
    }

    #[inline(always)]
    fn block(&mut self, slot: Slot, ran: Ticks, now: Ticks, in_force: &mut InForce) {
        if self.lent == 0 {
            self.policy.block(slot, ran, now, in_force);
        } else {
            self.block_in_place(slot, ran, now, in_force);
        }
    }

    fn ready_slots(&self) -> SlotSet {
        if self.lent == 0 {
            self.policy.ready_slots()
        } else {
            SlotSet(self.ready)
        }
    }

    fn interested(&self) -> SlotSet {
        self.concerned(self.policy.interested())
    }

    fn has_signals(&self) -> bool {
        self.policy.has_signals()
    }

    fn signals(&mut self) -> Signals {
        self.policy.signals()
    }

    #[inline]
    fn check_donation(&self, from: Slot, to: Slot) -> Result<(), PolicyError> {
        if !self.has(from) || !self.has(to) || self.lends(from.0) {
            return Err(PolicyError::BadParameter);
        }
        if self.places(from.0) & bit(to.0) != 0 {
            return Err(PolicyError::DonationCycle);
        }
        Ok(())
    }

    fn donate(&mut self, from: Slot, to: Slot, now: Ticks) -> Result<(), PolicyError> {
        self.check_donation(from, to)?;
        let places = self.places(from.0);
        self.ready = self.ready_slots().0;
        *self.target.at_mut(from.0) = to.0;
        self.lending |= bit(from.0);
        self.lent |= bit(from.0);
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

    fn retract_donation(&mut self, from: Slot, now: Ticks) -> Result<(), PolicyError> {
        if !self.has(from) || !self.lends(from.0) {
            return Err(PolicyError::BadParameter);
        }
        self.detach(from.0);
        // No slot runs in these places until `from` is ready, or lends its place again.
        self.set(self.places(from.0), false, now);
        Ok(())
    }

    #[inline]
    fn hand_over(
        &mut self,
        (from, to): (Slot, Slot),
        ran: Ticks,
        now: Ticks,
        in_force: &mut InForce,
    ) -> bool {
        let slots = bit(from.0) | bit(to.0);
        // If others lend to `to`, its wake-up concerns their places as well.
        if in_force.slot != from
            || !self.has(from)
            || !self.has(to)
            || from == to
            || self.lending & slots != 0
            || *self.donors.at(to.0) != 0
        {
            return false;
        }
        if self.lent == 0 {
            self.ready = self.policy.ready_slots().0;
        }
        if self.place == OWN || self.lent == 0 {
            self.place = from.0;
        }
        self.ready = self.ready & !bit(from.0) | bit(to.0);
        *self.target.at_mut(from.0) = to.0;
        *self.donors.at_mut(to.0) = self.places(from.0);
        self.lending |= bit(from.0);
        self.lent |= bit(from.0);
        self.handed = self.handed.saturating_add(ran);
        self.policy.ready(to, now);
        in_force.slot = to;
        in_force.interested.0 |= bit(from.0);
        true
    }

    #[inline]
    fn hand_back(
        &mut self,
        (from, to): (Slot, Slot),
        ran: Ticks,
        now: Ticks,
        in_force: &mut InForce,
    ) -> bool {
        if in_force.slot != to || !self.has(from) || !self.has(to) || !self.lends(from.0) {
            return false;
        }
        let places = self.places(from.0);
        if *self.target.at(from.0) != to.0
            || self.lends(to.0)
            || *self.donors.at(to.0) != places
            || self.place == OWN
            || places & bit(self.place) == 0
        {
            return false;
        }
        *self.donors.at_mut(to.0) = 0;
        self.lending &= !bit(from.0);
        self.ready = self.ready & !bit(to.0) | bit(from.0);
        if self.place == from.0 {
            self.place = OWN;
        }
        self.handed = self.handed.saturating_add(ran);
        self.policy.withdraw(to, now);
        in_force.slot = from;
        // The policy was not asked about `to` while `to` was ready.
        in_force.interested.0 = in_force.interested.0 & !bit(from.0) | bit(to.0);
        true
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
    use crate::{AnyPolicy, FixedPriorityParameters, VcpuParameters};

    /// Lets a slot in the middle of a chain lend to another one.
    #[test]
    fn a_loan_can_move_on_without_an_end_of_the_loans_before_it() {
        let mut vcpus = [VcpuParameters::default(); 4];
        vcpus[0].priority = 9;
        vcpus[3].priority = 5;
        let parameters = FixedPriorityParameters { quantum: 10 };
        let mut policy = AnyPolicy::fixed_priority(&vcpus, parameters).unwrap();
        for slot in [2, 3] {
            policy.ready(Slot(slot), 0);
        }
        policy.donate(Slot(0), Slot(1), 0).unwrap();
        policy.donate(Slot(1), Slot(2), 0).unwrap();
        assert_eq!(policy.next(0), Decision::Run(Slot(2), Ticks::MAX));
        policy.stopped(Slot(2), StopReason::Preempted, 1, 1);
        policy.retract_donation(Slot(1), 1).unwrap();
        // The slots 0 and 1 wait, and no slot runs in their places.
        assert_eq!(policy.ready_slots(), SlotSet(0b1100));
        assert_eq!(policy.next(1), Decision::Run(Slot(3), Ticks::MAX));
        policy.stopped(Slot(3), StopReason::Preempted, 1, 2);
        policy.donate(Slot(1), Slot(2), 2).unwrap();
        assert_eq!(policy.next(2), Decision::Run(Slot(2), Ticks::MAX));
        policy.stopped(Slot(2), StopReason::Blocked, 1, 3);
        policy.return_donation(Slot(0), 3).unwrap();
        assert_eq!(
            policy.retract_donation(Slot(0), 3),
            Err(PolicyError::BadParameter)
        );
        assert_eq!(policy.next(3), Decision::Run(Slot(0), Ticks::MAX));
    }

    /// Lets a server that runs in its client's place give the place back, and block before the next decision.
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
        policy.stopped(Slot(1), StopReason::Blocked, 1, 2);
        assert_eq!(policy.next(2), Decision::Run(Slot(0), Ticks::MAX));
        // Now all slots run in their own places again.
        policy.stopped(Slot(0), StopReason::Blocked, 1, 3);
        assert_eq!(policy.next(3), Decision::Idle(Ticks::MAX));
        assert_eq!(policy.interested(), SlotSet(0b111));
    }
}
