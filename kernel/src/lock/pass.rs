// SPDX-License-Identifier: Apache-2.0
//! Owners of locks: who is next, and in whose place the owner runs.
//!
//! **Loans.** A vCPU that waits lends its place to the owner, if both are on this pCPU. The lock may change
//! hands on another pCPU. Then the old owner is not on this pCPU, so no vCPU here lends to it. The new owner
//! may be here. It sees to the loans of the waiters here when it takes the lock up. An owner that is here
//! gives the lock up here. So the pCPU of a waiter alone makes and ends its loans.
//!
//! **Order of locks.** A lock of this kind counts as a port ([`crate::port`]): it comes before a seat.

use crate::dispatch::Pcpu;
use crate::dispatch::basis::TAKES;
use crate::local::Activity;
use crate::lock::{LockId, taken};
use crate::mailbox::{bit, bits};
use crate::parts::{LOCKS, PartOf};
use crate::port::Basis;
use bulkhead_abi::Error;
use bulkhead_arch_api::{Arch, Drivers, VcpuId, VcpuSet};
use bulkhead_sched::{PcpuPolicy, Slot};

/// The locks, on a pCPU.
pub(crate) struct Locks<'p, 's, 'i, A: Arch, D, P> {
    pub(super) pcpu: &'p mut Pcpu<'s, 'i, A, D, P>,
}

impl<'s, 'i, A: Arch, D: Drivers, P: PcpuPolicy> Pcpu<'s, 'i, A, D, P> {
    /// Returns the part with its pCPU.
    #[inline(always)]
    pub(crate) const fn locks(&mut self) -> Locks<'_, 's, 'i, A, D, P> {
        Locks { pcpu: self }
    }
}

impl<A: Arch, D: Drivers, P: PcpuPolicy> Locks<'_, '_, '_, A, D, P> {
    /// Gives the lock of `owner` to the next one. Returns false if `owner` does not own the lock.
    pub(super) fn pass_lock(&mut self, owner: VcpuId, lock: LockId, is_broken: bool) -> bool {
        let (shared, system) = (self.pcpu.shared, self.pcpu.system);
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
        self.pcpu.wake_all(next.map_or(VcpuSet::EMPTY, VcpuSet::of));
        true
    }

    /// Makes the waiters of this pCPU lend their places to the present owner, if the owner is here. A step
    /// per waiter.
    pub(crate) fn relend(&mut self, lock: LockId) {
        let state = *self.pcpu.shared.locks.of(lock).lock();
        let waiters = state.waiters();
        if waiters.is_empty() {
            return;
        }
        for waiter in waiters.iter() {
            let there = self.pcpu.system.binding(waiter);
            if self.pcpu.is_here(there.pcpu) {
                self.relend_of(there.slot, state.owner());
            }
        }
    }

    /// Makes a waiter of this pCPU lend its place to the present owner of its lock, if the owner is here.
    pub(crate) fn relend_of(&mut self, waiter: Slot, owner: Option<VcpuId>) {
        let owner = owner.map(|owner| self.pcpu.system.binding(owner));
        let owner =
            owner.filter(|owner| self.pcpu.is_here(owner.pcpu) && self.pcpu.local.can_borrow(owner.slot));
        // A waiter of a lock has no other wait. If it is not blocked, it looks in its own time why it was
        // woken, and may block again.
        let is_blocked = matches!(self.pcpu.local.slot(waiter).activity, Activity::Blocked(_));
        let now = self.pcpu.machine.now();
        match owner.filter(|_| is_blocked) {
            Some(owner) => self.pcpu.local.lend_on(waiter, owner.slot, now),
            None => self.pcpu.local.lend_no_more(waiter, now),
        }
    }

    /// Takes the locks of a vCPU from it, which is being switched off and waits for none any more. The next
    /// owners are told. Bounded by the locks.
    fn leave_locks(&mut self, vcpu: VcpuId) {
        let owned = self.pcpu.shared.seats.of(vcpu).lock().owned;
        for lock in bits(owned).map(LockId) {
            self.take_from(vcpu, lock);
        }
    }

    /// Takes a lock from its owner, which has not released it. The next owner finds the lock broken.
    #[inline(never)]
    fn take_from(&mut self, owner: VcpuId, lock: LockId) {
        let is_broken = {
            let mut seat = self.pcpu.shared.seats.of(owner).lock();
            let is_its = matches!(seat.basis, Basis::Lock(at) if at.it == lock);
            match seat.received {
                // A lock that the owner has got without having been told is no more broken than before.
                Some(Ok([was_broken, ..])) if is_its => {
                    seat.received = Some(Err(Error::Revoked));
                    was_broken != 0
                }
                _ => true,
            }
        };
        self.pass_lock(owner, lock, is_broken);
        self.relend(lock);
    }

    /// Takes a lock from its owner, if the owner lacks the capability by which it took the lock.
    #[inline(never)]
    pub(crate) fn is_disowned(&mut self, vcpu: VcpuId, lock: LockId) -> bool {
        let (is_wrong, waiters) = {
            let state = self.pcpu.shared.locks.of(lock).lock();
            let is_wrong = state.owner() == Some(vcpu) && !self.pcpu.stands(vcpu, state.slot, TAKES, lock.0);
            (is_wrong, state.waiters())
        };
        if !is_wrong {
            return false;
        }
        self.take_from(vcpu, lock);
        // The waiters of other pCPUs lend to the owner that it had.
        self.pcpu.wake_all(waiters);
        true
    }
}

impl<A: Arch, D: Drivers, P: PcpuPolicy> PartOf for Locks<'_, '_, '_, A, D, P> {
    const IS_THERE: bool = LOCKS;

    #[inline(always)]
    fn vcpu_leaves(&mut self, vcpu: VcpuId) {
        self.leave_locks(vcpu);
    }
}
