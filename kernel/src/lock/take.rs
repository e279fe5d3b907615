// SPDX-License-Identifier: Apache-2.0
//! Locks: who owns one, who waits, and in whose place the owner runs.
//!
//! **Loans.** A vCPU that waits lends its place to the owner, if both are on this pCPU. The lock may change
//! hands on another pCPU. Then the old owner is not on this pCPU, so no vCPU here lends to it. The new owner
//! may be here. It sees to the loans of the waiters here when it takes the lock up. An owner that is here
//! gives the lock up here. So the pCPU of a waiter alone makes and ends its loans.
//!
//! **Order of locks.** A lock of this kind counts as a port ([`crate::port`]): it comes before a seat.

use crate::dispatch::Pcpu;
use crate::dispatch::basis::TAKES;
use crate::local::{Activity, Pause};
use crate::lock::command::LockCommand;
use crate::lock::{LockId, Taking};
use crate::mailbox::{bit, bits};
use crate::parts::{Part, has};
use crate::port::{Basis, Named, Outcome};
use bulkhead_abi::Error;
use bulkhead_arch_api::{Arch, Drivers, VcpuId, VcpuSet};
use bulkhead_sched::{PcpuPolicy, Slot};

/// Returns the results of taking a lock.
const fn taken(is_broken: bool) -> [u64; 4] {
    [is_broken as u64, 0, 0, 0]
}

impl<A: Arch, D: Drivers, P: PcpuPolicy> Pcpu<'_, '_, A, D, P> {
    /// Carries out a hypercall about a lock. Returns the answer, or `None` if the vCPU waits.
    #[inline(never)]
    pub(crate) fn call_at_lock(
        &mut self,
        slot: Slot,
        vcpu: VcpuId,
        at: Named<LockId>,
        command: LockCommand,
    ) -> Option<Outcome> {
        match command {
            LockCommand::Take(until) => self.take_lock(slot, vcpu, (at, until)),
            LockCommand::TryTake => {
                let answer = self.enter_lock(slot, vcpu, (at, false));
                // Without a wait there is an answer.
                Some(answer.and_then(|answer| answer.ok_or(Error::TimedOut)))
            }
            LockCommand::Release => Some(self.release_lock(vcpu, at.it).map(|()| [0; 4])),
        }
    }

    /// Takes a lock, or blocks the vCPU until it owns the lock.
    fn take_lock(
        &mut self,
        slot: Slot,
        vcpu: VcpuId,
        (at, until): (Named<LockId>, Option<u64>),
    ) -> Option<Outcome> {
        let lock = at.it;
        match self.enter_lock(slot, vcpu, (at, true)) {
            Ok(None) => {}
            answer => return answer.transpose(),
        }
        let owner = self.shared.locks.of(lock).lock().owner();
        if owner.is_some_and(|owner| owner != vcpu && self.closes_circle(vcpu, owner)) {
            let outcome = self.give_up_lock(vcpu, lock, Error::DonationCycle);
            self.end_loan(slot);
            return Some(outcome);
        }
        let until = self.deadline_of(until);
        let Some(own) = self.interruption(vcpu) else {
            let outcome = self.give_up_lock(vcpu, lock, Error::Interrupted);
            self.end_loan(slot);
            if outcome.is_ok() {
                self.relend(lock);
            }
            return Some(outcome);
        };
        self.local
            .block(slot, Activity::Blocked(Pause::Lock(lock, until, own)));
        None
    }

    /// Takes a lock if it is free. Otherwise the vCPU becomes a waiter (`None`) and lends its place to the
    /// owner, or gets an error unless `waits`. After an error nothing has changed.
    fn enter_lock(
        &mut self,
        slot: Slot,
        vcpu: VcpuId,
        (at, waits): (Named<LockId>, bool),
    ) -> Result<Option<[u64; 4]>, Error> {
        let shared = self.shared;
        let lock = at.it;
        let mut state = shared.locks.of(lock).lock();
        let mut seat = shared.seats.of(vcpu).lock();
        // The capability may have been taken away since the check. The lock of the seat orders this look and
        // the look of the pCPU that takes the capability away.
        if !self.stands(vcpu, at.index, TAKES, lock.0) {
            return Err(Error::Revoked);
        }
        match state.take(vcpu) {
            Taking::Taken(is_broken) => {
                self.local.engage(slot);
                seat.owned |= bit(lock.0);
                state.slot = at.index;
                Ok(Some(taken(is_broken)))
            }
            Taking::AlreadyOwn => Err(Error::WrongState),
            Taking::OwnedBy(_) if !waits => Err(Error::TimedOut),
            Taking::OwnedBy(owner) => {
                self.lend_to(slot, owner)?;
                self.local.engage(slot);
                (seat.received, seat.basis) = (None, Basis::Lock(at));
                seat.turn = seat.turn.wrapping_add(1);
                state.wait(vcpu);
                Ok(None)
            }
        }
    }

