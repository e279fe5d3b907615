// SPDX-License-Identifier: Apache-2.0
//! Ports when a vCPU or a partition begins or ends, and the loans of callers.
//!
//! **Donation.** A caller that donates lends its place to the vCPU that serves the port, if both are on this
//! pCPU. That is the vCPU that waits for the message, or the one that received last. If another vCPU takes
//! the message, the loan goes over to that one. The loan ends when the caller's wait ends, for any reason,
//! and when the server stops.

use crate::cap::ReplyIndex;
use crate::dispatch::Pcpu;
use crate::local::Activity;
use crate::parts::{HAS_SEATS, Part, has};
use crate::port::{CallState, PortId};
use crate::wait::Outcome;
use bulkhead_abi::Error;
use bulkhead_arch_api::{Arch, Drivers, PartitionId, Ticks, VcpuId, VcpuSet};
use bulkhead_sched::{PcpuPolicy, PolicyError, Slot};

/// Tells whether a vCPU is blocked in a call.
const fn is_calling(activity: Activity) -> bool {
    matches!(activity, Activity::Blocked(pause) if pause.wait.is_call())
}

impl<A: Arch, D: Drivers, P: PcpuPolicy> Pcpu<'_, '_, A, D, P> {
    /// Destroys a capability to reply by, and ends the call. Returns `None` if the index names
    /// another kind.
    #[inline]
    pub(crate) fn delete_reply(&mut self, holder: PartitionId, index: u64) -> Option<Outcome> {
        let index = ReplyIndex::of(index)?;
        let was_its = self.refuse_reply(holder, index.caller(), Some(index));
        Some(was_its.then_some([0; 4]).ok_or(Error::Revoked))
    }

    /// Ends the call of `caller` if `holder` has the capability to reply to it, with this index if one is
    /// given. Returns whether that was so.
    fn refuse_reply(&mut self, holder: PartitionId, caller: VcpuId, index: Option<ReplyIndex>) -> bool {
        let mut seat = self.shared.seats.of(caller).lock();
        let held = seat.call.reply;
        let Some(reply) =
            held.filter(|held| held.holder == holder && index.is_none_or(|index| held.index == index))
        else {
            return false;
        };
        seat.call.reply = None;
        if seat.call.state == CallState::Open {
            seat.call.state = CallState::Done(Err(Error::Revoked));
        }
        self.shared.capabilities.take_reply(reply, caller);
        drop(seat);
        self.wake_all(VcpuSet::of(caller));
        true
    }

    /// Ends the calls that a partition has received and has not answered. None of its vCPUs runs. Bounded by
    /// the slots of a capability space.
    pub(crate) fn refuse_replies(&mut self, partition: PartitionId) {
        if !has(Part::Ports) {
            return;
        }
        let shared = self.shared;
        for caller in shared.capabilities.replies(partition) {
            self.refuse_reply(partition, caller, None);
        }
    }

    /// Ends the loans and the call of the vCPU, and takes its locks: the vCPU is being switched off, and has
    /// left its wait.
    /// Requires: settled, or the vCPU is not running.
    #[inline]
    pub(crate) fn leave_ports(&mut self, slot: Slot, vcpu: VcpuId) {
        if HAS_SEATS && self.local.loans.is_any_engaged() {
            self.leave_engaged(slot, vcpu);
        }
    }

    #[inline(never)]
    fn leave_engaged(&mut self, slot: Slot, vcpu: VcpuId) {
        let now = self.machine.now();
        self.local.end_loans(slot, now);
        if !self.local.loans.disengage(slot) {
            return;
        }
        self.end_call(vcpu);
        self.leave_locks(vcpu);
    }

    /// Ends the call of a vCPU. Its capability to reply by is gone then.
    pub(super) fn end_call(&self, vcpu: VcpuId) {
        let mut seat = self.shared.seats.of(vcpu).lock();
        seat.call.state = CallState::None;
        if let Some(held) = seat.call.reply.take() {
            self.shared.capabilities.take_reply(held, vcpu);
        }
    }

