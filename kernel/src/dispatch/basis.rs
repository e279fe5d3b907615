// SPDX-License-Identifier: Apache-2.0
//! Waits, and the capabilities that they rest on.
//!
//! A vCPU waits by a capability: for a message, for a reply, for a lock, for events, for a time. A lock is
//! owned by one. The vCPU that takes the capability away ends the wait with [`Error::Revoked`], on any pCPU,
//! and the lock goes on to the next waiter as a broken lock.
//!
//! **Order.** Slots are emptied first. Then each seat is looked at under its lock, and a wait that lacks its
//! capability gets its outcome. A vCPU that begins a wait writes the wait into its seat, and then looks at
//! its slot once more under the same lock. So either it finds the slot empty, or the other one finds the
//! wait. Events and times have no seat. The pCPU that empties a slot posts a review to the vCPUs of the
//! slot's partition. A pCPU takes that mail before it runs anything else. A vCPU that is woken by events
//! looks at its slot before it takes them. So none gets events that were raised after the end of its
//! capability.
//!
//! **Met errors.** A slot whose capability was taken away is dead until its holder meets the error
//! ([`crate::cap`]). The end of a wait with [`Error::Revoked`] is that error, and frees the slot.
//!
//! **Work bounds.** A look for waits without their capabilities is a step for each vCPU of the system, and
//! ends one wait or one ownership. A review is a step for each vCPU of a partition.

use super::Pcpu;
use crate::cap::Named;
use crate::local::Activity;
use crate::lock::LockId;
use crate::mailbox::{bit, bits};
use crate::parts::HAS_SEATS;
use crate::port::{Basis, CallState, PortId};
use crate::wait::Outcome;
use bulkhead_abi::hypercall::CAPABILITY_SLOTS;
use bulkhead_abi::{Error, ObjectKind, Rights};
use bulkhead_arch_api::{Arch, Drivers, GuestPhys, VcpuId, VcpuSet};
use bulkhead_sched::{PcpuPolicy, Slot};

/// The kind of an object, and a right to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Right {
    pub kind: ObjectKind,
    pub rights: Rights,
}

impl Right {
    const fn new(kind: ObjectKind, rights: Rights) -> Self {
        Self { kind, rights }
    }
}

/// The kind and the right by which a vCPU waits for a message.
pub(crate) const RECEIVES: Right = Right::new(ObjectKind::Port, Rights::READ);
/// The kind and the right by which a vCPU calls.
pub(crate) const CALLS: Right = Right::new(ObjectKind::Port, Rights::WRITE);
/// The kind and the right by which a vCPU takes a lock.
pub(crate) const TAKES: Right = Right::new(ObjectKind::Lock, Rights::WRITE);
/// The kind and the right by which a vCPU waits for events.
pub(crate) const WATCHES: Right = Right::new(ObjectKind::EventGate, Rights::READ);
/// The kind and the right by which a vCPU sleeps.
pub(crate) const SLEEPS: Right = Right::new(ObjectKind::Timer, Rights::READ);

impl<A: Arch, D: Drivers, P: PcpuPolicy> Pcpu<'_, '_, A, D, P> {
    /// Tells whether a slot of a vCPU's partition gives a right to an object of this kind.
    #[inline(never)]
    pub(crate) fn stands(&self, vcpu: VcpuId, index: u8, Right { kind, rights }: Right, object: u8) -> bool {
        let holder = self.system.binding(vcpu).partition;
        let spaces = &self.shared.capabilities;
        spaces.find_quickly(holder, index.into(), kind, rights) == Some(object)
    }

    /// Returns the error of a vCPU that has met the end of its capability, and frees the slot of that.
    #[cold]
    #[inline(never)]
    pub(crate) fn meet_revoked(&self, vcpu: VcpuId, index: u8) -> Error {
        let holder = self.system.binding(vcpu).partition;
        let _met = self.shared.capabilities.look_up(holder, index.into());
        Error::Revoked
    }

    /// Ends a blocking hypercall whose capability was taken away.
    #[cold]
    #[inline(never)]
    pub(crate) fn end_revoked(&mut self, slot: Slot, index: u8) {
        let error = self.meet_revoked(self.local.slot(slot).vcpu, index);
        self.release(slot, Err(error));
    }

    /// Writes into the seat of a vCPU that it waits for a message from now on. With the lock of the port
    /// held. The caller then looks once more whether the capability is there.
    #[inline(always)]
    pub(crate) fn sit_down(&self, vcpu: VcpuId, at: Named<PortId>, buffer: GuestPhys) {
        let mut seat = self.shared.seats.of(vcpu).lock();
        (seat.buffer, seat.received, seat.basis) = (buffer, None, Basis::Port(at));
    }

    /// Returns the outcome of a wait at a port or for a lock that was completed.
    pub(crate) fn received(&self, vcpu: VcpuId) -> Option<Outcome> {
        let (outcome, basis) = {
            let mut seat = self.shared.seats.of(vcpu).lock();
            (seat.received.take(), seat.basis)
        };
        if outcome == Some(Err(Error::Revoked))
            && let Basis::Port(Named { index, .. }) | Basis::Lock(Named { index, .. }) = basis
        {
            self.meet_revoked(vcpu, index);
        }
        outcome
    }