    /// Takes a lock from its owner, which releases it.
    fn release_lock(&mut self, vcpu: VcpuId, lock: LockId) -> Result<(), Error> {
        if !self.pass_lock(vcpu, lock, false) {
            return Err(Error::WrongState);
        }
        self.relend(lock);
        Ok(())
    }

    /// Gives the lock of `owner` to the next one. Returns false if `owner` does not own the lock.
    pub(crate) fn pass_lock(&mut self, owner: VcpuId, lock: LockId, is_broken: bool) -> bool {
        let (shared, system) = (self.shared, self.system);
        let next = {
            let mut state = shared.locks.of(lock).lock();
            if state.owner() != Some(owner) {
                return false;
            }
            shared.seats.of(owner).lock().owned &= !bit(lock.0);
            let next = state.pass(is_broken, |vcpu| system.priority(vcpu));
            if let Some(next) = next {
                let mut seat = shared.seats.of(next).lock();
                seat.owned |= bit(lock.0);
                seat.received = Some(Ok(taken(is_broken)));
                if let Basis::Lock(at) = seat.basis {
                    state.slot = at.index;
                }
            }
            next
        };
        self.wake_all(next.map_or(VcpuSet::EMPTY, VcpuSet::of));
        true
    }

    /// Makes the waiters of this pCPU lend their places to the present owner, if the owner is here. A step
    /// per waiter.
    pub(crate) fn relend(&mut self, lock: LockId) {
        let state = *self.shared.locks.of(lock).lock();
        let waiters = state.waiters();
        if waiters.is_empty() {
            return;
        }
        for waiter in waiters.iter() {
            let there = self.system.binding(waiter);
            if self.is_here(there.pcpu) {
                self.relend_of(there.slot, state.owner());
            }
        }
    }

    /// Makes a waiter of this pCPU lend its place to the present owner of its lock, if the owner is here.
    fn relend_of(&mut self, waiter: Slot, owner: Option<VcpuId>) {
        let owner = owner.map(|owner| self.system.binding(owner));
        let owner = owner.filter(|owner| self.is_here(owner.pcpu) && self.local.can_borrow(owner.slot));
        // Another activity: the vCPU looks in its own time why it was woken, and may block again.
        let is_blocked = matches!(
            self.local.slot(waiter).activity,
            Activity::Blocked(Pause::Lock(..))
        );
        let now = self.machine.now();
        match owner.filter(|_| is_blocked) {
            Some(owner) => self.local.lend_on(waiter, owner.slot, now),
            None => self.local.lend_no_more(waiter, now),
        }
    }

    /// Corrects the loan of a vCPU that was woken and waits on: another pCPU may have taken the lock from the
    /// owner that it lends to.
    pub(crate) fn check_loan(&mut self, slot: Slot, pause: Pause) {
        if has(Part::Locks)
            && let Pause::Lock(lock, ..) = pause
        {
            let owner = self.shared.locks.of(lock).lock().owner();
            self.relend_of(slot, owner);
        }
    }

    /// Takes the vCPU from the waiters of a lock. Returns `error`, unless the lock has come meanwhile.
    pub(crate) fn give_up_lock(&self, vcpu: VcpuId, lock: LockId, error: Error) -> Outcome {
        if self.shared.locks.of(lock).lock().leave(vcpu) {
            return Err(error);
        }
        self.received(vcpu).unwrap_or(Err(error))
    }

    /// Takes the vCPU, which is being switched off, from the waiters of a lock, if it waits for one, and its
    /// locks from it. Its next owners are told. Bounded by the locks.
    pub(crate) fn leave_locks(&mut self, vcpu: VcpuId, activity: Activity) {
        if !has(Part::Locks) {
            return;
        }
        let mut untold = None;
        if let Activity::Blocked(Pause::Lock(lock, ..)) | Activity::Looking(Pause::Lock(lock, ..)) = activity
        {
            let mut state = self.shared.locks.of(lock).lock();
            // A lock that the vCPU has got without having been told is no more broken than before.
            if !state.leave(vcpu) {
                untold = Some((lock, state.is_broken()));
            }
        }
        let owned = self.shared.seats.of(vcpu).lock().owned;
        for lock in bits(owned).map(LockId) {
            let is_broken = untold.is_none_or(|(own, was_broken)| own != lock || was_broken);
            self.pass_lock(vcpu, lock, is_broken);
            self.relend(lock);
        }
    }
}