    /// Raises the events of messages that wait in ports for a partition which begins a new life: the events
    /// of its last life are gone. Bounded by the ports.
    pub(crate) fn raise_for_messages(&mut self, partition: PartitionId) {
        if !has(Part::Ports) {
            return;
        }
        for (_, number) in self.system.image.ports().iter().zip(0_u8..) {
            let port = PortId(number);
            if let Some((receiver, events)) = self.system.port(port).told
                && receiver == partition
                && self.shared.ports.of(port).lock().oldest().is_some()
            {
                self.raise(partition, events);
            }
        }
    }

    pub(crate) fn deadline_of(&self, until: Option<u64>) -> Ticks {
        until.map_or(Ticks::NEVER, |nanoseconds| self.system.time.at(nanoseconds))
    }

    /// Lends the place of `donor`, which is running or waits, to a vCPU that serves it. Without an error
    /// there may be no loan: the vCPU is elsewhere, it does not run, or the policy has no donation.
    ///
    /// # Errors
    /// [`Error::DonationCycle`].
    pub(crate) fn lend_to(&mut self, donor: Slot, server: VcpuId) -> Result<(), Error> {
        let there = self.system.binding(server);
        if !self.is_here(there.pcpu) || !self.local.can_borrow(there.slot) {
            return Ok(());
        }
        let now = self.machine.now();
        match self.local.lend(donor, there.slot, now) {
            Err(PolicyError::DonationCycle) => Err(Error::DonationCycle),
            _ => Ok(()),
        }
    }

    /// Lets a vCPU that has taken the message of a caller have the caller's place, if the caller donates.
    pub(super) fn take_loan(&mut self, caller: VcpuId, slot: Slot) {
        let there = self.system.binding(caller);
        if !self.is_here(there.pcpu) || !self.shared.seats.of(caller).lock().call.donates {
            return;
        }
        if is_calling(self.local.slot(there.slot).activity) {
            let now = self.machine.now();
            self.local.lend_on(there.slot, slot, now);
        }
    }

    /// Returns the vCPU that a vCPU with an open call lends its place to, if it donates.
    fn server_of(&self, vcpu: VcpuId) -> Option<VcpuId> {
        let (port, server) = {
            let seat = self.shared.seats.of(vcpu).lock();
            let call = &seat.call;
            if call.state != CallState::Open || !call.donates {
                return None;
            }
            (call.at.it, call.server)
        };
        server.or_else(|| self.shared.ports.of(port).lock().server)
    }

    /// Lets a slot, which is switched on or loads its partition, have the places of the callers of this pCPU
    /// that wait for its vCPU, or for any vCPU of its partition if it loads. Bounded by the slots in use.
    #[inline]
    pub(crate) fn relend_to(&mut self, slot: Slot) {
        if HAS_SEATS && self.local.loans.is_any_engaged() {
            self.relend_callers(slot);
        }
    }

    #[inline(never)]
    fn relend_callers(&mut self, slot: Slot) {
        let state = *self.local.slot(slot);
        let partition = self.system.binding(state.vcpu).partition;
        let loads = matches!(state.activity, Activity::Loading(_));
        for from in self.local.all() {
            let caller = *self.local.slot(from);
            if !is_calling(caller.activity) {
                continue;
            }
            let is_its = |server: VcpuId| {
                server == state.vcpu || loads && self.system.binding(server).partition == partition
            };
            if self.server_of(caller.vcpu).is_some_and(is_its) {
                let now = self.machine.now();
                self.local.lend_on(from, slot, now);
            }
        }
    }

    /// Lends the place of a caller that waits on, after a look at why it was woken.
    pub(crate) fn relend_call(&mut self, slot: Slot) {
        if let Some(server) = self.server_of(self.local.slot(slot).vcpu) {
            let _without = self.lend_to(slot, server);
        }
    }

    /// Ends the loan of a slot whose vCPU goes on.
    pub(crate) fn end_loan(&mut self, slot: Slot) {
        if self.local.loans.is_lending(slot) {
            let now = self.machine.now();
            self.local.end_loan(slot, now);
        }
    }
}
