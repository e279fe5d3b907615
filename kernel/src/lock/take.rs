// SPDX-License-Identifier: Apache-2.0
//! Calls about locks: a vCPU takes a lock, waits for it, or releases it.
//!
//! **Order of locks.** A lock of this kind counts as a port ([`crate::port`]): it comes before a seat.

use crate::cap::Named;
use crate::dispatch::basis::TAKES;
use crate::local::Activity;
use crate::lock::command::LockCommand;
use crate::lock::pass::Locks;
use crate::lock::{LockId, LockWait, Taking, taken};
use crate::mailbox::bit;
use crate::port::Basis;
use crate::wait::Outcome;
use crate::wait::verbs::Verbs;
use bulkhead_abi::Error;
use bulkhead_arch_api::{Arch, Drivers, VcpuId};
use bulkhead_sched::{PcpuPolicy, Slot};

impl<A: Arch, D: Drivers, P: PcpuPolicy> Locks<'_, '_, '_, A, D, P> {
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
            LockCommand::Take(until) => self.take_lock(slot, vcpu, at, until),
            LockCommand::TryTake => {
                let answer = self.enter_lock(slot, vcpu, at, false);
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
        at: Named<LockId>,
        until: Option<u64>,
    ) -> Option<Outcome> {
        let lock = at.it;
        let wait = LockWait { lock };
        match self.enter_lock(slot, vcpu, at, true) {
            Ok(None) => {}
            answer => return answer.transpose(),
        }
        let owner = self.pcpu.shared.locks.of(lock).lock().owner();
        if owner.is_some_and(|owner| owner != vcpu && self.pcpu.closes_circle(vcpu, owner)) {
            let outcome = wait.give_up(self.pcpu, vcpu, Error::DonationCycle);
            self.pcpu.end_loan(slot);
            return Some(outcome);
        }
        let until = self.pcpu.deadline_of(until);
        let Some(timer) = self.pcpu.interruption(vcpu) else {
            let outcome = wait.give_up(self.pcpu, vcpu, Error::Interrupted);
            self.pcpu.end_loan(slot);
            wait.ended(self.pcpu, outcome);
            return Some(outcome);
        };
        self.pcpu
            .local
            .block(slot, Activity::waiting(wait.into(), until, timer));
        None
    }

    /// Takes a lock if it is free. Otherwise the vCPU becomes a waiter (`None`) and lends its place to the
    /// owner, or gets an error unless `waits`. After an error nothing has changed.
    fn enter_lock(
        &mut self,
        slot: Slot,
        vcpu: VcpuId,
        at: Named<LockId>,
        waits: bool,
    ) -> Result<Option<[u64; 4]>, Error> {
        let shared = self.pcpu.shared;
        let lock = at.it;
        let mut state = shared.locks.of(lock).lock();
        let mut seat = shared.seats.of(vcpu).lock();
        // The capability may have been taken away since the check. The lock of the seat orders this look and
        // the look of the pCPU that takes the capability away.
        if !self.pcpu.stands(vcpu, at.index, TAKES, lock.0) {
            return Err(Error::Revoked);
        }
        match state.take(vcpu) {
            Taking::Taken(is_broken) => {
                self.pcpu.local.loans.engage(slot);
                seat.owned |= bit(lock.0);
                state.slot = at.index;
                Ok(Some(taken(is_broken)))
            }
            Taking::AlreadyOwn => Err(Error::WrongState),
            Taking::OwnedBy(_) if !waits => Err(Error::TimedOut),
            Taking::OwnedBy(owner) => {
                self.pcpu.lend_to(slot, owner)?;
                self.pcpu.local.loans.engage(slot);
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
}
