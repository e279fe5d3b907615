// SPDX-License-Identifier: Apache-2.0
//! The loans of places: a vCPU that waits for another one lends its place to that one.
//!
//! The policy has the loans ([`bulkhead_sched::Policy::donate`]). Here is noted which there are. Only waits
//! at ports and for locks lend, so a build without both has no loans, and no place for one.

use super::{Activity, Local};
use crate::mailbox::{bit, bits};
use crate::parts::HAS_SEATS;
use bulkhead_arch_api::Ticks;
use bulkhead_sched::{MAX_SLOTS, PcpuPolicy, PolicyError, Slot};
use core::sync::atomic::Ordering;

/// Slots that can lend.
const LENDERS: usize = if HAS_SEATS { MAX_SLOTS } else { 0 };

/// The loans of a pCPU, and the slots that may have some.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Loans {
    /// The slots whose vCPUs may wait at a port, or have a call.
    engaged: u32,
    /// The slots that lend their places.
    lent: u32,
    /// By slot that lends: the slot that it lends to.
    borrowers: [Slot; LENDERS],
}

impl Loans {
    /// Returns the state before boot. The function is inlined, so the state is made where it stays.
    #[inline(always)]
    pub(super) const fn new() -> Self {
        Self {
            engaged: 0,
            lent: 0,
            borrowers: [Slot(0); LENDERS],
        }
    }

    /// Marks a slot whose vCPU is about to wait at a port, or to call.
    pub(crate) const fn engage(&mut self, slot: Slot) {
        self.engaged |= bit(slot.0);
    }

    /// Tells whether a slot may have something to leave at ports. Returns true once.
    pub(crate) const fn disengage(&mut self, slot: Slot) -> bool {
        let was = self.engaged & bit(slot.0) != 0;
        self.engaged &= !bit(slot.0);
        was
    }

    /// Returns a set of slots, which is empty in a build where no vCPU waits for another one.
    #[inline(always)]
    const fn there(slots: u32) -> u32 {
        if HAS_SEATS { slots } else { 0 }
    }

    /// Tells whether any slot may have something to leave at ports. A slot that lends has.
    #[inline]
    pub(crate) const fn is_any_engaged(&self) -> bool {
        Self::there(self.engaged) != 0
    }

    /// Tells whether a slot lends its place.
    #[inline]
    pub(crate) const fn is_lending(&self, slot: Slot) -> bool {
        Self::there(self.lent) & bit(slot.0) != 0
    }

    /// Notes that `from` lends its place to `to`.
    #[inline(always)]
    fn begin(&mut self, from: Slot, to: Slot) {
        self.lent |= bit(from.0);
        if let Some(borrower) = self.borrowers.get_mut(usize::from(from.0)) {
            *borrower = to;
        }
    }

    /// Notes that `from` lends its place no more.
    #[inline(always)]
    const fn end(&mut self, from: Slot) {
        self.lent &= !bit(from.0);
    }

    /// Returns the slots that lend.
    fn lenders(&self) -> impl Iterator<Item = Slot> + use<> {
        bits(self.lent).map(Slot)
    }

    fn borrower(&self, from: Slot) -> Option<Slot> {
        self.borrowers.get(usize::from(from.0)).copied()
    }
}

impl<P: PcpuPolicy> Local<P> {
    /// Tells whether a slot may run the place of another one: its vCPU is on, or loads its partition.
    pub fn can_borrow(&self, slot: Slot) -> bool {
        match self.slot(slot).activity {
            Activity::Ready
            | Activity::Revoking(..)
            | Activity::Calling
            | Activity::Looking(_)
            | Activity::Idle(_)
            | Activity::Loading(_)
            | Activity::Blocked(_) => true,
            Activity::Off | Activity::Ending => false,
        }
    }