    /// Ends one wait, or one ownership of a lock, that lacks its capability. Returns true if there is none,
    /// and no port counts on a receiver without one.
    #[inline]
    pub(crate) fn are_waits_right(&mut self) -> bool {
        !HAS_SEATS || !self.end_wrong_wait() && !self.forget_wrong_server()
    }

    /// Lets one port forget a server that was granted its capability and has it no more: the place of a
    /// caller must not go there, and circles lead to the one who can receive. Returns whether there was such
    /// a port. Bounded by the ports and, for each whose server is not the manifest's, the capability space.
    #[inline(never)]
    fn forget_wrong_server(&mut self) -> bool {
        let mut ports = self.system.image.ports().iter().zip(0_u8..);
        ports.any(|(_, number)| {
            let (port, facts) = (PortId(number), self.system.port(PortId(number)));
            let mut queue = self.shared.ports.of(port).lock();
            let granted = queue.server.filter(|server| facts.receiver != Some(*server));
            let is_wrong = granted.is_some_and(|server| !self.may_receive(server, port));
            if is_wrong {
                queue.server = facts.receiver;
            }
            is_wrong
        })
    }

    /// Tells whether a vCPU has a capability to receive at a port.
    fn may_receive(&self, vcpu: VcpuId, port: PortId) -> bool {
        let has = |index| self.stands(vcpu, index, RECEIVES, port.0);
        (0..CAPABILITY_SLOTS as u8).any(has)
    }

    #[inline(never)]
    fn end_wrong_wait(&mut self) -> bool {
        let count = self.system.image.vcpus().len();
        (0..count).any(|vcpu| self.is_wrong_wait_ended(VcpuId(vcpu as u8)))
    }

    /// Ends a wait or an ownership of a vCPU, if one lacks its capability.
    fn is_wrong_wait_ended(&mut self, vcpu: VcpuId) -> bool {
        let (basis, owned) = {
            let mut seat = self.shared.seats.of(vcpu).lock();
            let Named { it: port, index } = seat.call.at;
            if seat.call.state == CallState::Open && !self.stands(vcpu, index, CALLS, port.0) {
                seat.call.state = CallState::Done(Err(Error::Revoked));
                if let Some(held) = seat.call.reply.take() {
                    self.shared.capabilities.take_reply(held, vcpu);
                }
                drop(seat);
                self.wake_all(VcpuSet::of(vcpu));
                return true;
            }
            (seat.basis, seat.owned)
        };
        let is_ended = match basis {
            Basis::Port(Named { it: port, index }) if !self.stands(vcpu, index, RECEIVES, port.0) => {
                let mut queue = self.shared.ports.of(port).lock();
                queue.leave(vcpu) && self.put_revoked(vcpu)
            }
            Basis::Lock(Named { it: lock, index }) if !self.stands(vcpu, index, TAKES, lock.0) => {
                let mut state = self.shared.locks.of(lock).lock();
                state.leave(vcpu) && self.put_revoked(vcpu)
            }
            _ => false,
        };
        if is_ended {
            self.wake_all(VcpuSet::of(vcpu));
        }
        is_ended || bits(owned).any(|lock| self.locks().is_disowned(vcpu, LockId(lock)))
    }

    /// Writes the outcome of a wait that has ended with its capability.
    fn put_revoked(&self, vcpu: VcpuId) -> bool {
        self.shared.seats.of(vcpu).lock().received = Some(Err(Error::Revoked));
        true
    }

    /// Lets the vCPUs of these partitions, a bitmap, look whether they may still wait: a capability of each
    /// was taken away.
    #[inline]
    pub(crate) fn review(&mut self, partitions: u32) {
        if partitions != 0 {
            self.review_all(partitions);
        }
    }

    #[inline(never)]
    fn review_all(&mut self, partitions: u32) {
        let count = self.system.image.vcpus().len();
        for vcpu in 0..count {
            let binding = self.system.binding(VcpuId(vcpu as u8));
            if partitions & bit(binding.partition.0) == 0 {
                continue;
            }
            if self.is_here(binding.pcpu) {
                self.review_slot(binding.slot);
            } else if self.shared.mailboxes.of(binding.pcpu).post_review(binding.slot) {
                self.machine.signal(binding.pcpu);
            }
        }
    }

    /// Looks whether a vCPU waits for events or a time, or for an upcall, by a capability that was taken
    /// away.
    #[inline(never)]
    pub(crate) fn review_slot(&mut self, slot: Slot) {
        let state = self.local.slot(slot);
        let vcpu = state.vcpu;
        match state.activity {
            Activity::Blocked(pause) => {
                if let Some(rest) = pause.wait.rests_on()
                    && !self.stands(vcpu, rest.index, rest.right, rest.object)
                {
                    pause.wait.leave(self, vcpu);
                    self.end_revoked(slot, rest.index);
                }
            }
            Activity::Ready => self.vcpu_goes_on(slot),
            _ => {}
        }
    }
}