    /// Lends the place of `from` to `to`. Ends the decision in force if `from` runs. A decision is wanted
    /// then.
    ///
    /// # Errors
    /// [`PolicyError`]: there is no loan.
    pub fn lend(&mut self, from: Slot, to: Slot, now: Ticks) -> Result<(), PolicyError> {
        // A loan that is refused leaves the decision in force. A vCPU that goes on to wait blocks in it.
        self.policy.check_donation(from, to)?;
        if self.running() == Some(from) {
            self.settle(now);
        }
        self.reschedule = true;
        self.policy.donate(from, to, now.0)?;
        self.loans.begin(from, to);
        Ok(())
    }

    /// Lends the place of `from`, which waits, to `to` from now on, whomever it was lent to before.
    pub fn lend_on(&mut self, from: Slot, to: Slot, now: Ticks) {
        if self.loans.is_lending(from) {
            if self.loans.borrower(from) == Some(to) {
                return;
            }
            self.take_back(from, now);
        }
        // Without a loan, `to` runs in its own place.
        let _without = self.lend(from, to, now);
    }

    /// Ends the loan of `from`, which waits on, if there is one.
    pub fn lend_no_more(&mut self, from: Slot, now: Ticks) {
        if self.loans.is_lending(from) {
            self.take_back(from, now);
        }
    }

    /// Lets `to`, which is blocked, run in the place of `from`, which runs and blocks, without a decision.
    /// The caller sees to what both do then. Returns false if a decision is needed. Then nothing has
    /// changed.
    #[inline]
    pub fn hand_over(&mut self, from: Slot, to: Slot, now: Ticks) -> bool {
        let ran = now.since(self.since).0;
        if !Self::may_hand_over() || !self.policy.hand_over((from, to), ran, now.0, &mut self.in_force) {
            return false;
        }
        self.loans.begin(from, to);
        self.pass_on(from, to, now);
        true
    }

    /// Lets `from` run in its place again, which it lent to `to`. `to` runs, and blocks. The rest is as for
    /// [`Local::hand_over`].
    #[inline]
    pub fn hand_back(&mut self, from: Slot, to: Slot, now: Ticks) -> bool {
        let ran = now.since(self.since).0;
        if !Self::may_hand_over() || !self.policy.hand_back((from, to), ran, now.0, &mut self.in_force) {
            return false;
        }
        self.loans.end(from);
        self.pass_on(to, from, now);
        true
    }

    /// Tells whether a place may change hands without a decision. A decision that must be checked is taken
    /// the usual way.
    #[inline(always)]
    const fn may_hand_over() -> bool {
        P::IS_TRUSTED
    }

    /// Counts the time of `from`, after which `to` runs.
    #[inline]
    fn pass_on(&mut self, from: Slot, to: Slot, now: Ticks) {
        let counters = self.slot(from).counters;
        self.spend(&counters.ran, now);
        let vcpu = self.slot(to).vcpu;
        self.counters.running.store(u32::from(vcpu.0), Ordering::Relaxed);
    }

    /// Ends the loan of a slot that lends, if there is one. The policy then has the slot among the ready
    /// ones. A decision is wanted.
    pub fn end_loan(&mut self, from: Slot, now: Ticks) {
        // The policy has the loan: nothing else ends it.
        let _ended = self.policy.return_donation(from, now.0);
        self.loans.end(from);
        self.reschedule = true;
    }

    /// Ends all loans of and to a slot that is being switched off. The slots that lent to it wait on without
    /// a loan. Bounded by the slots in use.
    pub fn end_loans(&mut self, slot: Slot, now: Ticks) {
        for from in self.loans.lenders() {
            if from == slot || self.loans.borrower(from) == Some(slot) {
                self.take_back(from, now);
            }
        }
    }

    /// Ends the loan of a slot that waits on. Ends the decision in force: it may run the slot's place.
    fn take_back(&mut self, from: Slot, now: Ticks) {
        if self.running().is_some() {
            self.settle(now);
        }
        // The policy has the loan. Those who lend to `from` still do.
        let _ended = self.policy.retract_donation(from, now.0);
        self.loans.end(from);
        self.reschedule = true;
    }
}
